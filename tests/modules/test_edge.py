# SPDX-License-Identifier: MIT
"""--profile=edge: a library that needs no libc but memcpy, memmove and memset, no thread, no heap; and is small."""
import re
import subprocess

import numpy
import pytest

from conftest import ROOT
from support.emitted import run_module, run_by

pytestmark = pytest.mark.optimised  # it is about the machine code

KB = 1000
MODEL = ROOT / "models" / "digits_rnn.json"
ONE = ("--dim", "B=1")
IMAGE = numpy.random.default_rng(6).random((1, 8, 8), dtype=numpy.float32)
LIBC = {"memcpy", "memmove", "memset"}
LINKER = {"_GLOBAL_OFFSET_TABLE_"}


def output(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120, **options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.fixture
def library(rnncc, tmp_path):
    """library(target) -> libdigits_rnn.a and what rnncc says, with digits_rnn.h beside it."""

    def made(target, *options):
        done = rnncc(MODEL, "--static", "--profile=edge", f"--target={target}", *ONE, *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return tmp_path / "libdigits_rnn.a", done.stdout

    return made


def linked(compiler, library, include, folder, *after):
    """The program: only the compiler's own headers, no library, no start files."""
    own = output(compiler[0], "-print-file-name=include").strip()
    (folder / "image.h").write_text("static const float image[] = {" + ", ".join(float(x).hex() + "f" for x in IMAGE.flat) + "};\n")
    output(*compiler, "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fno-builtin", "-nostdinc", "-isystem",
           own, f"-I{folder}", f"-I{include}", f"-I{ROOT}/runtime", "-nostdlib", "-static", ROOT / "tests" / "modules" / "edge_program.c",
           library, *after, "-o", folder / "program")
    return folder / "program"


def probabilities(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, timeout=60)
    assert done.returncode == 0, f"promise {done.returncode} of edge_program.c is broken"
    return numpy.frombuffer(done.stdout, numpy.float32)


def undefined(library):
    return {line.split()[-1] for line in output("nm", "-u", library).splitlines() if " U " in line}


@pytest.mark.parametrize("target", ["x86-64", "aarch64-linux-gnu"])
def test_it_runs_without_libc(library, compile, request, tmp_path, target):
    archive, _ = library(target)
    assert undefined(archive) <= LIBC
    triple = "aarch64-linux-gnu" if target.startswith("aarch64") else "x86_64-linux-gnu"
    program = linked(["clang-19", f"--target={triple}", "-fuse-ld=lld"], archive, tmp_path, tmp_path)
    module = compile(MODEL, f"--target={target}", "--threads=1", *ONE)
    if target.startswith("aarch64"):
        (expected,) = run_by(request.getfixturevalue("aarch64_rnnrun"), module, {"x": IMAGE}, ["probabilities"], tmp_path).values()
        got = probabilities("qemu-aarch64", program)
    else:
        (expected,) = run_module(module, {"x": IMAGE}).values()
        got = probabilities(program)
    assert got.tolist() == expected.ravel().tolist()


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_its_c_builds_and_runs_without_libc(rnncc, compile, tmp_path, compiler):
    done = rnncc(MODEL, "--emit=c", "--profile=edge", "--target=x86-64", *ONE, "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    own = output(compiler, "-print-file-name=include").strip()
    output("make", "-s", f"CC={compiler} -Wall -Wextra -Werror -nostdinc -isystem {own}", cwd=tmp_path / "c")
    done = rnncc(MODEL, "--emit=h", *ONE, "-o", tmp_path / "digits_rnn.h", "--profile=edge")
    assert done.returncode == 0, done.stderr
    archive = tmp_path / "c" / "libdigits_rnn.a"
    assert {name for name in undefined(archive) if not name.startswith("digits_rnn_")} <= LIBC | LINKER
    (expected,) = run_module(compile(MODEL, "--target=x86-64", "--threads=1", *ONE), {"x": IMAGE}).values()
    assert probabilities(linked([compiler], archive, tmp_path, tmp_path)).tolist() == expected.ravel().tolist()


@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64", "aarch64-linux-gnu"])
def test_it_is_small(library, target):
    archive, said = library(target)
    sections = re.findall(r"^(\.\S+)\s+(\d+)\s+\d+$", output("size", "-A", archive), re.MULTILINE)

    def total(*prefixes):
        return sum(int(size) for name, size in sections if name.startswith(prefixes))

    weights = total(".rodata.weights")
    code = total(".text", ".rodata", ".data", ".eh_frame") - weights
    told = re.fullmatch(r"digits_rnn: (\d+) bytes of weights, (\d+) bytes of working memory\n", said)
    header = (archive.parent / "digits_rnn.h").read_text()
    assert weights < 100 * KB and 5 * KB < code < 40 * KB and total(".bss") == 0
    assert abs(weights - int(told[1])) <= 64 and int(told[2]) < 10 * KB
    assert f"digits_rnn_CONTEXT_BYTES = {told[2]}," in header


CORTEX_M4 = "-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16"


def test_it_runs_on_a_microcontroller(rnncc, compile, tmp_path):
    """Plain C for a Cortex-M4, in 128 KB of flash and 16 KB of RAM that are known at link time; the results are those of
    the module of the same C."""
    done = rnncc(MODEL, "--emit=c", "--profile=edge", "--target=x86-64", *ONE, "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    done = rnncc(MODEL, "--emit=h", "--profile=edge", "--target=x86-64", *ONE, "-o", tmp_path / "digits_rnn.h")
    assert done.returncode == 0, done.stderr
    flags = f"-std=c11 -O2 -ffreestanding -fno-math-errno -DRNNCC_EDGE -Wall -Wextra -Werror {CORTEX_M4}"
    output("make", "-s", "CC=arm-none-eabi-gcc", "AR=arm-none-eabi-ar", f"KERNEL_FLAGS={flags}", f"RUNTIME_FLAGS={flags}",
           cwd=tmp_path / "c")
    program = linked(["arm-none-eabi-gcc", *CORTEX_M4.split(), "-T", ROOT / "tests" / "modules" / "cortex_m.ld"],
                     tmp_path / "c" / "libdigits_rnn.a", tmp_path, tmp_path, "-lgcc")
    got = probabilities("qemu-system-arm", "-M", "mps2-an386", "-display", "none", "-monitor", "none", "-serial", "none",
                        "-semihosting-config", "enable=on,target=native", "-kernel", program)
    (expected,) = run_module(compile(MODEL, "--target=x86-64", "--threads=1", *ONE), {"x": IMAGE}).values()
    assert got.tolist() == expected.ravel().tolist()


def test_neither_messages_nor_a_profile_are_in_it(library):
    archive, _ = library("x86-64")
    texts = output("strings", "-n", "5", archive)
    assert "digits_rnn" in texts and "probabilities" in texts
    for text in ("has type", "the model's is", "the buffer", "overlaps", "lacks", "k0_", "recurrent_steps", "softmax"):
        assert text not in texts, text


@pytest.mark.parametrize("words, message", [
    (["--static", "--threads=2"], "--profile=edge: expected one thread, found --threads=2"),
    (["--static", "--target=aarch64-linux-gnu+dotprod"],
     "--profile=edge: expected a target without features, found aarch64-linux-gnu+dotprod"),
    ([], "--profile=edge goes with --static, --emit=c and --emit=h"),
    (["--static", "--profile=tiny"], "--profile: expected full or edge")])
def test_what_goes_together(rnncc, words, message):
    done = rnncc(MODEL, "--profile=edge", *words)
    assert done.returncode == 2 and message in done.stderr
