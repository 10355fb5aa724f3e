# SPDX-License-Identifier: MIT
"""Extents that are the same at all values of a dim: floor((W + 1) / 2) is 5 for a W of 9 or 10. They are constants, also
where kernels, products and recurrent layers need one; the input's extent is not."""
import numpy
import pytest

from support.emitted import TARGETS
from support.model_builder import Model
from support.module import Module

CHANNELS = 32


def images():
    """x [1, 32, 6, W], W 9 or 10."""
    model = Model()
    model.dim("W", 9, 10, 10)
    return model, model.input("x", "f32", [1, CHANNELS, 6, "W"])


def numbers(*shape):
    return numpy.random.default_rng(1).integers(-2, 3, shape).astype(numpy.float32)


def halved(model, x, how):
    """[1, 32, 3, 5]"""
    if how == "pool":
        return model.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    if how == "transposed":
        smaller = model.node("MaxPool", [x], kernel_shape=[6, 3], strides=[3, 3])
        return model.node("ConvTranspose", [smaller, model.constant(numbers(CHANNELS, CHANNELS, 3, 3))], kernel_shape=[3, 3])
    groups = CHANNELS if how == "depthwise" else 1
    pads = {"auto_pad": "SAME_UPPER"} if how == "same" else {"pads": [1, 1, 1, 1]}
    return model.node("Conv", [x, model.constant(numbers(CHANNELS, CHANNELS // groups, 3, 3))], kernel_shape=[3, 3],
                      strides=[2, 2], group=groups, **pads)


def same_as_onnx_runtime(compile, model, folder, target):
    with Module(compile(model.write(folder), f"--target={target}")) as loaded, loaded.context(2) as context:
        for width in (9, 10):
            feeds = {"x": numbers(*(width if extent == "W" else extent for extent in model.inputs[0]["shape"]))}
            expected, got = model.onnx_run(feeds), context.run(feeds)
            for name, array in expected.items():  # sums of small integers are exact; tanh and sigmoid are not
                numpy.testing.assert_allclose(got[name], array, rtol=0, atol=1e-6 if "lstm" in folder.name else 0)


@pytest.mark.parametrize("target", TARGETS[:2])
@pytest.mark.parametrize("how", ["pool", "direct", "same", "depthwise", "transposed"])
def test_planes_of_one_extent(compile, tmp_path, how, target):
    model, x = images()
    blocked = model.node("Conv", [x, model.constant(numbers(CHANNELS, CHANNELS, 1, 1))], kernel_shape=[1, 1])
    result = halved(model, blocked, how)
    product = model.node("MatMul", [result, model.constant(numbers(5, 4))])
    model.output(product, model.node("Relu", [result]))
    same_as_onnx_runtime(compile, model, tmp_path, target)


def test_a_recurrent_layer_of_one_extent(compile, tmp_path):
    (folder := tmp_path / "lstm").mkdir()
    model = Model()
    model.dim("W", 9, 10, 10)
    x = model.input("x", "f32", [2, 3, "W"])
    half = model.node("MaxPool", [x], kernel_shape=[2], strides=[2], ceil_mode=1)
    weights = [model.constant(numbers(1, 16, 5) / 8), model.constant(numbers(1, 16, 4) / 8)]
    y, *_ = model.node("LSTM", [half, *weights], 3, hidden_size=4)
    model.output(y)
    same_as_onnx_runtime(compile, model, folder, TARGETS[0])


@pytest.mark.parametrize(("kernel", "exit_code", "where"), [(2, 0, "W is 9 to 10: bound it so, as --dim 'W=9..10'"),
                                                            (1, 2, "W is 5: bound it so, as --dim 'W=5'")])
def test_extents_that_could_be_equal_say_where(rnncc, tmp_path, kernel, exit_code, where):
    """A computed extent is checked in each run, the input's own is to be bounded."""
    model = Model()
    model.dim("W", 1, 10, 20)
    x = model.input("x", "f32", [2, 3, "W"])
    half = model.node("MaxPool", [x], kernel_shape=[kernel], strides=[kernel], ceil_mode=1)
    model.output(model.node("MatMul", [half, model.constant(numbers(5, 4))]))
    lstm = model.node("LSTM", [half, model.constant(numbers(1, 16, 5)), model.constant(numbers(1, 16, 4))], 3, hidden_size=4)
    model.output(lstm[0])
    done = rnncc("inspect", model.write(tmp_path))
    assert done.returncode == exit_code and done.stderr.count(f"they are equal where {where} does (W: axis 2 of `x`)") == 2, done.stderr
