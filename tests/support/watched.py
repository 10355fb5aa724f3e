# SPDX-License-Identifier: MIT
"""Modules, and the rnnrun that runs them, built with a sanitizer that must be in both."""
import fcntl
import os
import re
import subprocess

from conftest import ROOT, build_directory

SEEN = {"thread": 66, "memory": 77}  # the exit code of a program in which the sanitizer has found something
OPTIONS = {"thread": {"TSAN_OPTIONS": "halt_on_error=1"}, "memory": {"MSAN_OPTIONS": "exitcode=77"}}


def flag(sanitizer):
    return f"-fsanitize={sanitizer}"


def watching_rnnrun(cache, sanitizer):
    """The program, in a folder that all workers share: made by whichever asks first, not optimised, as it runs for a moment."""
    program = cache / f"rnnrun-{sanitizer}"
    with open(f"{program}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            build_rnnrun(program, sanitizer)
    return program


def build_rnnrun(program, sanitizer):
    sources = [path for room in ("command", "rnnrun", "speed") for path in (ROOT / "tools" / room).glob("*.c")]
    include = [f"-I{ROOT / place}" for place in ("runtime", "tools/command", "tools/speed")]
    include += [f"-I{build_directory() / 'tools' / 'report'}"]
    subprocess.run(["clang-19", "-std=gnu11", "-O0", "-D_GNU_SOURCE", '-DRNNCC_VERSION="0"', flag(sanitizer), *include,
                    *sources, ROOT / "runtime" / "cpu.c", "-pthread", "-o", program], check=True)


def made(folder, compiler=None, added="", *settings):
    """The module of an emitted folder by its Makefile, of -O1: of several levels the last one holds, and the Makefile's, -O3,
    stands behind the compiler's words. Sanitizers see more with less."""
    flags = re.findall("^(KERNEL_FLAGS|RUNTIME_FLAGS) = (.*)$", (folder / "Makefile").read_text(), re.M)
    assert len(flags) == 2
    settings = [*([f"CC={compiler}"] if compiler else []), *(f"{name}={given} -O1 {added}" for name, given in flags), *settings]
    subprocess.run(["make", "-s", "-j2", *settings], cwd=folder, check=True)
    return folder / "module.so"


def watched_module(folder, sanitizer):
    return made(folder, None, flag(sanitizer), "LINK_FLAGS=-shared")


def ended(program, sanitizer, module, words, runs=1):
    """The (exit code, stderr) of some runs on four threads, even if there are fewer CPUs. What is found first ends a run,
    because the rest of the run may never end."""
    command = [program, "run", module, *words, "--threads", "4"]
    done = [subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ | OPTIONS[sanitizer]) for _ in range(runs)]
    return [(run.returncode, run.stderr) for run in done]
