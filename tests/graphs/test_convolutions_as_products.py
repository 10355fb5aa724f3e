# SPDX-License-Identifier: MIT
"""--precision makes the weights of a convolution small whose window is its whole input: the result is that of the rounded
weights, in double precision."""
import numpy as np
import pytest

from graphs.test_narrow_weights import Int8, rounded
from support.amount import some
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
    assert said.endswith('--precision: no RNN, GRU, LSTM, MatMul, Gemm or Conv of one window is computed by "bf16"\n')


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
        told = f'no RNN, GRU, LSTM, MatMul, Gemm or Conv of one window is computed by "{idle}"\n' if idle else ""
        assert done.returncode == 0 and done.stderr[-len(told):] == told and bool(told) == bool(done.stderr), (pattern, done.stderr)


def test_without_the_option_a_convolution_stays_one(rnncc, tmp_path):
    model = network(*WHOLE["a plane"])[0].write(tmp_path)
    done = [rnncc("inspect", model, *options).stdout for options in ([], ["--precision=f32"], ["--precision=bf16"])]
    assert [" Conv " in text for text in done] == [True, True, False]
