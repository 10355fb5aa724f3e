# SPDX-License-Identifier: MIT
"""tools/bench static, but for reading object code (kernels/test_hot_loops.py): its command line and its page."""
import json
import sys

import pytest
from conftest import ROOT
from support.bench import assert_refused, listed

sys.path.insert(0, str(ROOT / "tools"))

from benchmarks import hot_loops, static_page, static_run, transposed_networks  # noqa: E402

CODE = {"multiply-adds": ("vfmadd231ps", "%ymm1, %ymm2, %ymm{}"), "load": ("vmovups", "(%rdi), %ymm1"),
        "spill": ("vmovups", "%ymm3, 0x20(%rsp)")}


def found(sums, loads, spills, transforms=False, **cycles):
    """A loop of so many multiply-adds, loads and spills, of a tile of two vectors, or of a transform."""
    kernel = hot_loops.Kernel(4, "gemm_packed", (("VECTORS", 2), ("ROWS", 6)))
    words = [(name, operands.format(k)) for k in range(sums) for name, operands in [CODE["multiply-adds"]]]
    words += [CODE["load"]] * loads + [CODE["spill"]] * spills
    code = tuple(hot_loops.Instruction(at, name, operands) for at, (name, operands) in enumerate(words))
    loop = hot_loops.Loop(hot_loops.X86, False, code, kernel, transforms)
    times = {core: hot_loops.Cycles(cycles.get(core, 1.0), 1.0) for core in hot_loops.cores_of("x86-64-v3")}
    return static_run.Found(loop, times)


def test_all_recurrent_layers_and_networks_are_cases():
    assert {"lstm_256_b10", "gru_1024", "resnet50", "vgg19", "vocoder"} < set(listed("static"))
    assert listed("static", "gru_1024*") == ["gru_1024", "gru_1024_b10", "gru_1024_t1"]


def test_networks_of_transposed_convolutions_are_cases(rnncc, tmp_path):
    """One of known planes, one of a length of the run."""
    assert tuple(transposed_networks.NETWORKS) == static_run.TRANSPOSED
    shown = {name: rnncc("inspect", static_run.written(name, tmp_path), "--target=x86-64").stdout for name in static_run.TRANSPOSED}
    assert [text.count(" ConvTranspose ") + text.count(" PixelShuffle ") for text in shown.values()] == [4, 3]
    assert "f32[1, 3, 64, 64]" in shown["picture_generator"] and "128*frames" in shown["vocoder"]


@pytest.mark.parametrize("words, what", [(["lstm_255"], "no such case"), (["--target=x87"], "invalid choice")])
def test_a_case_or_target_that_is_not_there_is_refused(words, what):
    assert_refused("static", *words, told=what)


def test_a_good_loop_has_no_faults():
    assert static_page.faults(found(12, 8, 0), "x86-64-v3") == {}


def test_faults_are_counted():
    assert static_page.faults(found(12, 10, 3, haswell=1.5), "x86-64-v3") == {
        "spills": 3, "loads too many": 2, "haswell": 1.5}


def test_the_page_lists_what_is_wrong_and_the_record_has_the_most_of_loops_that_look_alike():
    results = {("a", "x86-64-v3"): [found(12, 8, 0), found(12, 9, 0), found(12, 8, 1, znver3=1.2)],
               ("b", "x86-64-v3"): [found(12, 8, 0)]}
    summaries = {(name, target): static_page.summary(loops, target) for (name, target), loops in results.items()}
    merged = static_page.merged({}, summaries, ["a", "b"], ["x86-64-v3"])
    page = static_page.page(merged)
    assert "| `a` | x86-64-v3 | 3 | 1 | 1.33 | haswell 1.00, " in page
    assert "| `a` | x86-64-v3 | gemm_packed | 12 | 12 | loads too many 1, spills 1, znver3 1.2 |" in page
    assert page.count("`b`") == 1
    assert json.loads(static_page.text(merged)) == merged
    assert {name: of_case["x86-64-v3"]["faults"] for name, of_case in merged.items()} == {
        "a": {"gemm_packed 12 12": {"loads too many": 1, "spills": 1, "znver3": 1.2}}, "b": {}}


def test_loops_that_are_all_well_are_said_to_be():
    results = {"b": {"x86-64-v3": static_page.summary([found(12, 8, 0)], "x86-64-v3")}}
    page = static_page.page(results)
    assert "\nNone.\n" in page and page.endswith("\nNone on the stack.\n")


def test_a_transform_that_spills_is_listed_but_is_no_fault():
    summary = static_page.summary([found(12, 8, 0), found(72, 36, 16, transforms=True)], "x86-64-v3")
    assert (summary["spills"], summary["faults"]) == (0, {})
    assert "| `a` | x86-64-v3 | 16 |" in static_page.page({"a": {"x86-64-v3": summary}})


def test_what_is_recorded_of_other_cases_and_targets_stays_in_order():
    known = {"c": {"x86-64-v3": {"loops": 3}}, "a": {"x86-64-v4": {"loops": 1}, "x86-64-v3": {"loops": 2}}}
    made = static_page.merged(known, {("a", "x86-64-v3"): {"loops": 5}, ("b", "x86-64-v4"): {"loops": 4}},
                              ["a", "b", "c"], ["x86-64-v4", "x86-64-v3"])
    assert json.dumps(made) == json.dumps({
        "a": {"x86-64-v4": {"loops": 1}, "x86-64-v3": {"loops": 5}}, "b": {"x86-64-v4": {"loops": 4}}, "c": known["c"]})


def instructions(*lines):
    return [hot_loops.Instruction(at, *line.split(" ", 1)) for at, line in enumerate(lines)]


def sums(target, *lines):
    return hot_loops.Loop(hot_loops.ARCHITECTURES[target], False, tuple(instructions(*lines))).sums


def test_a_sum_is_followed_through_registers():
    """Two, of which SSE has one in the product's register, and SVE copies one."""
    assert sums("x86-64", "movaps %xmm1, %xmm5", "mulps %xmm0, %xmm5", "addps %xmm2, %xmm5", "mulps %xmm0, %xmm6",
                "addps %xmm6, %xmm3", "mulps %xmm0, %xmm7", "addps %xmm5, %xmm7", "movaps %xmm7, %xmm2") == 2
    assert sums("aarch64-linux-gnu+sve256", "movprfx z6, z22", "fmla z6.s, p0/m, z29.s, z25.s", "ld1w { z22.s }, p0/z, [x4]",
                "fmla z7.s, p0/m, z29.s, z22.s", "fmad z22.s, p0/m, z29.s, z6.s") == 2


def test_a_sum_in_memory_is_one():
    assert sums("x86-64", "mulps %xmm0, %xmm6", "addps 0x10(%rsp), %xmm6", "movaps %xmm6, 0x10(%rsp)", "mulps %xmm1, %xmm7",
                "addps %xmm7, %xmm3") == 2


CORRECTED = {
    "split_loads": ("vfmadd231ps 0x40(%rdi), %zmm1, %zmm2\n", "vmovups 0x40(%rdi), %zmm31\nvfmadd231ps %zmm31, %zmm1, %zmm2\n"),
    "narrow_loads": ("vbroadcastss 0x4(%rdi,%rax,4), %zmm20\n", "vbroadcastss 0x4(%rdi,%rax,4), %ymm20\n"),
    "plain_broadcasts": ("vbroadcastss 0x4(%rdi), %zmm1\n", "vmovups 0x4(%rdi), %zmm1\n")}


@pytest.mark.parametrize("correction", CORRECTED)
def test_what_llvm_mca_has_wrong_is_rewritten(correction):
    before, after = CORRECTED[correction]
    others = "vbroadcastss 0x4(%rdi), %ymm1\nvfmadd231ps %zmm3, %zmm1, %zmm2\nvmovups %zmm0, (%rdi)\n"
    assert getattr(hot_loops, correction)(before + others) == after + others


def test_loads_of_multiply_adds_are_read_apart_as_well_on_x86():
    whole, apart = hot_loops.readings(hot_loops.Loop(hot_loops.X86, False, instructions("vaddps 0x40(%rdi), %ymm1, %ymm2")), "haswell")
    assert whole == apart == "vaddps 0x40(%rdi), %ymm1, %ymm2\n"
    whole, apart = hot_loops.readings(hot_loops.Loop(hot_loops.X86, False, instructions("vfmadd231ps (%rdi), %ymm1, %ymm2")), "haswell")
    assert whole == "vfmadd231ps (%rdi), %ymm1, %ymm2\n" and apart == "vmovups (%rdi), %ymm31\nvfmadd231ps %ymm31, %ymm1, %ymm2\n"
    neon = hot_loops.Loop(hot_loops.ARCHITECTURES["aarch64-linux-gnu"], False, instructions("fmla v1.4s, v2.4s, v3.s[0]"))
    assert len(hot_loops.readings(neon, "cortex-a72")) == 1


def test_llvm_mca_is_asked_once_for_readings_that_are_alike(monkeypatch):
    """And each loop has the least of its own readings."""
    taken = {"vfmadd231ps %ymm0, %ymm1, %ymm2\n": 1, "vfmadd231ps (%rdi), %ymm1, %ymm2\n": 3, "vmovups (%rdi), %ymm31\nvfmadd231ps %ymm31, %ymm1, %ymm2\n": 2}

    def simulated(texts, *_):
        asked.append(texts)
        return [hot_loops.Cycles(taken[text], 10 - taken[text]) for text in texts]

    asked = []
    monkeypatch.setattr(hot_loops, "simulated", simulated)
    loops = [hot_loops.Loop(hot_loops.X86, False, instructions(text)) for text in
             ("vfmadd231ps %ymm0, %ymm1, %ymm2", "vfmadd231ps (%rdi), %ymm1, %ymm2", "vfmadd231ps %ymm0, %ymm1, %ymm2")]
    assert hot_loops.cycles(loops, "haswell") == [hot_loops.Cycles(1, 9), hot_loops.Cycles(2, 7), hot_loops.Cycles(1, 9)]
    assert asked == [list(taken)]
