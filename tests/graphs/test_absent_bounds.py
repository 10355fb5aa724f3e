# SPDX-License-Identifier: MIT
"""Absent optional inputs of nodes that become part of a kernel: Clip without its lower bound, its upper bound, or both."""
import numpy
import pytest

from support.convolutional import signs, whole
from support.emitted import assert_same, run_module
from support.model_builder import Model

BOUNDS = {"low": (-7, None), "high": (None, 7), "none": (None, None), "left out": ()}


def clip(model, x, bounds):
    return model.node("Clip", [x, *(bound and model.constant(numpy.float32(bound)) for bound in bounds)])


def conv(model, x, rng, kernel=3):
    return model.node("Conv", [x, model.constant(signs(rng, 32, 32, kernel, kernel))], pads=[kernel // 2] * 4)


def of_conv(model, x, rng, bounds):
    return clip(model, conv(model, x, rng), bounds)


def of_conv_with_residual(model, x, rng, bounds):
    return clip(model, model.node("Add", [conv(model, x, rng), x]), bounds)


def of_a_second_step(model, x, rng, bounds):
    return clip(model, model.node("Neg", [conv(model, x, rng)]), bounds)


def before_a_pool(model, x, rng, bounds):
    return model.node("MaxPool", [of_conv(model, x, rng, bounds)], kernel_shape=[2, 2], strides=[2, 2])


def of_normalised(model, x, rng, bounds):
    """As a prologue of the convolution that reads it."""
    scale, shift, mean, variance = (model.constant(numpy.full(32, n, "f")) for n in (2, 1, 3, 1))
    return conv(model, clip(model, model.node("BatchNormalization", [x, scale, shift, mean, variance], epsilon=0.0), bounds),
                rng, kernel=1)


def of_transposed_conv(model, x, rng, bounds):
    return clip(model, model.node("ConvTranspose", [x, model.constant(signs(rng, 32, 3, 2, 2))], strides=[2, 2]), bounds)


def of_gemm(model, x, rng, bounds):
    rows = model.node("Reshape", [x, model.constant(numpy.array([-1, 64]))])
    return clip(model, model.node("Gemm", [rows, model.constant(signs(rng, 64, 20)), None]), bounds)


def in_a_chain(model, x, rng, bounds):
    """With results that others read, so that it does not become an epilogue."""
    doubled = model.node("Add", [x, x])
    return model.node("Add", [clip(model, doubled, bounds), model.node("Neg", [doubled])])


HOSTS = [of_conv, of_conv_with_residual, of_a_second_step, before_a_pool, of_normalised, of_transposed_conv, of_gemm,
         in_a_chain]


@pytest.mark.parametrize("search", ["auto", "greedy", "wide"])
@pytest.mark.parametrize("host", HOSTS)
def test_clips_without_bounds_equal_the_reference(reference, compile, tmp_path, host, search):
    rng, model = numpy.random.default_rng(4), Model()
    x = model.input("x", "f32", [2, 32, 10, 8])
    model.output(*[host(model, x, rng, bounds) for bounds in BOUNDS.values()])
    path, feeds = model.write(tmp_path), {"x": whole(rng, 2, 32, 10, 8)}
    module = compile(path, "--no-winograd", f"--layout-search={search}")
    assert_same(run_module(module, feeds), reference.run(model, path, feeds))
