# SPDX-License-Identifier: MIT
"""--precision makes the weights of a convolution small whose window is its whole input, or one of so few pixels that reading
its weights takes longest: the result is that of the rounded weights, in double precision. A transposed convolution of one
pixel is a product without it, too."""
import numpy as np
import pytest

from graphs.test_narrow_weights import Int8, rounded
from support.amount import some
from support.emitted import run_module
from support.model_builder import Model

# Input without its batch, output channels, more of the node.
WHOLE = {"a pixel": ((37, 1, 1), 19, {}), "a plane": ((16, 3, 5), 33, {}), "a row": ((20, 7), 6, {}),
         "a volume": ((3, 2, 3, 2), 18, {}), "a stride that counts for nothing": ((8, 4, 4), 5, {"strides": [2, 3]})}
OTHERS = {"padding": ((8, 2, 2), 5, {"pads": [1, 1, 0, 0]}, (3, 3)), "a larger input": ((8, 5, 4), 5, {}, (4, 4)),
          "groups": ((8, 4, 4), 6, {"group": 2}, (4, 4)), "a dilation": ((8, 3, 3), 5, {"dilations": [2, 2]}, (2, 2))}


def network(shape, kernels, more, window=None):
    rng, net = np.random.default_rng(2), Model()
    net.dim("N", 1, 2, 8)
    w = rng.standard_normal((kernels, shape[0] // more.get("group", 1), *(window or shape[1:]))).astype(np.float32)
    bias = rng.standard_normal(kernels).astype(np.float32)
    x = net.input("x", "f32", ["N", *shape])
    y = net.node("Conv", [net.node("Tanh", [x]), net.constant(w), net.constant(bias)], **more)
    net.output(net.node("Relu", [y]))
    return net, w, bias


def types_of(rnncc, model, *options):
    done = rnncc("inspect", model, *options)
    assert done.returncode == 0, done.stderr
    return next(line for line in done.stdout.splitlines() if line.startswith("types")), done.stderr


@pytest.mark.parametrize("precision", some(["bf16", "int8", "f16", "int4", "int8:16"], 2))
@pytest.mark.parametrize("name", WHOLE)
def test_a_window_that_is_the_input_has_small_weights(name, precision, rnncc, run_for, tmp_path):
    shape, kernels, more = WHOLE[name]
    net, w, bias = network(shape, kernels, more)
    model, option = net.write(tmp_path), f"--precision={precision}"
    kept = {"int8": "i8", "int8:16": "i8", "int4": "i4"}.get(precision, precision)
    assert f" of {kept}" in types_of(rnncc, model, option)[0]
    x = np.random.default_rng(4).standard_normal((3, *shape)).astype(np.float32)
    (y,) = run_for("native", model, {"x": x}, list(net.outputs), option).values()
    rows, matrix = np.tanh(x.astype(np.float64)).reshape(3, -1), rounded(w.reshape(kernels, -1), precision).astype(np.float64)
    exact, terms = rows @ matrix.T + bias, np.abs(rows) @ np.abs(matrix).T + np.abs(bias)
    assert y.shape == (3, kernels) + (1,) * (len(shape) - 1)
    assert (np.abs(y.reshape(3, -1) - np.maximum(exact, 0)) <= 16 * 2.0**-24 * terms).all()


# Input with its batch, output channels. A machine's speeds decide: those of a target, not of this CPU.
FEW = {"four pixels": ((1, 1024, 2, 2), 768), "an image each": ((2, 512, 3, 1), 1030), "a signal": ((1, 700, 5), 515),
       "a volume": ((1, 512, 1, 2, 2), 512)}
TARGET = "--target=x86-64-v3"


def pointwise(shape, kernels, run_dims=()):
    rng, net = np.random.default_rng(5), Model()
    w = rng.standard_normal((kernels, shape[1], *[1] * (len(shape) - 2))).astype(np.float32)
    bias = rng.standard_normal(kernels).astype(np.float32)
    given = list(shape)
    for axis, name in run_dims:
        given[axis] = net.dim(name, 1, shape[axis], 40) or name
    y = net.node("Conv", [net.input("x", "f32", given), net.constant(w), net.constant(bias)])
    net.output(net.node("Relu", [y]))
    return net, w, bias


def check_pointwise(y, x, w, bias, precision):
    rows, matrix = np.moveaxis(x, 1, -1).astype(np.float64), rounded(w.reshape(len(w), -1), precision).astype(np.float64)
    exact, terms = rows @ matrix.T + bias, np.abs(rows) @ np.abs(matrix).T + np.abs(bias)
    assert (np.abs(np.moveaxis(y, 1, -1) - np.maximum(exact, 0)) <= 16 * 2.0**-24 * terms).all()


@pytest.mark.parametrize("precision", some(["int8", "bf16", "f16", "int4"], 1))
@pytest.mark.parametrize("name", FEW)
def test_of_few_pixels_weights_are_small(name, precision, rnncc, compile, tmp_path):
    shape, kernels = FEW[name]
    net, w, bias = pointwise(shape, kernels)
    model, options = net.write(tmp_path), (f"--precision={precision}", TARGET)
    kept = {"int8": "i8", "int4": "i4"}.get(precision, precision)
    assert f" of {kept}" in types_of(rnncc, model, *options)[0]
    x = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    (y,) = run_module(compile(model, *options), {"x": x}).values()
    check_pointwise(y, x, w, bias, precision)


def test_pixels_that_only_the_run_knows(compile, tmp_path):
    net, w, bias = pointwise((1, 512, 1, 3), 640, [(3, "W")])
    module = compile(net.write(tmp_path), "--precision=int8", TARGET)
    for width in (1, 3, 40):
        x = np.random.default_rng(width).standard_normal((1, 512, 1, width)).astype(np.float32)
        (y,) = run_module(module, {"x": x}).values()
        check_pointwise(y, x, w, bias, "int8")


def test_from_so_many_pixels_on_that_multiplying_takes_longest_weights_stay_floats(rnncc, tmp_path):
    """Two extents of the run stay a convolution, too: a Reshape finds one."""
    small = ["bf16" in types_of(rnncc, pointwise((1, 1024, 1, pixels), 1024)[0].write(tmp_path), "--precision=bf16", TARGET)[0]
             for pixels in (2, 4, 8, 64, 256, 1024)]
    assert small[:2] == [True, True] and small[-2:] == [False, False] and sorted(small, reverse=True) == small
    both = pointwise((1, 1024, 2, 2), 1024, [(2, "H"), (3, "W")])[0]
    assert "bf16" not in types_of(rnncc, both.write(tmp_path), "--precision=bf16", TARGET)[0]


def test_weights_that_the_model_keeps_in_8_bits_stay_so(rnncc, run_for, tmp_path):
    rng, net, options = np.random.default_rng(6), Model(), ["--precision=int4"]
    w = Int8(rng, (19, 37, 1, 1), 0)
    net.output(net.node("Conv", [net.input("x", "f32", [2, 37, 1, 1]), w.node(net)]))
    model, x = net.write(tmp_path), rng.standard_normal((2, 37, 1, 1)).astype(np.float32)
    types = types_of(rnncc, model, *options)[0]
    assert " of i8" in types and " of i4" not in types
    (y,) = run_for("native", model, {"x": x}, list(net.outputs), *options).values()
    rows, matrix = x.reshape(2, 37).astype(np.float64), w.wide().reshape(19, 37).astype(np.float64)
    assert (np.abs(y.reshape(2, 19) - rows @ matrix.T) <= 16 * 2.0**-24 * (np.abs(rows) @ np.abs(matrix).T)).all()


@pytest.mark.parametrize("name", OTHERS)
def test_others_keep_floats_and_that_is_said(name, rnncc, tmp_path):
    shape, kernels, more, window = OTHERS[name]
    types, said = types_of(rnncc, network(shape, kernels, more, window)[0].write(tmp_path), "--precision=bf16")
    assert "bf16" not in types
    assert said.endswith('--precision: no RNN, GRU, LSTM, MatMul, Gemm or Conv of few windows is computed by "bf16"\n')


def test_a_node_that_a_pattern_leaves_in_f32_is_told_of_by_nobody(rnncc, tmp_path):
    """Of a convolution and of a product; a pattern that fits none of them is."""
    rng, net = np.random.default_rng(1), Model()
    x = net.node("Conv", [net.input("x", "f32", [2, 37, 1, 1]), net.constant(rng.standard_normal((20, 37, 1, 1)).astype(np.float32))])
    y = net.node("MatMul", [net.node("Flatten", [x]), net.constant(rng.standard_normal((20, 9)).astype(np.float32))])
    net.output(y)
    net.nodes[0]["name"], net.nodes[-1]["name"] = "head", "tail"
    model = net.write(tmp_path)
    for pattern, idle in (("head", None), ("tail", None), ("*a*", "int8"), ("none*", "none*=f32")):
        done = rnncc("inspect", model, f"--precision=int8,{pattern}=f32")
        told = f'no RNN, GRU, LSTM, MatMul, Gemm or Conv of few windows is computed by "{idle}"\n' if idle else ""
        assert done.returncode == 0 and done.stderr[-len(told):] == told and bool(told) == bool(done.stderr), (pattern, done.stderr)


def test_without_the_option_a_convolution_stays_one(rnncc, tmp_path):
    model = network(*WHOLE["a plane"])[0].write(tmp_path)
    done = [rnncc("inspect", model, *options).stdout for options in ([], ["--precision=f32"], ["--precision=bf16"])]
    assert [" Conv " in text for text in done] == [True, True, False]


# Channels, spatial axes of the input, of the window, more of the node.
PIXEL = {"a picture": (20, (1, 1), (4, 4), {}), "a sequence": (9, (1,), (5,), {"strides": [3]}),
         "a volume": (6, (1, 1, 1), (2, 3, 2), {}), "a stride that counts for nothing": (7, (1, 1), (2, 3), {"strides": [2, 2]})}
LARGER = {"two pixels": (8, (1, 2), (2, 2), {}), "cropped": (8, (1, 1), (4, 4), {"pads": [1, 1, 1, 1]}),
          "dilated": (8, (1, 1), (2, 2), {"dilations": [2, 2]}), "groups": (8, (1, 1), (3, 3), {"group": 2}),
          "more outputs than the window has points": (8, (1, 1), (2, 2), {"strides": [2, 2], "output_padding": [1, 1]})}


def transposed(case, biased=True, kernels=12):
    channels, spatial, window, more = case
    rng, net = np.random.default_rng(8), Model()
    net.dim("N", 1, 2, 8)
    w = rng.integers(-8, 9, (channels, kernels // more.get("group", 1), *window)).astype(np.float32)
    bias = rng.integers(-8, 9, kernels * biased).astype(np.float32)
    x = net.input("x", "f32", ["N", channels, *spatial])
    y = net.node("ConvTranspose", [x, net.constant(w), *([net.constant(bias)] if biased else [])], **more)
    net.output(net.node("Abs", [net.node("Relu", [y])]))
    return net, w, bias


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("name", PIXEL)
def test_a_transposed_convolution_of_one_pixel_is_a_product(name, biased, rnncc, compile, tmp_path):
    """Sums of integers are exact."""
    net, w, bias = transposed(PIXEL[name], biased)
    model = net.write(tmp_path)
    shown = rnncc("inspect", model).stdout
    assert " Gemm " in shown and " ConvTranspose " not in shown and " Relu " not in shown
    module = compile(model)
    for n in (1, 3):
        x = np.random.default_rng(n).integers(-8, 9, (n, w.shape[0])).astype(np.float32)
        (y,) = run_module(module, {"x": x.reshape(n, w.shape[0], *[1] * (w.ndim - 2))}).values()
        due = np.tensordot(x, w, 1) + (bias.reshape(-1, *[1] * (w.ndim - 2)) if biased else 0)
        assert np.array_equal(y, np.maximum(due, 0))


@pytest.mark.parametrize("name", LARGER)
def test_other_transposed_convolutions_stay(name, rnncc, tmp_path):
    assert " ConvTranspose " in rnncc("inspect", transposed(LARGER[name])[0].write(tmp_path)).stdout


def test_a_transposed_convolution_whose_bias_can_change_stays(rnncc, tmp_path):
    for biased in (True, False):
        shown = rnncc("inspect", transposed(PIXEL["a picture"], biased)[0].write(tmp_path), "--weights=mutable").stdout
        assert (" ConvTranspose " in shown) == biased
