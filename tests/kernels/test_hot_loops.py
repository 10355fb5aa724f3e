# SPDX-License-Identifier: MIT
"""Hot loops are as fast as their instructions allow, also on CPUs that nobody has here: in clang's object code no vector
goes to the stack, each vector of a tile is loaded once, and by llvm-mca no loop waits for its own results. No clock is
asked. `tools/bench static` does this for all networks of the benchmarks, and records the exceptions; here a sample must
have no others."""
import json
import re
import subprocess
import sys

import numpy
import pytest
from conftest import ROOT, build_directory
from support.amount import long_tests, some
from support.model_builder import Model

sys.path.insert(0, str(ROOT / "tools"))
from benchmarks import hot_loops, static_page, static_run  # noqa: E402

RECORDED = json.loads((ROOT / "tools" / "benchmarks" / static_page.DATA_FILE).read_text())
LAYERS = some(list(dict.fromkeys(["lstm_256_b10", *static_run.RECURRENT])), 1)
NETWORKS = some(["resnet18", "densenet121", "inception_v3", "mobilenet_v2"], 1)
TRANSPOSED = some(list(static_run.TRANSPOSED), 1)
WITH_NETWORKS = some(["x86-64-v3", "aarch64-linux-gnu"], 1)  # of 16 and of 32 registers; in long tests also half of those on record
# Sums of the largest tile, by the target's registers: of all rows, and of the steps' ten samples.
MANY, FEW = {"gemm_packed": 6 * 4, "recurrent_steps": 5 * 4}, {"gemm_packed": 6 * 2, "recurrent_steps": 5 * 2}
TILES = {"x86-64-v4": MANY, "x86-64-v3": FEW, "x86-64-v2": FEW, "x86-64": FEW, "aarch64-linux-gnu": MANY,
         "aarch64-linux-gnu+sve256": MANY, "riscv64-linux-gnu+rvv128": MANY}
pytestmark = pytest.mark.optimised  # it is about the machine code


def found_in(name, target, tmp_path):
    rnncc = build_directory() / "compiler" / "rnncc"
    model = static_run.written(name, tmp_path)
    return static_run.found_in(rnncc, model, tmp_path / "c", target)


@pytest.mark.parametrize("name, target", [
    *((name, target) for name in LAYERS for target in hot_loops.ARCHITECTURES),
    *((name, target) for name in TRANSPOSED for target in (hot_loops.ARCHITECTURES if long_tests() else WITH_NETWORKS)),
    *((name, target) for k, name in enumerate(NETWORKS)
      for target in dict.fromkeys([*WITH_NETWORKS, *(list(RECORDED[name])[k % 2::2] if long_tests() else [])]))])
def test_hot_loops_run_at_the_speed_of_their_ports(name, target, tmp_path):
    loops = found_in(name, target, tmp_path)
    assert loops, "no loop multiplies and adds"
    found, recorded = static_page.summary(loops, target), RECORDED[name][target]
    assert static_page.worse(found["faults"], recorded["faults"]) == []
    assert found["transforms"] <= recorded.get("transforms", 0), "vectors on the stack"
    if name == "lstm_256_b10":
        sums = {found.loop.kernel.template: found.loop.sums for found in reversed(loops)}
        assert sums == TILES[target], "a tile fills the registers"


def measured(tmp_path, text, target="x86-64-v3"):
    (tmp_path / "loop.c").write_text(text)
    command = ["clang-19", "--target=x86_64-linux-gnu", "-O3", f"-march={target}", "-gline-tables-only", "-c", "loop.c",
               "-o", "loop.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    return static_run.measured(hot_loops.hot(hot_loops.kernel_loops(tmp_path / "loop.o", text, target)), target)


SUMS = """
/* ---- kernel 0, first for n0 (MatMul): gemm_packed VECTORS=1 ROWS={rows} ---- */
#include <immintrin.h>
void k0_sums(const float *a, const float *b, float *c, long n) {{
  __m256 sums[{rows}] = {{0}};
  for (long k = 0; k < n; k++)
    for (int i = 0; i < {rows}; i++)
      sums[i] = _mm256_fmadd_ps(_mm256_loadu_ps(a + 8 * k), _mm256_set1_ps(b[{rows} * k + i]), sums[i]);
  for (int i = 0; i < {rows}; i++) _mm256_storeu_ps(c + 8 * i, sums[i]);
}}"""


def test_a_spill_is_seen(tmp_path):
    """Twenty sums in sixteen registers."""
    [found] = measured(tmp_path, SUMS.format(rows=20))
    assert found.loop.multiply_adds % 20 == 0 and "spills" in static_page.faults(found, "x86-64-v3")


def test_a_loop_that_waits_for_its_results_is_seen(tmp_path):
    """Four sums, each of which takes four cycles: half of what two ports can do."""
    [found] = measured(tmp_path, SUMS.format(rows=4))
    assert not found.loop.spills and {"znver3", "sapphirerapids"} < set(static_page.faults(found, "x86-64-v3"))


def test_loads_are_counted(tmp_path):
    """One vector and twelve elements a step; a tile of four rows of three vectors would need seven loads."""
    [found] = measured(tmp_path, SUMS.format(rows=12))
    assert (found.loop.sums, found.loop.loads) == (12, 13 * found.loop.turns)
    assert "loads too many" not in static_page.faults(found, "x86-64-v3")
    [other] = measured(tmp_path, SUMS.format(rows=12).replace("VECTORS=1", "VECTORS=3"))
    assert static_page.faults(other, "x86-64-v3")["loads too many"] == 6 * found.loop.turns


def test_what_gets_worse_is_said():
    before = {"conv_direct 16 8": {"haswell": 1.27, "spills": 2}}
    assert static_page.worse({"conv_direct 16 8": {"haswell": 1.28, "spills": 2}}, before) == []
    assert static_page.worse({"conv_direct 16 8": {"spills": 3}}, before) == ["conv_direct 16 8: spills 3, recorded 2"]
    assert static_page.worse({"gemm_packed 24 12": {"znver3": 1.2}}, before) == ["gemm_packed 24 12: znver3 1.2, recorded 0"]


# A load and a store of a whole vector, in a listing.
WHOLE_VECTORS = {"x86-64-v4": (r"vmov\w+ [^%]*\(.*\), %zmm", r"vmov\w+ %zmm\d+, .*\("),
                 "x86-64-v3": (r"vmov\w+ [^%]*\(.*\), %ymm", r"vmov\w+ %ymm\d+, .*\("),
                 "aarch64-linux-gnu": (r"ldu?r q\d+, \[", r"stu?r q\d+, \[")}


def copies(loop, load, store):
    """Does a loop load whole vectors, store as many, and touch no other memory?"""
    loads, stores = (sum(1 for one in loop if re.match(pattern, str(one))) for pattern in (load, store))
    return 0 < loads == stores and loads + stores == sum(1 for one in loop if re.search(r"[(\[]", one.operands))


@pytest.mark.parametrize("target", WHOLE_VECTORS)
def test_a_matrix_is_packed_by_vectors(target, tmp_path):
    """Where the right-hand matrix is an input: a loop that does nothing but load vectors and store them."""
    model = Model("packed")
    inputs = [model.input(name, "f32", [64, 64]) for name in "ab"]
    model.output(model.node("MatMul", inputs))
    rnncc = build_directory() / "compiler" / "rnncc"
    _, made = static_run.compiled(rnncc, model.write(tmp_path), tmp_path / "c", target)
    architecture = hot_loops.ARCHITECTURES[target]
    loops = [code for _, instructions in hot_loops.functions(made, architecture)
             for code in hot_loops.innermost_loops(instructions, architecture.jump)]
    assert any(copies(code, *WHOLE_VECTORS[target]) for code in loops)


# Vector instructions that compute, a vector of results: LSTM's cells and many networks of images live by the first two.
ACTIVATIONS = {"x86-64-v4": {"Sigmoid": 17, "Tanh": 20, "Softmax": 17}, "x86-64-v3": {"Sigmoid": 17, "Tanh": 22, "Softmax": 17},
               "aarch64-linux-gnu": {"Sigmoid": 18, "Tanh": 23, "Softmax": 17}}


def computes(instruction):
    """Not a copy, a load or a store, nor of addresses and counts."""
    return re.search(r"%[xyz]mm|\b[vq]\d+\b", instruction.operands) and not re.match(r"vmov|vbroadcast|mov|ld|st", instruction.name)


@pytest.mark.parametrize("target", ACTIVATIONS)
@pytest.mark.parametrize("op", ["Sigmoid", "Tanh", "Softmax"])
def test_an_activation_takes_no_more_instructions_than_on_record(op, target, tmp_path):
    model = Model("activation")
    model.output(model.node(op, [model.input("x", "f32", [64, 1000])]))
    rnncc = build_directory() / "compiler" / "rnncc"
    _, made = static_run.compiled(rnncc, model.write(tmp_path), tmp_path / "c", target)
    architecture, (_, store) = hot_loops.ARCHITECTURES[target], WHOLE_VECTORS[target]
    loops = [code for _, instructions in hot_loops.functions(made, architecture)
             for code in hot_loops.innermost_loops(instructions, architecture.jump)]
    longest = max(loops, key=len)
    vectors = sum(bool(re.match(store, str(one))) for one in longest)
    assert vectors and sum(bool(computes(one)) for one in longest) <= ACTIVATIONS[target][op] * vectors


@pytest.mark.parametrize("target", ["aarch64-linux-gnu", "aarch64-linux-gnu+sve256", "x86-64"])
def test_a_depthwise_tile_of_stride_2_stays_in_registers(target, tmp_path):
    """On aarch64 clang would load all inputs of a tile before its multiply-adds; on SSE a product needs a register."""
    model, draw = Model("strided"), numpy.random.default_rng(3)
    x = model.input("x", "f32", [1, 16, 112, 112])
    for shape, attributes in (((64, 16, 1, 1), {}), ((64, 1, 3, 3), {"group": 64, "strides": [2, 2], "pads": [1, 1, 1, 1]}),
                              ((16, 64, 1, 1), {})):
        x = model.node("Conv", [x, model.constant(draw.standard_normal(shape).astype(numpy.float32))], **attributes)
    model.output(x)
    loops = static_run.found_in(build_directory() / "compiler" / "rnncc", model.write(tmp_path), tmp_path / "c", target)
    spills = [found.loop.spills for found in loops if found.loop.kernel.template == "conv_depthwise"]
    assert spills and not any(spills)


def test_a_tile_of_one_vector_of_channels_stays_in_registers(tmp_path):
    """On SVE clang copies such sums from step to step: of 25 columns it moved 18 vectors to the stack or from there."""
    model, draw = Model("vector"), numpy.random.default_rng(6)
    x = model.input("x", "f32", [1, 8, 14, 14])
    for kernels, channels in ((64, 8), (8, 64)):
        weights, bias = (model.constant(draw.standard_normal(shape).astype(numpy.float32))
                         for shape in ((kernels, channels, 1, 1), kernels))
        x = model.node("Conv", [x, weights, bias])
    model.output(x)
    loops = static_run.found_in(build_directory() / "compiler" / "rnncc", model.write(tmp_path), tmp_path / "c",
                                "aarch64-linux-gnu+sve256")
    assert max(found.loop.sums for found in loops) == 20 and not any(found.loop.spills for found in loops)


@pytest.mark.parametrize("target, sums", [("x86-64-v3", 10), ("aarch64-linux-gnu", 16), ("riscv64-linux-gnu+rvv128", 12)])
def test_a_row_from_memory_has_sums_enough_for_the_widest_cpu(target, sums, tmp_path):
    """Weights beyond a quarter of the last cache: one panel at a time."""
    model, n = Model("row"), 1104
    weights = numpy.random.default_rng(4).standard_normal((n, n)).astype(numpy.float32)
    model.output(model.node("MatMul", [model.input("x", "f32", [1, n]), model.constant(weights)]))
    loops = static_run.found_in(build_directory() / "compiler" / "rnncc", model.write(tmp_path), tmp_path / "c", target)
    assert loops and all(found.loop.sums >= sums and not static_page.faults(found, target) for found in loops)


@pytest.mark.parametrize("target, sums", some([("x86-64-v3", 12), ("x86-64-v4", 28), ("x86-64", 12), ("aarch64-linux-gnu", 24),
                                               ("aarch64-linux-gnu+sve256", 24), ("riscv64-linux-gnu+rvv128", 24)], 3))
def test_a_transposed_convolution_has_the_tiles_of_an_ordinary_one(target, sums, tmp_path):
    """Eight phases of two taps. On SSE a product waits for its copy, as in ordinary convolutions on record."""
    model = Model("transposed")
    weights = numpy.random.default_rng(5).standard_normal((256, 128, 16)).astype(numpy.float32)
    model.output(model.node("ConvTranspose", [model.input("x", "f32", [1, 256, 200]), model.constant(weights)], strides=[8]))
    loops = static_run.found_in(build_directory() / "compiler" / "rnncc", model.write(tmp_path), tmp_path / "c", target)
    assert max(found.loop.sums for found in loops) == sums and not any(found.loop.spills for found in loops)
    waits = {"sandybridge", "haswell", "znver3"} if target == "x86-64" else set()
    assert all(set(static_page.faults(found, target)) <= waits for found in loops)


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("precision", some(["bf16", "f16", "int8", "int4:32"], 2))
def test_small_weights_become_floats_in_registers(precision, target, tmp_path):
    """Beside the sums, of which a GRU has three vectors in four parts, the most of all cells."""
    rnncc, model = build_directory() / "compiler" / "rnncc", static_run.written("gru_256", tmp_path)
    loops = static_run.found_in(rnncc, model, tmp_path / "c", target, f"--precision={precision}")
    assert loops and not any(found.loop.spills for found in loops)
