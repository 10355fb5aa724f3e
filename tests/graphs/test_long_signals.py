# SPDX-License-Identifier: MIT
"""Signals of more than 2^20 samples in blocked tensors: each kernel of planes behind a convolution that copies."""
import numpy
import pytest

from support.machine import need_target
from support.model_builder import Model
from support.module import Module

SAMPLES, CHANNELS = 1_100_000, 16
COPIES = numpy.eye(CHANNELS)[:, :, None] * [0, 1, 0]  # a 1x1 convolution would go behind a mean


def pairs(x):
    return x.reshape(1, CHANNELS, -1, 2)


def sums_of_three(x):
    padded = numpy.pad(x, ((0, 0), (0, 0), (1, 1)))
    return padded[..., :-2] + padded[..., 1:-1] + padded[..., 2:]


# name: (operator, its weights, attributes, options, what it computes)
CASES = {
    "maxima": ("MaxPool", None, {"kernel_shape": [2], "strides": [2]}, (), lambda x: pairs(x).max(-1)),
    "means": ("AveragePool", None, {"kernel_shape": [2], "strides": [2]}, (), lambda x: pairs(x).sum(-1) / 2),
    "depthwise": ("Conv", numpy.ones((CHANNELS, 1, 3)), {"group": CHANNELS, "pads": [1, 1]}, ("--conv=depthwise",), sums_of_three),
    "transposed": ("ConvTranspose", numpy.eye(CHANNELS)[:, :, None].repeat(2, 2), {"strides": [2]}, (), lambda x: x.repeat(2, -1)),
}


@pytest.mark.every_case
@pytest.mark.parametrize("name", CASES)
def test_planes_may_be_longer_than_a_million(name, compile, tmp_path):
    op, weights, attributes, options, computed = CASES[name]
    model = Model()
    x = model.input("x", "f32", [1, CHANNELS, SAMPLES])
    copied = model.node("Conv", [x, model.constant(COPIES.astype(numpy.float32))], pads=[1, 1])
    operands = [copied] if weights is None else [copied, model.constant(weights.astype(numpy.float32))]
    y = model.output(model.node(op, operands, **attributes))
    given = numpy.random.default_rng(1).integers(-9, 10, (1, CHANNELS, SAMPLES)).astype(numpy.float32)
    with Module(compile(model.write(tmp_path), "--layout-search=greedy", "--no-winograd", *options)) as module, module.context(threads=2) as context:
        [got] = context.run({"x": given}).values()
    assert numpy.array_equal(got, computed(given).astype(numpy.float32))


@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
def test_winograd_s_planes_may_be_longer_than_a_million(target, rnncc, compile, tmp_path):
    """Which is not exact: a rounding of a transform is within 2^-20 of the largest number."""
    need_target(f"--target={target}")
    model = Model()
    weights = model.constant(numpy.random.default_rng(3).integers(-2, 3, (CHANNELS, CHANNELS, 3)).astype(numpy.float32))
    y = model.output(model.node("Conv", [model.input("x", "f32", [1, CHANNELS, SAMPLES]), weights], pads=[1, 1]))
    path, options = model.write(tmp_path), (f"--target={target}", "--layout-search=greedy", "--conv=winograd")
    given = numpy.random.default_rng(1).integers(-9, 10, (1, CHANNELS, SAMPLES)).astype(numpy.float32)
    with Module(compile(path, *options)) as module, module.context(threads=2) as context:
        [got] = context.run({"x": given}).values()
    padded = numpy.pad(given, ((0, 0), (0, 0), (1, 1)))[0]
    wanted = sum(model.arrays[weights][:, :, k] @ padded[:, k:k + SAMPLES] for k in range(3))
    numpy.testing.assert_allclose(got[0], wanted, rtol=0, atol=2.0**-20 * 9 * 2 * 3 * CHANNELS)
    assert "winograd" in rnncc("inspect", path, *options).stdout, y


def test_winograd_s_planes_of_bytes_may_be_longer_than_a_million(rnncc, compile, tmp_path):
    need_target("--target=x86-64-v3")
    model = Model()
    scale, zero = model.constant(numpy.float32(1)), model.constant(numpy.uint8(0))
    weights = model.constant(numpy.random.default_rng(3).integers(-2, 3, (CHANNELS, CHANNELS, 3)).astype(numpy.int8))
    x = model.input("x", "u8", [1, CHANNELS, SAMPLES])
    model.output(model.node("QLinearConv", [x, scale, zero, weights, scale, model.constant(numpy.int8(0)), scale, zero], pads=[1, 1]))
    path, options = model.write(tmp_path), ("--target=x86-64-v3", "--layout-search=greedy", "--conv=winograd_int8")
    assert "winograd_int8" in rnncc("inspect", path, *options).stdout
    given = numpy.random.default_rng(2).integers(0, 9, (1, CHANNELS, SAMPLES)).astype(numpy.uint8)
    with Module(compile(path, *options)) as module, module.context(threads=2) as context:
        [got] = context.run({"x": given}).values()
    padded = numpy.pad(given, ((0, 0), (0, 0), (1, 1)))[0].astype(numpy.int32)
    sums = sum(model.arrays[weights][:, :, k].astype(numpy.int32) @ padded[:, k:k + SAMPLES] for k in range(3))
    assert numpy.array_equal(got[0], sums.clip(0, 255).astype(numpy.uint8))


@pytest.mark.every_case
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_planes_of_bytes_may_be_longer_than_a_million(op, compile, tmp_path):
    model = Model()
    scale, zero = model.constant(numpy.float32(1)), model.constant(numpy.uint8(0))
    copies = model.constant(COPIES.astype(numpy.int8))
    x = model.input("x", "u8", [1, CHANNELS, SAMPLES])
    copied = model.node("QLinearConv", [x, scale, zero, copies, scale, model.constant(numpy.int8(0)), scale, zero], pads=[1, 1])
    if op == "MaxPool":
        pooled = model.node(op, [copied], kernel_shape=[2], strides=[2])
    else:
        means = model.node(op, [model.node("DequantizeLinear", [copied, scale, zero])], kernel_shape=[2], strides=[2])
        pooled = model.node("QuantizeLinear", [means, scale, zero])
    model.output(pooled)
    given = numpy.random.default_rng(2).integers(0, 128, (1, CHANNELS, SAMPLES)).astype(numpy.uint8) * 2 % 200
    with Module(compile(model.write(tmp_path), "--layout-search=greedy")) as module, module.context(threads=2) as context:
        [got] = context.run({"x": given}).values()
    wide = pairs(given).astype(numpy.float64)
    due = wide.max(-1) if op == "MaxPool" else numpy.rint(wide.sum(-1) / 2)
    assert numpy.array_equal(got, due.astype(numpy.uint8))
