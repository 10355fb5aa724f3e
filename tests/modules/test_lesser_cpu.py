# SPDX-License-Identifier: MIT
"""On a CPU without AVX-512, emulated by QEMU, no AVX-512 instruction is run; and $RNNCC_CPU_WITHOUT imitates such a CPU."""
import os
import subprocess

import pytest

from conftest import build_directory
from support import machine

HASWELL = ("qemu-x86_64", "-cpu", "Haswell")  # AVX2, FMA and F16C; an AVX-512 instruction ends in SIGILL
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


def test_a_c_test_of_avx2_runs():
    """Not `vocabulary`: QEMU reads memory that a masked load must not touch."""
    done = run(*HASWELL, build_directory() / "tests" / "kernels" / "double_check_avx2")
    assert done.returncode == 0 and "SKIP" not in done.stdout and "\n1.." in done.stdout, done.stdout


def test_native_is_what_the_cpu_has(rnncc):
    emulated, imitated = run(*HASWELL, rnncc.path, "targets"), run(rnncc.path, "targets", **IMITATED)
    assert emulated.stdout == imitated.stdout != ""
    natives = [line.split()[0] for line in imitated.stdout.splitlines() if line.endswith(" native")]
    assert natives == ["x86-64-v3"]


@pytest.mark.optimised
@pytest.mark.parametrize("model", ["digits_cnn", "digits_rnn"])
def test_a_native_module_runs_and_computes_what_it_does_here(rnncc, rnnrun, root, tmp_path, model):
    module, results = tmp_path / "m.so", []
    done = rnncc(root / "models" / f"{model}.json", "-o", module, env={**os.environ, **IMITATED})
    assert done.returncode == 0, done.stderr
    inputs = [line.split()[1] for line in rnnrun("inspect", module).stdout.splitlines() if line.startswith("input")]
    for prefix in ((), HASWELL):
        done = run(*prefix, rnnrun.path, "run", module, *(word for name in inputs for word in ("--input", f"{name}=random")))
        assert done.returncode == 0 and done.stdout, done.stderr
        results.append(done.stdout)
    assert results[0] == results[1]


def test_a_module_for_avx512_is_refused(rnncc, rnnrun, root, tmp_path):
    def refused(*prefix, **data):
        environment = {name: value for name, value in os.environ.items() if name != "RNNCC_DATA"} | data
        done = rnncc(root / "models" / "digits_rnn.json", "-o", tmp_path / "m.so", "--target=x86-64-v4", env=environment)
        assert done.returncode == 0, done.stderr
        done = run(*prefix, rnnrun.path, "inspect", tmp_path / "m.so")
        assert done.returncode == 5 and "this module needs AVX-512" in done.stderr, done.stderr
        return [line for line in done.stderr.splitlines() if not line.startswith("qemu")]

    (tmp_path / "data").mkdir()
    imitated = machine.lesser_data(tmp_path / "data", "avx512")
    assert refused(*HASWELL) == refused(RNNCC_DATA=str(imitated))


def test_an_instruction_set_that_cannot_be_masked_is_an_error(rnncc):
    done = run(rnncc.path, "targets", RNNCC_CPU_WITHOUT="sse2")
    assert done.returncode == 2 and "RNNCC_CPU_WITHOUT=sse2: expected an instruction set, such as avx512" in done.stderr
