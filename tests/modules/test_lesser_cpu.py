# SPDX-License-Identifier: MIT
"""On a lesser CPU, emulated by QEMU, no instruction is run that it lacks; and $RNNCC_CPU_WITHOUT imitates such a CPU."""
import os
import subprocess

import pytest

from conftest import build_directory
from support import machine

# An instruction that the CPU lacks ends in SIGILL.
HASWELL = ("qemu-x86_64", "-cpu", "Haswell")  # AVX2, FMA and F16C
NEHALEM = ("qemu-x86_64", "-cpu", "Nehalem")  # SSE4.2
CORE2 = ("qemu-x86_64", "-cpu", "core2duo")  # SSSE3
LESSER = {"avx512": (HASWELL, "x86-64-v3"), "avx2": (NEHALEM, "x86-64-v2"), "sse42": (CORE2, "x86-64")}
IMITATED = {"RNNCC_CPU_WITHOUT": "avx512"}
NO_TESTS = "1..0 # SKIP this CPU has no AVX-512\n"


@pytest.fixture(autouse=True)
def what_it_takes():
    machine.need_isa("avx2")
    machine.need_program("qemu-x86_64")


def run(*command, **environment):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **environment})


@pytest.mark.parametrize("name", ["double_check", "math_ulp", "vocabulary"])
def test_c_tests_of_avx512_are_skipped(name):
    program = build_directory() / "tests" / "kernels" / f"{name}_avx512"
    for done in (run(*HASWELL, program), run(program, **IMITATED)):
        assert (done.returncode, done.stdout) == (0, NO_TESTS)


@pytest.mark.long
def test_a_c_test_of_avx2_runs():
    """Not `vocabulary`: QEMU reads memory that a masked load must not touch."""
    done = run(*HASWELL, build_directory() / "tests" / "kernels" / "double_check_avx2")
    assert done.returncode == 0 and "SKIP" not in done.stdout and "\n1.." in done.stdout, done.stdout


@pytest.mark.parametrize("without", LESSER)
def test_native_is_what_the_cpu_has(rnncc, without):
    cpu, native = LESSER[without]
    done = run(*cpu, rnncc.path, "targets"), run(rnncc.path, "targets", RNNCC_CPU_WITHOUT=without)
    emulated, imitated = (each.stdout.split("\n\n")[0] for each in done)  # below are the two CPUs' names and speeds
    assert emulated == imitated != ""
    natives = [line.split()[0] for line in imitated.splitlines() if line.endswith(" native")]
    assert natives == [native]


@pytest.mark.optimised
@pytest.mark.parametrize("model, without", [("digits_cnn", "avx512"), ("digits_rnn", "avx512"), ("digits_rnn", "avx2")])
def test_a_native_module_runs_and_computes_what_it_does_here(rnncc, rnnrun, root, tmp_path, model, without):
    module, results = tmp_path / "m.so", []
    done = rnncc(root / "models" / f"{model}.json", "-o", module, env={**os.environ, "RNNCC_CPU_WITHOUT": without})
    assert done.returncode == 0, done.stderr
    inputs = [line.split()[1] for line in rnnrun("inspect", module).stdout.splitlines() if line.startswith("input")]
    for prefix in ((), LESSER[without][0]):
        done = run(*prefix, rnnrun.path, "run", module, *(word for name in inputs for word in ("--input", f"{name}=random")))
        assert done.returncode == 0 and done.stdout, done.stderr
        results.append(done.stdout)
    assert results[0] == results[1]


@pytest.mark.parametrize("target, without, title", [("x86-64-v4", "avx512", "AVX-512"), ("x86-64-v3", "avx2", "AVX2"),
                                                    ("x86-64-v2", "sse42", "SSE4.2")])
def test_a_module_for_more_is_refused(rnncc, rnnrun, root, tmp_path, target, without, title):
    def refused(*prefix, **data):
        environment = {name: value for name, value in os.environ.items() if name != "RNNCC_DATA"} | data
        done = rnncc(root / "models" / "digits_rnn.json", "-o", tmp_path / "m.so", f"--target={target}", env=environment)
        assert done.returncode == 0, done.stderr
        done = run(*prefix, rnnrun.path, "inspect", tmp_path / "m.so")
        assert done.returncode == 5 and f"this module needs {title} (" in done.stderr, done.stderr
        return [line for line in done.stderr.splitlines() if not line.startswith("qemu")]

    (tmp_path / "data").mkdir()
    imitated = machine.lesser_data(tmp_path / "data", without)
    assert refused(*LESSER[without][0]) == refused(RNNCC_DATA=str(imitated))


def test_an_instruction_set_that_cannot_be_masked_is_an_error(rnncc):
    done = run(rnncc.path, "targets", RNNCC_CPU_WITHOUT="sse2")
    assert done.returncode == 2 and "RNNCC_CPU_WITHOUT=sse2: expected an instruction set, such as avx512" in done.stderr
