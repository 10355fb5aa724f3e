# SPDX-License-Identifier: MIT
"""The hot loops of products of bf16, in clang's object code, those by BFMMLA beside those of f32: by llvm-mca they take fewer
cycles where several rows are bound by multiply-adds, no sum is on the stack, and each row and vector of weights is loaded once.
No clock is asked."""
import re
import subprocess
import sys
from dataclasses import replace

import numpy
import pytest
from conftest import ROOT
from support.model_builder import Model

sys.path.insert(0, str(ROOT / "tools"))
from benchmarks import hot_loops  # noqa: E402

FLOATS = hot_loops.AARCH64
TILES = replace(FLOATS, multiply_add=re.compile(r"bfmmla$"))
DOTS = replace(hot_loops.X86, multiply_add=re.compile(r"vdpbf16ps$"))
CORES = ("neoverse-v1", "neoverse-n2")
VECTORS, DEPTH = 4, 4  # of a panel; that a tile multiplies at once
pytestmark = pytest.mark.optimised  # it is about the machine code


def product(rows, size=256):
    rng, model = numpy.random.default_rng(1), Model("product")
    w = model.constant(rng.uniform(-1, 1, (size, size)).astype(numpy.float32))
    model.output(model.node("MatMul", [model.input("x", "f32", [rows, size]), w]))
    return model


def lstm(samples):
    """50 steps of 128 units."""
    rng, model = numpy.random.default_rng(1), Model("layer")
    W, R = (model.constant(rng.uniform(-1, 1, (1, 4 * 128, 128)).astype(numpy.float32) / 128) for _ in range(2))
    model.output(model.node("LSTM", [model.input("x", "f32", [50, samples, 128]), W, R], hidden_size=128))
    return model


def loops_of(rnncc, model, architecture, folder, *options):
    """Innermost loops that multiply and add, of the network that is compiled with these options."""
    folder.mkdir()
    done = rnncc(model.write(folder), "--emit=c", "-o", folder / "c", *options)
    assert done.returncode == 0, done.stderr
    subprocess.run(["make", "-s", "-C", folder / "c", "network.o", "STATIC_FLAGS=-fno-function-sections"], check=True)
    found = []
    for _, code in hot_loops.functions(folder / "c" / "network.o", architecture):
        framed = any(architecture.frame.match(str(one)) for one in code)
        found += [hot_loops.Loop(architecture, framed, loop) for loop in hot_loops.innermost_loops(code, architecture.jump)]
    return [loop for loop in found if loop.multiply_adds]


# rows, those of a block, the part of the cycles that products of bf16 take at most on each core.
@pytest.mark.parametrize("model, rows, block, parts", [
    (product, 60, 6, (.4, .4)), (product, 2, 2, (.35, .42)), (lstm, 2, 2, (.35, .42)), (lstm, 3, 3, (.42, .53)), (lstm, 8, 4, (.42, .42))])
def test_products_of_several_rows_gain_over_floats(model, rows, block, parts, rnncc, tmp_path):
    """Cycles of a step of the depth."""
    options = ["--rnn=workers=1,batch_parts=1"] if model is lstm else []
    floats = loops_of(rnncc, model(rows), FLOATS, tmp_path / "floats", "--target=aarch64-linux-gnu", *options)
    tiles = loops_of(rnncc, model(rows), TILES, tmp_path / "tiles", "--target=aarch64-linux-gnu+bf16",
                     "--precision=bf16-dynamic", *options)
    pairs = (block + 1) // 2
    wide = max((loop for loop in floats if loop.sums == VECTORS * block and not loop.spills), key=lambda loop: loop.turns)
    narrow = min((loop for loop in tiles if loop.sums == loop.multiply_adds == 2 * VECTORS * pairs), key=lambda loop: len(loop.code))
    assert not narrow.spills, "\n".join(narrow.spills)
    assert narrow.loads == 2 * VECTORS + block, narrow.loads
    for core, most in zip(CORES, parts):
        taken = {}
        for name, loop, steps in (("f32", wide, wide.turns), ("bf16", narrow, DEPTH)):
            [cycles] = hot_loops.simulated([hot_loops.assembly(loop)], loop.architecture, core)
            taken[name] = cycles.taken / steps
        assert taken["bf16"] <= most * taken["f32"], (core, taken)


def test_the_sums_of_one_row_by_many_weights_are_in_registers(rnncc, tmp_path):
    """A panel is as wide as it can be where weights come from memory; a tile has sums of two rows."""
    tiles = loops_of(rnncc, product(1, 1024), TILES, tmp_path / "tiles", "--target=aarch64-linux-gnu+bf16", "--precision=bf16-dynamic")
    hot = max(tiles, key=lambda loop: loop.sums)
    assert hot.sums == hot.multiply_adds == 16 and not hot.spills, (hot.sums, hot.spills)


# rows, and those of a block.
@pytest.mark.parametrize("model, rows, block", [(product, 60, 6), (product, 2, 2), (product, 1, 1), (lstm, 8, 4)])
def test_dot_products_of_pairs_are_all_that_a_step_has_beside_its_loads(model, rows, block, rnncc, tmp_path):
    """A broadcast of each row's pair, which is on the stack, and a vector of weights for each of the panel; four instructions
    count. With several rows no product waits."""
    options = ["--rnn=workers=1,batch_parts=1"] if model is lstm else []
    loops = loops_of(rnncc, model(rows), DOTS, tmp_path / "dots", "--target=x86-64-v4+bf16", "--precision=bf16-dynamic", *options)
    hot = min((loop for loop in loops if loop.sums == loop.multiply_adds == VECTORS * block), key=lambda loop: len(loop.code))
    text = "\n".join(map(str, hot.code))
    in_memory = sum("(" in one.operands for one in hot.products)
    assert hot.loads == VECTORS + block, text
    assert len(hot.code) <= hot.multiply_adds + hot.loads - in_memory + 4, text
    assert text.count("vbroadcastss") == block and not re.search(r"%zmm\d+, \S*\(", text), text
    [cycles] = hot_loops.simulated([hot_loops.assembly(hot)], DOTS, "sapphirerapids")
    assert block == 1 or cycles.taken <= 1.05 * cycles.bound, cycles
