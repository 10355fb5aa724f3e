# SPDX-License-Identifier: MIT
"""Products of floats with weights of bf16 (--precision=bf16) by AMX, which multiplies numbers of bf16: a float is the sum of
three. As near to products in double precision as those of f32 are; a row has the same bits alone and among others, and on any
number of threads. With two parts of three a product is wrong by one part in 2^16, with one by one in 2^8."""
import re

import numpy as np
import pytest

from support.bf16 import B, Layer, T, assert_same_bits, check_gemm, check_products, check_rows, exact, feeds_of, run_here
from support.model_builder import Model

AMX = "--target=x86-64-v4+vnni+amx"


@pytest.fixture
def built(compile, tmp_path):
    """built(model, *options) -> run(feeds, threads) -> name -> array"""
    def build(model, *options):
        (folder := tmp_path / str(len(list(tmp_path.iterdir())))).mkdir()
        module = compile(model.write(folder), AMX, "--precision=bf16", *options, optimised=False)
        return lambda feeds, threads=1: run_here(module, feeds, threads)
    return build


def multiplied_by(weights, rows):
    net = Model()
    net.output(net.node("MatMul", [net.input("x", "f32", [rows, len(weights)]), net.constant(np.asarray(weights, np.float32))]))
    return net


# ---- products ----

# Rows, K and N: rows, columns and depths next to those of a matrix, and to five rows of three parts; blocks of one tile beside
# those of two; sums that are put by, as K is deep.
SHAPES = [(2, 96, 16), (4, 101, 20), (5, 128, 67), (6, 127, 33), (9, 129, 17), (10, 2051, 20), (11, 160, 130), (15, 159, 15),
          (16, 100, 1), (17, 130, 65), (31, 96, 80), (47, 97, 7), (70, 161, 50), (40, 4200, 33)]


def test_products_are_as_exact_as_those_of_floats(built):
    check_products(built, SHAPES, exact)


@pytest.mark.parametrize("transA", [0, 1])
def test_gemm_of_any_strides_and_its_epilogue(transA, built):
    check_gemm(built, (96, 141, 4200), transA, exact)


def test_a_float_is_the_sum_of_its_parts(built):
    """Floats of exponents by which their least bits, and their products, are normal numbers, times powers of two, bit for bit."""
    rng, count = np.random.default_rng(3), 96
    bits = rng.integers(1 << 23, size=(512, count), dtype=np.uint32) | rng.integers(40, 240, size=(512, count), dtype=np.uint32) << 23
    bits[:8] |= 0x7fffff
    bits[8:16] &= 0xff8001ff
    x = (bits | rng.integers(2, size=bits.shape, dtype=np.uint32) << 31).view(np.float32)
    scales = 2.0 ** np.arange(-8, 8).repeat(6).astype(np.float32)
    (got,) = built(multiplied_by(np.diag(scales), 512))({"x": x}).values()
    assert np.array_equal(got.view(np.uint32), (x * scales).view(np.uint32))


def test_the_least_bits_of_tiny_floats_count_for_nothing(built):
    """Below 2^-126."""
    x = np.full((2, 96), 2.0**-120 + 2.0**-126 + 2.0**-128 + 2.0**-143, np.float32)
    (got,) = built(multiplied_by(np.eye(96), 2))({"x": x}).values()
    assert (got == np.float32(2.0**-120 + 2.0**-126)).all()


def test_numbers_that_are_not_finite_stay_so(built):
    x, w = np.ones((4, 96), np.float32), np.ones((96, 5), np.float32)
    x[0, 5], x[1, 0] = np.inf, np.nan
    x[2, 7], x[2, 9] = np.inf, -np.inf
    x[3].view(np.uint32)[4] = 0xff800001  # NaN, whose upper half is an infinity's
    w[5, 3] = 0
    (got,) = built(multiplied_by(w, 4))({"x": x}).values()
    with np.errstate(invalid="ignore"):
        assert np.array_equal(got, x @ w, equal_nan=True)


def test_an_infinite_weight_gives_nan_where_a_part_is_zero(built):
    w = np.zeros((96, 3), np.float32)
    w[0, 0], w[1, 1], w[2, 2] = np.inf, -np.inf, 1
    (got,) = built(multiplied_by(w, 2))({"x": np.array([[1] * 96, [1.2345678] * 96], np.float32)}).values()
    assert np.array_equal(got, [[np.nan, np.nan, 1], [np.inf, -np.inf, np.float32(1.2345678)]], equal_nan=True)


def test_a_row_has_the_same_bits_alone_and_among_others(built):
    check_rows(built, 23, ((1, 1), (2, 3), (3, 2), (5, 1), (6, 2), (12, 3), (22, 5)))


# ---- recurrent layers ----

LAYERS = [("LSTM", 96, 98, {}), ("LSTM", 97, 96, {"direction": "bidirectional"}), ("GRU", 98, 97, {"direction": "bidirectional"}),
          ("GRU", 96, 98, {"linear_before_reset": 1}), ("RNN", 99, 128, {"direction": "reverse"})]


def network(most, samples):
    net = Model()
    net.dim("T", 1, T, 8)
    net.dim("B", 1, samples, most)
    return net, [Layer(net, op, inputs, units, samples, exact, .1, **more) for op, inputs, units, more in LAYERS]


def test_recurrent_layers_are_as_exact_as_those_of_floats(built):
    net, layers = network(9, B)
    got = built(net)(feeds_of(layers), 2)
    for layer in layers:
        layer.check(got[layer.output])


@pytest.mark.parametrize("samples, workers", [(27, 2), (26, 3)])
def test_blocks_of_samples_of_two_heights(built, samples, workers):
    """27 samples are blocks of 4, 5 and 4 for a worker, and 5, 4 and 5 for the other one; of 26 the second one of three has 5
    and 4."""
    net, layers = network(samples, samples)
    due = built(net, "--rnn=workers=1,batch_parts=1")(feeds_of(layers), 1)
    for layer in layers:
        layer.check(due[layer.output])
    run = built(net, f"--rnn=workers={workers},batch_parts={workers}")
    assert_same_bits(run(feeds_of(layers), workers), due, slice(None), workers)


@pytest.mark.parametrize("how", ["workers=1", "workers=3,batch_parts=3", "workers=2,batch_parts=1"])
def test_a_sample_has_the_same_bits_in_any_batch_on_any_threads_and_each_way(how, built):
    net, layers = network(19, 17)
    due = built(net, "--rnn=workers=1,batch_parts=1")(feeds_of(layers), 1)
    for layer in layers:
        layer.check(due[layer.output])
    run = built(net, f"--rnn={how}")
    for samples, threads in ((slice(0, 1), 1), (slice(3, 9), 3), (slice(4, 17), 2), (slice(None), 3)):
        assert_same_bits(run(feeds_of(layers, samples), threads), due, samples, (samples, threads))


def test_weights_that_can_change_are_packed_so_too(built):
    net, layers = network(9, B)
    due, got = (built(net, f"--weights={how}")(feeds_of(layers), 2) for how in ("constant", "mutable"))
    assert_same_bits(got, due, slice(None), "mutable")


# ---- which products are ----

def kernels_of(rnncc, folder, net, *options):
    done = rnncc(net.write(folder), AMX, *options, "--emit=c", "-o", folder / "c")
    assert done.returncode == 0, done.stderr
    return set(re.findall(r"^/\* ---- kernel .*: (\w+) ", (folder / "c" / "network.c").read_text(), re.M))


@pytest.mark.parametrize("rows, depth, kernel", [(1, 256, "gemm_packed"), (2, 95, "gemm_packed"), (2, 96, "gemm_bf16")])
def test_a_single_row_and_short_ones_are_multiplied_as_floats(rows, depth, kernel, rnncc, tmp_path):
    assert kernels_of(rnncc, tmp_path, multiplied_by(np.ones((depth, 20)), rows), "--precision=bf16") == {kernel}


@pytest.mark.parametrize("samples, kernels", [(1, {"gemm_bf16", "recurrent_steps"}), (4, {"gemm_bf16", "recurrent_bf16"})])
def test_of_one_sample_only_the_inputs_are(samples, kernels, rnncc, tmp_path):
    net = Model()
    net.dim("T", 1, T, 8)
    net.dim("B", samples, samples, samples)
    Layer(net, "LSTM", 96, 96, samples)
    assert kernels_of(rnncc, tmp_path, net, "--precision=bf16") == kernels


def test_other_types_of_weights_are_multiplied_as_floats(rnncc, tmp_path):
    assert kernels_of(rnncc, tmp_path, multiplied_by(np.ones((96, 20)), 8), "--precision=f16") == {"gemm_packed"}
