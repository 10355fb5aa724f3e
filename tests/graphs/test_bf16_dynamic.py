# SPDX-License-Identifier: MIT
"""Products of bf16 (--precision=bf16-dynamic), by BFMMLA under qemu, by AMX and by VDPBF16PS here, against double precision's
products of the same rounded numbers; a row has the same bits alone and among others, and on any number of threads. Numbers
that are not rounded to bf16, or rounded otherwise, are wrong by one part in 2^9."""
import re
import subprocess

import numpy as np
import pytest

from support.bf16 import B, Layer, T, assert_same_bits, bf16, check_gemm, check_products, check_rows, feeds_of, run_here
from support.emitted import run_by
from support.model_builder import Model

TARGET, AMX, DOTS = "--target=aarch64-linux-gnu+bf16", "--target=x86-64-v4+vnni+amx", "--target=x86-64-v4+vnni+bf16"
TARGETS = {"bfmmla": TARGET, "amx": AMX, "vdpbf16ps": DOTS}


# Without LLVM's passes, and by -fast-isel, clang 19 loses vectors of bf16 that are arguments of functions: these are optimised.
@pytest.fixture(params=["bfmmla", "amx", pytest.param("vdpbf16ps", marks=pytest.mark.optimised)])
def built(request, compile, aarch64_rnnrun, tmp_path):
    """built(model, *options) -> run(feeds, threads) -> name -> array"""
    def build(model, *options):
        (folder := tmp_path / str(len(list(tmp_path.iterdir())))).mkdir()
        module = compile(model.write(folder), TARGETS[request.param], "--precision=bf16-dynamic", *options,
                         optimised=None if request.param == "vdpbf16ps" else False)
        if request.param != "bfmmla":
            return lambda feeds, threads=1: run_here(module, feeds, threads)
        return lambda feeds, threads=1: run_by(aarch64_rnnrun, module, feeds, list(model.outputs), folder, threads)
    return build


# ---- products ----

# Rows, K and N: each remainder of K by four, odd rows and columns that fill no panel; sums that are put by, as K is deep; one
# row with so many weights that they come from memory; rows, columns and depths next to those of a matrix of AMX, and blocks of
# one tile beside those of two.
SHAPES = [(1, 45, 67), (2, 64, 16), (3, 46, 20), (13, 47, 67), (6, 1, 33), (5, 3, 7), (4, 2, 130), (13, 2051, 20), (1, 702, 203),
          (7, 130, 3), (1, 1, 1), (15, 31, 15), (16, 32, 17), (17, 33, 65), (33, 100, 1), (33, 1, 17), (70, 33, 50), (40, 4200, 33)]


def test_products_are_those_of_rounded_numbers(built):
    check_products(built, SHAPES, bf16)


@pytest.mark.parametrize("transA", [0, 1])
def test_gemm_of_any_strides_and_its_epilogue(transA, built):
    check_gemm(built, (45, 8, 3, 4200), transA, bf16)


def test_halves_are_rounded_to_even(built):
    """All numbers that stand in the middle of two of bf16, times one."""
    upper = np.random.default_rng(9).permutation(np.arange(0x0080, 0x7f7f, dtype=np.uint32))[:16 * 64]
    x = (upper << 16 | 0x8000).view(np.float32).reshape(64, 16) * np.where(np.arange(16) % 2, 1, -1).astype(np.float32)
    net = Model()
    net.output(net.node("MatMul", [net.input("x", "f32", [64, 16]), net.constant(np.eye(16, dtype=np.float32))]))
    (got,) = built(net)({"x": x}).values()
    assert np.array_equal(got.astype(np.float64), bf16(x))


def test_numbers_that_are_not_finite_stay_so(built):
    x, w = np.ones((4, 6), np.float32), np.ones((6, 5), np.float32)
    x[0, 5], x[1, 0], w[2, 3] = np.inf, np.nan, -np.inf  # the NaN stands behind the infinity
    x[3].view(np.uint32)[4] = 0xff800001  # whose upper half is an infinity's
    net = Model()
    net.output(net.node("MatMul", [net.input("x", "f32", [4, 6]), net.constant(w)]))
    (got,) = built(net)({"x": x}).values()
    with np.errstate(invalid="ignore"):
        assert np.array_equal(got, x @ w, equal_nan=True)


def test_a_row_has_the_same_bits_alone_and_among_others(built):
    check_rows(built, 13, ((1, 1), (2, 3), (3, 2), (5, 1), (12, 3), (13, 5)))


# ---- recurrent layers ----

LAYERS = [("LSTM", 17, 37, {}), ("LSTM", 5, 16, {"direction": "bidirectional"}), ("GRU", 9, 33, {"direction": "bidirectional"}),
          ("GRU", 33, 9, {"linear_before_reset": 1}), ("RNN", 7, 50, {"direction": "reverse"})]


@pytest.fixture(scope="module")
def network():
    net = Model()
    net.dim("T", 1, T, 8)
    net.dim("B", 1, B, 9)
    return net, [Layer(net, op, inputs, units, **more) for op, inputs, units, more in LAYERS]


@pytest.mark.parametrize("options", [[], ["--rnn=input=step,workers=1"]], ids=["", "in one sweep"])
def test_recurrent_layers_multiply_rounded_numbers(options, network, built):
    net, layers = network
    got = built(net, *options)(feeds_of(layers), 2)
    for layer in layers:
        layer.check(got[layer.output])


def test_a_sample_has_the_same_bits_in_any_batch_and_on_any_threads(network, built):
    net, layers = network
    run = built(net)
    due = run(feeds_of(layers), 1)
    for samples, threads in ((slice(0, 1), 1), (slice(6, 7), 2), (slice(0, 2), 3), (slice(1, 4), 1), (slice(2, 7), 2), (slice(None), 3)):
        assert_same_bits(run(feeds_of(layers, samples), threads), due, samples, (samples, threads))


@pytest.mark.parametrize("how", ["workers=2,batch_parts=1,depth_block=16", "workers=3,batch_parts=3", "chunk=2"])
def test_each_way_to_run_a_layer_has_the_same_bits(how, network, built):
    net, layers = network
    due, got = (built(net, f"--rnn={one}")(feeds_of(layers), 3) for one in ("workers=1,batch_parts=1", how))
    assert_same_bits(got, due, slice(None), how)


def of_one_sample(largest):
    net = Model()
    net.dim("T", 1, T, 8)
    net.dim("B", 1, 1, largest)
    return net, [Layer(net, op, inputs, units, **more) for op, inputs, units, more in LAYERS]


def test_one_sample_has_the_same_bits_where_it_is_all_that_there_is(built):
    """Of a batch that the compiler knows to be one."""
    found = []
    for largest in (1, 2):
        net, layers = of_one_sample(largest)
        found.append(built(net, "--rnn=workers=2,hide=0")(feeds_of(layers, slice(0, 1)), 2))
    assert_same_bits(*found, slice(None), "of one sample")


def test_the_sums_of_one_sample_may_be_made_in_halves(built):
    """Over the units that each of two workers makes, whichever of them adds up."""
    net, layers = of_one_sample(1)
    run = built(net, "--rnn=workers=2,hide=1")
    one, two = (run(feeds_of(layers, slice(0, 1)), threads) for threads in (1, 2))
    assert_same_bits(one, two, slice(None), "threads")
    for layer in layers:
        layer.check(two[layer.output], slice(0, 1))


@pytest.mark.parametrize("how", ["workers=1", "workers=3,batch_parts=3", "workers=2,batch_parts=1"])
def test_more_samples_than_a_matrix_has_rows(how, compile, tmp_path):
    net = Model()
    net.dim("T", 1, T, 8)
    net.dim("B", 1, 33, 40)
    layers = [Layer(net, op, inputs, units, 33, **more) for op, inputs, units, more in LAYERS]
    module = compile(net.write(tmp_path), AMX, "--precision=bf16-dynamic", f"--rnn={how}", optimised=False)
    due = run_here(module, feeds_of(layers), 1)
    for layer in layers:
        layer.check(due[layer.output])
    for samples, threads in ((slice(0, 1), 1), (slice(3, 19), 3), (slice(16, 33), 2), (slice(None), 3)):
        assert_same_bits(run_here(module, feeds_of(layers, samples), threads), due, samples, (samples, threads))


def test_weights_that_can_change_are_packed_so_too(network, built):
    net, layers = network
    due, got = (built(net, f"--weights={how}")(feeds_of(layers), 2) for how in ("constant", "mutable"))
    assert_same_bits(got, due, slice(None), "mutable")


def test_of_an_even_number_of_rows_all_blocks_are_of_pairs(rnncc, aarch64_rnnrun, tmp_path):
    """Ten rows are four and six, not twice five, which would take an instruction more of six. A block of an odd number ends the
    program, by a line in the emitted C."""
    net, rng = Model(), np.random.default_rng(7)
    x = net.input("x", "f32", [10, 12])
    net.output(net.node("MatMul", [x, net.constant(rng.standard_normal((12, 16)).astype(np.float32))]))
    net.dim("T", 9, 9, 9)
    net.dim("B", 10, 10, 10)
    layer = Layer(net, "LSTM", 12, 16)
    done = rnncc(net.write(tmp_path), TARGET, "--precision=bf16-dynamic", "--rnn=workers=1", "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    unit = tmp_path / "c" / "network.c"
    text, found = re.subn(r"(void k\d+_block_of_rows\([^)]*\) \{)", r"\1 if (rows % 2) __builtin_trap();", unit.read_text())
    unit.write_text(text)
    subprocess.run(["make", "-s", "-C", tmp_path / "c"], check=True)
    feeds = {"x": rng.standard_normal((10, 12)).astype(np.float32), layer.input: rng.standard_normal((9, 10, 12)).astype(np.float32)}
    run_by(aarch64_rnnrun, tmp_path / "c" / "module.so", feeds, list(net.outputs), tmp_path)
    assert found == 3  # of the product, of the layer's with W, and with R


@pytest.mark.optimised
@pytest.mark.parametrize("target, products", [(TARGET, 4), (DOTS, 2)])
def test_a_profile_counts_some_such_products_for_one_of_floats(target, products, compile, rnnrun, aarch64_rnnrun, tmp_path):
    """At most, as the peak of f32 alone is measured."""
    net, rng = Model(), np.random.default_rng(8)
    net.output(net.node("MatMul", [net.input("x", "f32", [60, 64]), net.constant(rng.standard_normal((64, 512)).astype(np.float32))]))
    module = compile(net.write(tmp_path), target, "--precision=bf16-dynamic")
    done = (rnnrun if target == DOTS else aarch64_rnnrun)("profile", module, "--threads", 1, "--runs", 3)
    assert done.returncode == 0, done.stderr
    peak = float(re.search(r"^peak: (\S+) GFLOP/s", done.stderr, re.M)[1])
    (row,) = [line.split() for line in done.stdout.splitlines() if line.endswith("  n0")]
    speed, share = 2 * 60 * 64 * 512 / (1e3 * float(row[0])), float(row[5])
    least, most = (100 * speed / (products * max(peak + off, 1e-6)) for off in (.05, -.05))  # the emulator's peak has a digit or two, or none
    assert .95 * least <= share <= 1.05 * most, (done.stdout, peak)


# ---- the option ----

def test_weights_of_a_layer_may_differ_in_how_they_are_multiplied(built):
    """In one sweep they could not."""
    net = Model()
    net.dim("T", 1, T, 8)
    net.dim("B", 1, B, 9)
    layer, found = Layer(net, "LSTM", 17, 37), []
    for precision in ("f32,*.R=bf16-dynamic,*.W=bf16", "f32,*.R=bf16-dynamic"):
        layer.W = layer.W if found else bf16(layer.W).astype(np.float32)
        net.arrays = {name: layer.W if array.shape == layer.W.shape else array for name, array in net.arrays.items()}
        found.append(built(net, f"--precision={precision}", "--rnn=input=step,workers=1")({layer.input: layer.x}))
    assert_same_bits(*found, slice(None), "W in bf16")


def layers_of_all_kinds():
    net, rng = Model(), np.random.default_rng(5)
    x = net.input("x", "f32", [4, 1, 8])
    weights = [net.constant(rng.standard_normal((1, 24, 8)).astype(np.float32)) for _ in range(2)]
    net.output(net.node("GRU", [x, *weights], ["Y"], hidden_size=8))
    net.output(net.node("MatMul", [x, net.constant(rng.standard_normal((8, 8)).astype(np.float32))]))
    return net


@pytest.mark.parametrize("target", ["x86-64-v4+vnni", "aarch64-linux-gnu", "aarch64-linux-gnu+dotprod+i8mm", "aarch64-linux-gnu+sve256+bf16"])
@pytest.mark.parametrize("precision", ["bf16-dynamic", "f32,n0=bf16-dynamic"])
def test_a_target_without_such_products_is_refused(target, precision, rnncc, tmp_path):
    done = rnncc("inspect", layers_of_all_kinds().write(tmp_path), f"--target={target}", f"--precision={precision}")
    assert done.returncode == 3 and f"--precision=bf16-dynamic: {target} has no products of bf16, as" in done.stderr


def test_none_of_several_targets_has_such_products(rnncc, tmp_path):
    done = rnncc("inspect", layers_of_all_kinds().write(tmp_path), "--target=x86-64-v4,x86-64-v3", "--precision=bf16-dynamic")
    assert done.returncode == 3 and "--precision=bf16-dynamic: x86-64-v4 has no products of bf16, as" in done.stderr


def test_of_several_targets_one_may_compute_no_node_so(rnncc, tmp_path):
    """A convolution, on a CPU without AMX."""
    net = Model()
    net.output(net.node("Conv", [net.input("x", "f32", [1, 64, 28, 28]), net.constant(np.ones((64, 64, 3, 3), np.float32))]))
    done = rnncc("inspect", net.write(tmp_path), "--target=x86-64-v4+vnni+amx,x86-64-v3", "--precision=bf16-dynamic")
    assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.parametrize("isa, precision", [("avx2", "bf16"), ("amx", "bf16-dynamic")])
def test_of_several_targets_those_with_such_products_have_them(isa, precision, compile, monkeypatch, tmp_path):
    """Others keep the weights so. Convolutions stay in f32 there."""
    targets = {"avx2": "x86-64-v3", "amx": "x86-64-v4+vnni+amx"}
    model, rng = layers_of_all_kinds(), np.random.default_rng(6)
    image = model.input("image", "f32", [1, 64, 28, 28])
    model.output(model.node("Conv", [image, model.constant(rng.standard_normal((64, 64, 3, 3)).astype(np.float32))], pads=[1, 1, 1, 1]))
    feeds = {"x": rng.standard_normal((4, 1, 8)).astype(np.float32), "image": rng.standard_normal((1, 64, 28, 28)).astype(np.float32)}
    path = model.write(tmp_path)
    alone = compile(path, f"--target={targets[isa]}", f"--precision={precision}", optimised=False)
    together = compile(path, f"--target={','.join(targets.values())}", "--precision=bf16-dynamic", optimised=False)
    monkeypatch.setenv("RNNCC_ISA", targets[isa])
    want, got = (run_here(module, feeds, 1) for module in (alone, together))
    assert {name: got[name].tobytes() for name in want} == {name: want[name].tobytes() for name in want}


@pytest.mark.parametrize("target", [TARGET, DOTS])
@pytest.mark.parametrize("precision, knobs", [("bf16", {1}), ("bf16-dynamic", {5}), ("bf16-dynamic,n0=bf16", {1, 5}),
                                              ("n0.R=bf16-dynamic", {0, 5})])
def test_each_node_has_the_products_that_it_is_to_have(target, precision, knobs, rnncc, tmp_path):
    """By the knob WEIGHTS of the kernels."""
    done = rnncc(layers_of_all_kinds().write(tmp_path), target, f"--precision={precision}", "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    assert set(map(int, re.findall(r"^/\* ---- kernel .* WEIGHTS=(\d)", (tmp_path / "c" / "network.c").read_text(), re.M))) == knobs


@pytest.mark.parametrize("precision, kernels", [("bf16", {"gemm_packed", "recurrent_steps"}), ("bf16-dynamic", {"gemm_bf16", "recurrent_bf16"}),
                                                ("bf16-dynamic,n0=bf16", {"gemm_bf16", "recurrent_steps"}),
                                                ("n0.R=bf16-dynamic", {"gemm_packed", "recurrent_bf16"}),
                                                ("n0.W=bf16-dynamic", {"gemm_bf16", "gemm_packed", "recurrent_steps"})])
def test_each_node_has_the_kernels_of_amx_that_it_is_to_have(precision, kernels, rnncc, tmp_path):
    """Which are preferred."""
    done = rnncc(layers_of_all_kinds().write(tmp_path), f"{DOTS}+amx", f"--precision={precision}", "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    assert set(re.findall(r"^/\* ---- kernel .*: (\w+) ", (tmp_path / "c" / "network.c").read_text(), re.M)) == kernels


@pytest.mark.optimised
@pytest.mark.parametrize("target", [AMX, DOTS])
def test_x86_takes_numbers_that_are_not_normal_for_zero(target, compile, tmp_path):
    """Of either factor; a sum that is none is 0, too."""
    tiny, least = np.float32(2.0**-127), np.float32(2.0**-126)
    x, w = np.array([[tiny, 0, 0], [0, least, 0], [0, 0, 1], [0, 0, least]], np.float32), np.array([[2.0**100], [2.0**100], [tiny]], np.float32)
    w = np.concatenate([w, [[1], [1], [.5]]], 1).astype(np.float32)
    net = Model()
    net.output(net.node("MatMul", [net.input("x", "f32", [4, 3]), net.constant(w)]))
    module = compile(net.write(tmp_path), target, "--precision=bf16-dynamic")
    (got,) = run_here(module, {"x": x}, 1).values()
    assert np.array_equal(got, [[0, 0], [least * w[1, 0], least], [0, .5], [0, 0]])
