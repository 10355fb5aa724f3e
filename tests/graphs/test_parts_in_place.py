# SPDX-License-Identifier: MIT
"""Concat and Split of blocked channels, where an input has two places, or is a part of another, and of pixels whose blocks
are the caller's bytes: what ONNX Runtime computes."""
import numpy
import pytest

from support.emitted import run_module
from support.model_builder import Model


def convolution(model, x, channels, kernels):
    """Dilated, so that its sums of integers are exact: Winograd's are not."""
    weights = numpy.random.default_rng(channels * kernels).integers(-4, 5, (kernels, channels, 3, 3)).astype(numpy.float32)
    return model.node("Conv", [x, model.constant(weights)], kernel_shape=[3, 3], pads=[2] * 4, dilations=[2, 2])


def twice(model, x):
    return model.node("Concat", [x, x], axis=1), 64


def half_of_itself(model, x):
    """8 channels are no block, so the half behind them cannot lie where it is read."""
    _, half = model.node("Split", [x, model.constant(numpy.array([16, 16]))], 2, axis=1)
    return model.node("Concat", [x, convolution(model, x, 32, 8), half], axis=1), 56


@pytest.mark.parametrize("images", [1, 3])
@pytest.mark.parametrize("produced", [False, True], ids=["of an input", "of a convolution"])
@pytest.mark.parametrize("joined", [twice, half_of_itself])
def test_a_value_that_is_copied_beside_its_place(joined, produced, images, compile, tmp_path):
    model = Model("m")
    x = model.input("x", "f32", [images, 32, 11, 8])
    y, channels = joined(model, convolution(model, x, 32, 32) if produced else x)
    model.node("Identity", [convolution(model, y, channels, 32)], ["z"])
    model.output("z")
    feeds = {"x": numpy.random.default_rng(1).integers(-4, 5, (images, 32, 11, 8)).astype(numpy.float32)}
    got = run_module(compile(model.write(tmp_path)), feeds, threads=(1, 2))
    numpy.testing.assert_array_equal(got["z"], model.onnx_run(feeds)["z"])


@pytest.mark.parametrize("flat", [False, True], ids=["as it is", "flattened"])
def test_means_beside_maxima_are_written_to_their_place_in_an_output(flat, compile, tmp_path):
    """Of one pixel, the Concat is the output's buffer."""
    model = Model("m")
    y = convolution(model, model.input("x", "f32", [1, 16, 8, 4]), 16, 32)
    joined = model.node("Concat", [model.node("GlobalAveragePool", [y]), model.node("GlobalMaxPool", [y])], axis=1)
    model.output(model.node("Flatten" if flat else "Identity", [joined], ["z"]))
    feeds = {"x": numpy.random.default_rng(1).integers(-4, 5, (1, 16, 8, 4)).astype(numpy.float32)}
    got = run_module(compile(model.write(tmp_path)), feeds, threads=(1, 2))
    numpy.testing.assert_array_equal(got["z"], model.onnx_run(feeds)["z"])
