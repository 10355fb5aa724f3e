# SPDX-License-Identifier: MIT
"""tools/bench static, but for reading object code (kernels/test_hot_loops.py): its command line and its page."""
import subprocess
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))

from benchmarks import hot_loops, static_page, static_run  # noqa: E402

CODE = {"multiply-adds": ("vfmadd231ps", "%ymm1, %ymm2, %ymm{}"), "load": ("vmovups", "(%rdi), %ymm1"),
        "spill": ("vmovups", "%ymm3, 0x20(%rsp)")}


def found(sums, loads, spills, **cycles):
    """A loop of so many multiply-adds, loads and spills, of a tile of two vectors."""
    kernel = hot_loops.Kernel(4, "gemm_packed", (("VECTORS", 2), ("ROWS", 6)))
    words = [(name, operands.format(k)) for k in range(sums) for name, operands in [CODE["multiply-adds"]]]
    words += [CODE["load"]] * loads + [CODE["spill"]] * spills
    code = tuple(hot_loops.Instruction(at, name, operands) for at, (name, operands) in enumerate(words))
    loop = hot_loops.Loop(hot_loops.X86, False, code, kernel)
    times = {core: hot_loops.Cycles(cycles.get(core, 1.0), 1.0) for core in hot_loops.cores_of("x86-64-v3")}
    return static_run.Found(loop, times)


def bench(*words):
    return subprocess.run([ROOT / "tools" / "bench", "static", *words], capture_output=True, text=True, timeout=60)


def test_all_recurrent_layers_and_networks_are_cases():
    done = bench("--list")
    assert done.returncode == 0 and {"lstm_256_b10", "gru_1024", "resnet50", "vgg19"} < set(done.stdout.split())
    assert bench("--list", "gru_1024*").stdout.split() == ["gru_1024", "gru_1024_b10", "gru_1024_t1"]


@pytest.mark.parametrize("words, what", [(["lstm_255"], "no such case"), (["--target=x87"], "invalid choice")])
def test_a_case_or_target_that_is_not_there_is_refused(words, what):
    done = bench(*words)
    assert (done.returncode, done.stdout) == (2, "") and what in done.stderr


def test_a_good_loop_has_no_faults():
    assert static_page.faults(found(12, 8, 0), "x86-64-v3") == {}


def test_faults_are_counted():
    assert static_page.faults(found(12, 10, 3, haswell=1.5), "x86-64-v3") == {
        "spills": 3, "loads too many": 2, "haswell": 1.5}


def test_the_page_lists_what_is_wrong_and_the_record_has_the_most_of_loops_that_look_alike():
    results = {("a", "x86-64-v3"): [found(12, 8, 0), found(12, 9, 0), found(12, 8, 1, znver3=1.2)],
               ("b", "x86-64-v3"): [found(12, 8, 0)]}
    page = static_page.page(results)
    assert "| `a` | x86-64-v3 | 3 | 1 | 1.33 | haswell 1.00, " in page
    assert "| `a` | x86-64-v3 | gemm_packed | 12 | 12 | loads too many 1, spills 1, znver3 1.2 |" in page
    assert page.count("`b`") == 1
    assert static_page.data(results) == {
        "a": {"x86-64-v3": {"gemm_packed 12 12": {"loads too many": 1, "spills": 1, "znver3": 1.2}}}, "b": {"x86-64-v3": {}}}


def test_loops_that_are_all_well_are_said_to_be():
    assert static_page.page({("b", "x86-64-v3"): [found(12, 8, 0)]}).endswith("\nNone.\n")
