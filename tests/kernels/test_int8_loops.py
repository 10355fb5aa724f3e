# SPDX-License-Identifier: MIT
"""The hot loops of products of 8-bit numbers, in clang's object code: one dot product a step for each sum, no sum on the
stack, each input and each vector of weights loaded once, and by llvm-mca no wait for a result. No clock is asked."""
import re
import subprocess
import sys
from dataclasses import replace

import numpy
import pytest
from conftest import ROOT
from onnx import helper
from support.onnx_files import model_of, write

sys.path.insert(0, str(ROOT / "tools"))
from benchmarks import hot_loops  # noqa: E402

VNNI = replace(hot_loops.X86, multiply_add=re.compile(r"vpdpbusd$"))
VEX_VNNI = replace(VNNI, multiply_add=re.compile(r"\{vex\}$"))  # stands before vpdpbusd
PAIRS = replace(hot_loops.X86, multiply_add=re.compile(r"vpmaddwd$"))
DOTPROD = replace(hot_loops.AARCH64, multiply_add=re.compile(r"sdot$"))
SVE = replace(hot_loops.SVE, multiply_add=re.compile(r"sdot$"))
# target: (its instructions, rows and vectors of the largest tile, products of a dot product, a core of llvm-mca)
TARGETS = {
    "x86-64-v4+vnni": (VNNI, 6, 4, 1, "sapphirerapids"),
    "x86-64-v3+vnni": (VEX_VNNI, 6, 2, 1, "sapphirerapids"),
    "x86-64-v4": (PAIRS, 5, 4, 2, "sapphirerapids"),
    "x86-64-v3": (PAIRS, 4, 2, 2, "haswell"),
    "aarch64-linux-gnu+dotprod": (DOTPROD, 6, 4, 1, "neoverse-n1"),
    "aarch64-linux-gnu+sve256": (SVE, 6, 4, 1, "neoverse-v1"),
}


def loops_of(rnncc, target, tmp_path):
    """Innermost loops of the product, those with most dot products last."""
    architecture = TARGETS[target][0]
    weights = numpy.random.default_rng(1).integers(-128, 128, (256, 256)).astype(numpy.int8)
    node = helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    model = write(tmp_path, model_of([node], {"a": (2, [60, 256])}, {"y": (6, [60, 256])}, {"b": weights}))
    folder = tmp_path / "c"
    done = rnncc(model, f"--target={target}", "--emit=c", "-o", folder)
    assert done.returncode == 0, done.stderr
    subprocess.run(["make", "-s", "-C", folder, "network.o", "STATIC_FLAGS=-fno-function-sections"], check=True)
    found = []
    for _, code in hot_loops.functions(folder / "network.o", architecture):
        framed = any(architecture.frame.match(str(one)) for one in code)
        found += [hot_loops.Loop(architecture, framed, loop) for loop in hot_loops.innermost_loops(code, architecture.jump)]
    return sorted((loop for loop in found if loop.multiply_adds), key=lambda loop: (loop.sums, loop.multiply_adds))


@pytest.mark.optimised  # it is about the machine code
@pytest.mark.parametrize("target", TARGETS)
def test_no_sum_goes_to_the_stack_and_nothing_is_loaded_twice(target, rnncc, tmp_path):
    architecture, rows, vectors, products, core = TARGETS[target]
    loops = loops_of(rnncc, target, tmp_path)
    assert loops, "no loop has dot products"
    hot = loops[-1]
    steps = hot.multiply_adds / (rows * vectors * products)
    assert steps in (1, 2, 4), f"{hot.multiply_adds} products of a tile of {rows} rows and {vectors} vectors"
    assert not hot.spills, "\n".join(hot.spills)
    in_memory = sum("(" in one.operands for one in hot.products) if architecture.triple == "x86_64" else 0
    assert hot.loads <= steps * (rows + vectors) + in_memory, hot.loads
    [cycles] = hot_loops.simulated([hot_loops.assembly(hot)], architecture, core)
    assert cycles.taken <= 1.15 * cycles.bound, cycles
