# SPDX-License-Identifier: MIT
"""Modules, and the rnnrun that runs them, built with a sanitizer that must be in both."""
import os
import re
import subprocess

from conftest import ROOT, build_directory

SEEN = {"thread": 66, "memory": 77}  # the exit code of a program in which the sanitizer has found something
OPTIONS = {"thread": {"TSAN_OPTIONS": "halt_on_error=1"}, "memory": {"MSAN_OPTIONS": "exitcode=77"}}


def flag(sanitizer):
    return f"-fsanitize={sanitizer}"


def watching_rnnrun(folder, sanitizer):
    """The program, in the folder."""
    program = folder / f"rnnrun-{sanitizer}"
    sources = [path for room in ("command", "rnnrun", "speed") for path in (ROOT / "tools" / room).glob("*.c")]
    include = [f"-I{ROOT / place}" for place in ("runtime", "tools/command", "tools/speed")]
    include += [f"-I{build_directory() / 'tools' / 'report'}"]
    subprocess.run(["clang-19", "-std=gnu11", "-O1", "-D_GNU_SOURCE", '-DRNNCC_VERSION="0"', flag(sanitizer), *include,
                    *sources, ROOT / "runtime" / "cpu.c", "-pthread", "-o", program], check=True)
    return program


def watched_module(folder, sanitizer, level=None):
    """The module of an emitted folder, with its Makefile's flags and the sanitizer's. level: how far clang optimises
    kernels, in place of the Makefile's."""
    text = (folder / "Makefile").read_text()
    flags = {name: re.search(f"^{name} = (.*)$", text, re.M)[1] + f" {flag(sanitizer)}" for name in ("KERNEL_FLAGS", "RUNTIME_FLAGS")}
    flags["KERNEL_FLAGS"] += f" {level or ''}"
    subprocess.run(["make", "-s", "-j2", *(f"{name}={value}" for name, value in flags.items()), "LINK_FLAGS=-shared"], cwd=folder, check=True)
    return folder / "module.so"


def ended(program, sanitizer, module, words, runs=1):
    """The (exit code, stderr) of some runs on four threads, even if there are fewer CPUs. What is found first ends a run,
    because the rest of the run may never end."""
    command = [program, "run", module, *words, "--threads", "4"]
    done = [subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ | OPTIONS[sanitizer]) for _ in range(runs)]
    return [(run.returncode, run.stderr) for run in done]
