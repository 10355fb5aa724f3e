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
from support.model_builder import Model
from support.onnx_files import model_of, write

sys.path.insert(0, str(ROOT / "tools"))
from benchmarks import hot_loops  # noqa: E402

VNNI = replace(hot_loops.X86, multiply_add=re.compile(r"vpdpbusd$"))
VEX_VNNI = replace(VNNI, multiply_add=re.compile(r"\{vex\}$"))  # stands before vpdpbusd
PAIRS = replace(hot_loops.X86, multiply_add=re.compile(r"vpmaddwd$"))
DOTPROD = replace(hot_loops.AARCH64, multiply_add=re.compile(r"sdot$"))
I8MM = replace(hot_loops.AARCH64, multiply_add=re.compile(r"smmla$"))
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


def product(tmp_path, rows=60, depth=256):
    weights = numpy.random.default_rng(1).integers(-128, 128, (depth, 256)).astype(numpy.int8)
    node = helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    return write(tmp_path, model_of([node], {"a": (2, [rows, depth])}, {"y": (6, [rows, 256])}, {"b": weights}))


def deep_product(tmp_path):
    return product(tmp_path, depth=2048)


def convolution(tmp_path, stride=1):
    """3x3, with another tensor added to what it writes."""
    one = numpy.float32(.01)
    constants = {"w": numpy.random.default_rng(1).integers(-128, 128, (64, 64, 3, 3)).astype(numpy.int8), "s": one,
                 "z": numpy.uint8(0), "n": numpy.int8(0)}
    nodes = [helper.make_node("QLinearConv", ["x", "s", "z", "w", "s", "n", "s", "z"], ["c"], pads=[1, 1, 1, 1],
                              strides=[stride, stride]),
             helper.make_node("QLinearAdd", ["c", "s", "z", "r", "s", "z", "s", "z"], ["y"], domain="com.microsoft")]
    shape, result = [1, 64, 60, 60], [1, 64, 60 // stride, 60 // stride]
    return write(tmp_path, model_of(nodes, {"x": (2, shape), "r": (2, result)}, {"y": (2, result)}, constants))


def convolution_of_bf16(tmp_path):
    """3x3, with another tensor added to what it writes."""
    model = Model("convolution")
    weights = model.constant(numpy.random.default_rng(1).standard_normal((64, 64, 3, 3)).astype(numpy.float32))
    y = model.node("Conv", [model.input("x", "f32", [1, 64, 60, 60]), weights], pads=[1, 1, 1, 1])
    model.output(model.node("Add", [y, model.input("r", "f32", [1, 64, 60, 60])]))
    return model.write(tmp_path)


def lstm(tmp_path, samples):
    """50 steps of 128 units."""
    rng, model = numpy.random.default_rng(1), Model("layer")
    W, R = (rng.uniform(-1, 1, (1, 4 * 128, 128)).astype(numpy.float32) / 128 for _ in range(2))
    model.node("LSTM", [model.input("x", "f32", [50, samples, 128]), model.constant(W, "W"), model.constant(R, "R")], ["Y"],
               hidden_size=128, precision="int8-dynamic")
    model.output("Y")
    return model.write(tmp_path)


def functions_of(rnncc, model, target, tmp_path, *options):
    """(name, code) of each function of the network."""
    folder = tmp_path / "c"
    done = rnncc(model, f"--target={target}", "--emit=c", "-o", folder, *options)
    assert done.returncode == 0, done.stderr
    subprocess.run(["make", "-s", "-C", folder, "network.o", "STATIC_FLAGS=-fno-function-sections"], check=True)
    return list(hot_loops.functions(folder / "network.o", TARGETS[target][0]))


def loops_of(functions, target):
    """Innermost loops that have dot products, those with most last."""
    architecture, found = TARGETS[target][0], []
    for _, code in functions:
        framed = any(architecture.frame.match(str(one)) for one in code)
        found += [hot_loops.Loop(architecture, framed, loop) for loop in hot_loops.innermost_loops(code, architecture.jump)]
    return sorted((loop for loop in found if loop.multiply_adds), key=lambda loop: (loop.sums, loop.multiply_adds))


def assert_tight(hot, target, rows, vectors):
    """The loop of a tile: sums stay in registers, nothing is loaded twice, products do not wait."""
    architecture, _, _, products, core = TARGETS[target]
    steps = hot.multiply_adds / (rows * vectors * products)
    assert steps in (1, 2, 4), f"{hot.multiply_adds} products of a tile of {rows} rows and {vectors} vectors"
    assert not hot.spills, "\n".join(hot.spills)
    in_memory = sum("(" in one.operands for one in hot.products) if architecture.triple == "x86_64" else 0
    assert hot.loads <= steps * (rows + vectors) + in_memory, hot.loads
    [cycles] = hot_loops.simulated([hot_loops.assembly(hot)], architecture, core)
    assert cycles.taken <= 1.15 * cycles.bound, cycles


@pytest.mark.optimised  # it is about the machine code
@pytest.mark.parametrize("target", TARGETS)
def test_no_sum_goes_to_the_stack_and_nothing_is_loaded_twice(target, rnncc, tmp_path):
    _, rows, vectors, *_ = TARGETS[target]
    loops = loops_of(functions_of(rnncc, product(tmp_path), target, tmp_path), target)
    assert loops, "no loop has dot products"
    assert_tight(loops[-1], target, rows, vectors)


@pytest.mark.optimised
@pytest.mark.parametrize("rows, gain", [(60, 1.5), (2, 1.2)])
@pytest.mark.parametrize("core", ["neoverse-v1", "neoverse-n2"])
def test_products_of_two_rows_gain_over_dot_products(core, rows, gain, rnncc, tmp_path, monkeypatch):
    """By llvm-mca: multiply-adds a cycle, of sums that stay in registers."""
    tiles, speed = "aarch64-linux-gnu+dotprod+i8mm", {}
    monkeypatch.setitem(TARGETS, tiles, (I8MM, 4, 4, 1, core))
    for target, products in (("aarch64-linux-gnu+dotprod", 16), (tiles, 32)):
        (folder := tmp_path / target).mkdir()
        hot = loops_of(functions_of(rnncc, product(folder, rows), target, folder), target)[-1]
        assert not hot.spills, "\n".join(hot.spills)
        [cycles] = hot_loops.simulated([hot_loops.assembly(hot)], TARGETS[target][0], core)
        speed[target] = products * hot.multiply_adds / cycles.taken
    assert speed[tiles] > gain * speed["aarch64-linux-gnu+dotprod"], speed


@pytest.mark.optimised
@pytest.mark.parametrize("target", [name for name in TARGETS if name not in ("x86-64-v4", "x86-64-v3")])  # these have pairs
def test_convolutions_as_planned_keep_their_sums_in_registers_and_do_not_divide(target, rnncc, tmp_path):
    model = convolution(tmp_path)
    chosen = rnncc("inspect", model, f"--target={target}", "--no-winograd", "--explain=conv").stdout
    vectors, columns = map(int, re.search(r"chosen: direct_int8,oc=(\d+),px=(\d+)", chosen).groups())
    functions = functions_of(rnncc, model, target, tmp_path, "--no-winograd")
    whole = [loop for loop in loops_of(functions, target) if loop.multiply_adds % (columns * vectors) == 0]  # not at borders
    assert whole, "no loop multiplies a whole tile"
    assert_tight(whole[-1], target, columns, vectors)
    divisions = [str(one) for _, code in functions for one in code if re.match(r"v?div[ps]s|fdiv", str(one))]
    assert not divisions, divisions


@pytest.mark.optimised
@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_of_two_columns_gain_over_dot_products(stride, rnncc, tmp_path, monkeypatch):
    """By llvm-mca: cycles of a multiply-add of the tiles that the cost model chooses, which stay in registers."""
    tiles, taken = "aarch64-linux-gnu+dotprod+i8mm", {}
    monkeypatch.setitem(TARGETS, tiles, (I8MM, 4, 6, 1, None))
    for target, products, algorithm in (("aarch64-linux-gnu+dotprod", 16, "direct_int8"), (tiles, 32, "tiles_int8")):
        (folder := tmp_path / target).mkdir()
        model = convolution(folder, stride)
        assert f"chosen: {algorithm}" in rnncc("inspect", model, f"--target={target}", "--explain=conv").stdout
        loops = [loop for loop in loops_of(functions_of(rnncc, model, target, folder), target) if not loop.jumps]
        hot = max((loop for loop in loops if loop.multiply_adds == loop.sums), key=lambda loop: loop.sums)
        assert not hot.spills, "\n".join(hot.spills)
        for core in ("neoverse-v1", "neoverse-n2"):
            [cycles] = hot_loops.simulated([hot_loops.assembly(hot)], TARGETS[target][0], core)
            taken[target, core] = cycles.taken / (products * hot.multiply_adds)
    for core in ("neoverse-v1", "neoverse-n2"):
        assert taken[tiles, core] <= .9 * taken["aarch64-linux-gnu+dotprod", core], taken


@pytest.mark.optimised
@pytest.mark.parametrize("samples, block, part", [(2, 2, .75), (3, 3, .7), (8, 4, .51)])
def test_recurrent_layers_of_two_samples_gain_over_dot_products(samples, block, part, rnncc, tmp_path, monkeypatch):
    """By llvm-mca: cycles of a step's product, as a part of those by dot products. Four vectors have all gates of some units.
    A tile's inputs are one load, and nothing changes them. block: samples whose sums are in registers."""
    dots, tiles, taken = "aarch64-linux-gnu+dotprod", "aarch64-linux-gnu+dotprod+i8mm", {}
    monkeypatch.setitem(TARGETS, tiles, (I8MM, 6, 4, 1, None))
    for target, rows, depth in ((dots, block, 4), (tiles, (block + 1) // 2 * 2, 8)):
        (folder := tmp_path / target).mkdir()
        functions = functions_of(rnncc, lstm(folder, samples), target, folder, "--rnn=workers=1,batch_parts=1")
        hot = next(loop for loop in loops_of(functions, target) if loop.multiply_adds == loop.sums == 4 * rows)
        assert not hot.spills, "\n".join(hot.spills)
        assert target == dots or hot.loads == rows // 2 + 8, hot.loads
        assert target == dots or len(hot.code) <= hot.multiply_adds + hot.loads + 4, "\n".join(map(str, hot.code))
        for core in ("neoverse-v1", "neoverse-n2"):
            [cycles] = hot_loops.simulated([hot_loops.assembly(hot)], TARGETS[target][0], core)
            taken[target, core] = cycles.taken / depth
    for core in ("neoverse-v1", "neoverse-n2"):
        assert taken[tiles, core] <= part * taken[dots, core], taken


# target: (its dot product of 16 bits, the largest tile)
WINOGRAD = {
    "x86-64-v4+vnni": (r"vpdpwssd$", 14),
    "x86-64-v3+vnni": (r"\{vex\}$", 6),
    "x86-64-v4": (r"vpmaddwd$", 14),
    "x86-64-v3": (r"vpmaddwd$", 6),
}


@pytest.mark.optimised
@pytest.mark.parametrize("target", WINOGRAD)
def test_products_of_winograd_keep_their_sums_in_registers_and_do_not_wait(target, rnncc, tmp_path, monkeypatch):
    pattern, tiles = WINOGRAD[target]
    instructions = replace(hot_loops.X86, multiply_add=re.compile(pattern))
    monkeypatch.setitem(TARGETS, target, (instructions, tiles, 2, 1, TARGETS[target][-1]))
    model, typical = convolution(tmp_path), "--machine=typical"
    assert "chosen: winograd_int8,tile=4,oc=2" in rnncc("inspect", model, f"--target={target}", typical, "--explain=conv").stdout
    loops = loops_of(functions_of(rnncc, model, target, tmp_path, typical), target)
    assert_tight(max(loops, key=lambda loop: loop.multiply_adds), target, tiles, 2)

# ---- matrices in registers ----

AMX = replace(hot_loops.X86, multiply_add=re.compile(r"tdp(busd|bf16ps)$"))


def matmul_of_bf16(tmp_path):
    model = Model("product")
    weights = model.constant(numpy.random.default_rng(1).standard_normal((256, 256)).astype(numpy.float32))
    model.output(model.node("MatMul", [model.input("x", "f32", [60, 256]), weights]))
    return model.write(tmp_path)


def ends_of_loops(code, architecture):
    """The pieces without a jump, or a place that is jumped to, in front of each jump backwards."""
    goals = {one.address: int(goal[1], 16) for one in code
             if architecture.jump.match(one.name) and (goal := re.search(r"\b(?:0x)?([0-9a-f]+) <", one.operands))}
    piece = []
    for one in code:
        piece = [] if one.address in goals.values() else piece
        piece.append(one)
        if goals.get(one.address, one.address + 1) <= one.address:
            yield piece
        piece = [] if one.address in goals else piece


MATRICES = "x86-64-v4+vnni+amx"


def matrix_steps(functions):
    """Steps of at least four products; none has a vector beside."""
    steps = [piece for _, code in functions for piece in ends_of_loops(code, AMX)
             if sum(bool(AMX.multiply_add.match(one.name)) for one in piece) >= 4]
    for step in steps:
        assert not any(re.search(r"[xyz]mm", str(one)) for one in step), "\n".join(map(str, step))
    return steps


def products_and_loads(step):
    names = [one.name for one in step]
    return sum(bool(AMX.multiply_add.match(name)) for name in names), names.count("tileloadd")


@pytest.mark.optimised
@pytest.mark.parametrize("network, options", [(deep_product, []), (convolution, []), (matmul_of_bf16, ["--precision=bf16-dynamic"]),
                                              (convolution_of_bf16, ["--precision=bf16-dynamic"])],
                         ids=["product", "convolution", "bf16", "convolution of bf16"])
def test_matrices_are_loaded_once_for_two_products(network, options, rnncc, tmp_path, monkeypatch):
    """Two of what is multiplied by two of weights: four products of four loads, all sums in registers, and no vector beside."""
    monkeypatch.setitem(TARGETS, MATRICES, (AMX, 2, 2, 1, "sapphirerapids"))
    steps = matrix_steps(functions_of(rnncc, network(tmp_path), MATRICES, tmp_path, *options))
    assert steps, "no step has four products"
    for step in steps:
        products, loads = products_and_loads(step)
        assert products % 4 == 0 and loads == products, "\n".join(map(str, step))


@pytest.mark.optimised
def test_matrices_of_a_layer_s_weights_are_loaded_once_in_a_step(rnncc, tmp_path, monkeypatch):
    """The product with W has two tiles of samples; that with R has one, which is loaded for a panel's four gates. Cells are
    between its loops, in none of them."""
    monkeypatch.setitem(TARGETS, MATRICES, (AMX, 2, 2, 1, "sapphirerapids"))
    steps = matrix_steps(functions_of(rnncc, lstm(tmp_path, 16), MATRICES, tmp_path, "--rnn=workers=1,batch_parts=1"))
    assert {products_and_loads(step) for step in steps} == {(4, 4), (4, 5)}
