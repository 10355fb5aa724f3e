# SPDX-License-Identifier: MIT
"""The promises of every compiled module as a file: one symbol, libc alone, hardened, reproducible, quick to compile."""
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT, SHIPPED, sanitized
from support.emitted import TARGETS
from support.installed import output
from support.machine import need_program
from support.model_builder import Model
from support.user import User

pytestmark = pytest.mark.optimised  # it is about the machine code

MODELS = [path for path in SHIPPED if not sanitized() or path.stem != "hyphenate"]  # which takes longest, and has nothing of its own
KIB = 1024

by_model = pytest.mark.parametrize("model", MODELS, ids=lambda path: path.stem)


def dynamic(module):
    """The dynamic section: tag -> its values."""
    tags = {}
    for tag, value in re.findall(r"^ 0x\w+ \((\w+)\)\s+(.*)$", output("readelf", "-dW", module), re.MULTILINE):
        tags.setdefault(tag, []).append(value.strip())
    return tags


def segments(module):
    """(type, flags) of each program header."""
    pattern = r"^\s+(\w+)\s+0x\w+ 0x\w+ 0x\w+ 0x\w+ 0x\w+ ([RWE ]{3}) (?:0x\w+|0)$"
    return re.findall(pattern, output("readelf", "-lW", module), re.MULTILINE)


@by_model
def test_one_symbol_is_exported(model, compile):
    lines = output("nm", "-D", "--defined-only", compile(model)).splitlines()
    assert [line.split()[1:] for line in lines] == [["T", "rnncc_module_query"]]


@by_model
def test_libc_is_all_it_needs(model, compile):
    """Whose threads were libpthread.so.0 before 2.34; since then that is empty."""
    assert dynamic(compile(model))["NEEDED"] == ["Shared library: [libpthread.so.0]", "Shared library: [libc.so.6]"]


@pytest.mark.parametrize("target", ["x86-64", "aarch64-linux-gnu"])
def test_it_loads_with_glibc_2_17(target, rnncc, tmp_path):
    """Every symbol that it takes has a version, none newer, and both libraries are there as they were then."""
    done = rnncc(ROOT / "models" / "digits_rnn.json", f"--target={target}", "-o", tmp_path / "m.so")
    assert done.returncode == 0, done.stderr
    wanted = [line.split()[-1].partition("@GLIBC_") for line in output("nm", "-D", "--undefined-only", tmp_path / "m.so").splitlines()]
    versions = {name: tuple(int(part) for part in version.split(".")) for name, _, version in wanted}
    assert "pthread_create" in versions
    assert {name: version for name, version in versions.items() if version > (2, 17)} == {}
    needed = [re.sub(r".*\[(.*)\]", r"\1", text) for text in dynamic(tmp_path / "m.so")["NEEDED"]]
    assert needed == ["libpthread.so.0", "libc.so.6"]


@by_model
def test_what_clang_says_of_frames_is_not_in_it(model, compile):
    assert "stack_sizes" not in output("readelf", "-SW", compile(model))


@by_model
def test_it_neither_prints_nor_exits(model, compile):
    wanted = {line.split()[-1].split("@")[0] for line in output("nm", "-D", "--undefined-only", compile(model)).splitlines()}
    banned = {"abort", "exit", "_exit", "_Exit", "quick_exit", "raise", "kill", "printf", "puts", "putchar", "write",
              "fwrite", "fputs", "stdout", "stderr", "signal", "sigaction", "setlocale", "system", "dlopen"}
    assert not wanted & banned


@by_model
def test_it_is_hardened(model, compile):
    module = compile(model)
    tags, headers = dynamic(module), segments(module)
    assert len(headers) >= 5, "the pattern reads this readelf"
    assert "TEXTREL" not in tags and "TEXTREL" not in " ".join(tags.get("FLAGS", []))
    assert "BIND_NOW" in tags.get("FLAGS", [""])[0] and "NOW" in tags.get("FLAGS_1", [""])[0]
    assert any(kind == "GNU_RELRO" for kind, _ in headers)
    assert [flags for kind, flags in headers if kind == "GNU_STACK"] == ["RW "]
    assert not any("W" in flags and "E" in flags for _, flags in headers), "a segment is writable and executable"


@by_model
def test_nothing_runs_at_load_and_no_tls_is_taken(model, compile):
    module = compile(model)
    tags = dynamic(module)
    assert not {"INIT", "FINI", "INIT_ARRAY", "FINI_ARRAY", "PREINIT_ARRAY", "RPATH", "RUNPATH"} & set(tags)
    assert "STATIC_TLS" not in " ".join(tags.get("FLAGS", []))
    assert not any(kind == "TLS" for kind, _ in segments(module))


def test_the_runtime_adds_less_than_64_kib(compile, tmp_path):
    model = Model("small")
    model.output(model.node("Relu", [model.input("x", "f32", [1])]))
    assert os.path.getsize(compile(model.write(tmp_path))) < 64 * KIB


@pytest.mark.parametrize("profile, says", [("full", True), ("edge", False)])
def test_it_says_how_much_work_its_threads_share(rnncc, tmp_path, profile, says):
    """Less is done by one: the others would come later than it ends. At the edge there are no threads."""
    done = rnncc(ROOT / "models" / "digits_rnn.json", f"--profile={profile}", "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    assert bool(re.search(r"\.share_from = \d", (tmp_path / "c" / "network.c").read_text())) == says


@pytest.mark.unsanitized
@by_model
def test_clang_and_the_linker_run_once_for_each_thing(model, rnncc, tmp_path):
    log, clang = tmp_path / "log", tmp_path / "clang"
    real = shlex.quote(os.environ.get("RNNCC_CLANG", "clang-19"))
    clang.write_text(f'#!/bin/sh\necho "$*" >>{shlex.quote(str(log))}\nexec {real} "$@"\n')
    clang.chmod(0o755)
    done = rnncc(model, "-o", tmp_path / "m.so", env={**os.environ, "RNNCC_CLANG": str(clang)})
    assert done.returncode == 0, done.stderr
    made = [re.search(r" -o (\S+)", f" {line}")[1] for line in log.read_text().splitlines()]
    assert sorted(Path(name).suffix for name in made) == [".o", ".o", ".so"] and len(set(made)) == 3


@pytest.mark.unsanitized
@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64-v3"])
@by_model
def test_a_unit_is_16000_instructions_for_clang(model, target, rnncc, tmp_path):
    """After optimisation. clang takes 0.15 ms for each on a core of 2.6 GHz, for any unit: compiling takes less than 3 s
    there, with half a second for the runtime. Time on this machine would depend on its load, too."""
    done = rnncc(model, f"--target={target}", "--threads=2", "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    flags = re.search(r"^KERNEL_FLAGS = (.*)$", (tmp_path / "c" / "Makefile").read_text(), re.MULTILINE)[1].split()
    text = output("clang-19", *flags, f"-I{tmp_path}/c", "-S", "-emit-llvm", tmp_path / "c" / "network.c", "-o", "-")
    assert 1000 < len(re.findall(r"^  [%a-z]", text, re.MULTILINE)) < 16000


@by_model
def test_the_same_input_gives_the_same_file_wherever_and_whenever(model, rnncc, compile, tmp_path):
    elsewhere = tmp_path / "a folder elsewhere"
    shutil.copytree(model.parent, elsewhere)
    environment = dict(os.environ, LC_ALL="de_DE.UTF-8", LANG="tr_TR.UTF-8", TZ="Asia/Tokyo", HOME="/nonexistent",
                       USER="other", SOURCE_DATE_EPOCH="1", TMPDIR=str(elsewhere))
    done = rnncc(model.name, "-o", tmp_path / "m.so", cwd=elsewhere, env=environment, preexec_fn=lambda: os.umask(0o077))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "m.so").read_bytes() == compile(model).read_bytes()


@pytest.mark.unsanitized
def test_another_user_with_one_cpu_gets_the_same_file(rnncc, tmp_path):
    """As many clangs run at once as there are CPUs, in any order."""
    need_program("taskset")
    done = rnncc(ROOT / "models" / "digits_rnn.json", "-o", tmp_path / "m.so", "--threads=2")
    assert done.returncode == 0, done.stderr
    with User() as user:
        for name in "digits_rnn.json", "digits_rnn.safetensors":
            shutil.copy(ROOT / "models" / name, user.folder)
        user.must("taskset", "--cpu-list", min(os.sched_getaffinity(0)), rnncc.path, "digits_rnn.json", "-o", "theirs.so", "--threads=2")
        theirs = user.folder / "theirs.so"
        assert theirs.read_bytes() == (tmp_path / "m.so").read_bytes()
        assert os.getuid() or theirs.stat().st_uid != 0


@pytest.mark.parametrize("target", [*TARGETS, "aarch64-linux-gnu"])
def test_emitted_c_compiles_without_a_warning(rnncc, tmp_path, target):
    """Including vectors of 64 and 32 bytes for targets whose vectors are shorter."""
    model = Model("turned")
    for dtype in ("u8", "i16", "f32", "i64"):
        model.output(model.node("Transpose", [model.input(dtype, dtype, [40, 30])], perm=[1, 0]))
    done = rnncc(model.write(tmp_path), f"--target={target}", "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    built = subprocess.run(["make", "-s", "network.o"], cwd=tmp_path / "c", capture_output=True, text=True, timeout=120)
    assert (built.returncode, built.stderr) == (0, "")


def test_generated_c_has_no_name_of_the_model(rnncc, tmp_path):
    model = Model("unmistakable")
    model.output(model.node("Tanh", [model.input("marmalade", "f32", [3])]))
    done = rnncc(model.write(tmp_path), "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    code = "\n".join(line for line in (tmp_path / "c" / "network.c").read_text().splitlines()
                     if '"' not in line and not line.lstrip().startswith(("/*", "*", "//")))
    assert "marmalade" not in code and "unmistakable" not in code
