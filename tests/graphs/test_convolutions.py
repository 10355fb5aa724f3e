# SPDX-License-Identifier: MIT
"""Convolutions of every kind, and networks of them, compared with the reference interpreter, which adds in double: on
integers every bit must agree, with any number of threads (support/emitted.py). Winograd's algorithm rounds; its own tests
are kernels/test_conv_winograd*.py."""
import numpy
import pytest

from support.amount import some
from support.convolutional import RandomNetwork, random_convolution, signs, whole
from support.emitted import TARGETS, assert_same, run_module
from support.machine import WIDEST
from support.merge import merged
from support.model_builder import Model

CASES_IN_A_MODULE = 25
CONVOLUTIONS = {"x86-64-v4": 600, "x86-64-v3": 300, "x86-64": 100}
NETWORKS = 12
OPS = 9
BLOCKED = "--layout-search=greedy"  # a search would leave such small tensors row-major: networks/test_layouts.py


def batches(target):
    count = CONVOLUTIONS[target] // CASES_IN_A_MODULE
    return some(range(count), max(1, count // 8))


@pytest.mark.parametrize("target,batch", [(target, batch) for target in TARGETS
                                          for batch in batches(target)])
def test_random_convolutions_equal_the_reference(reference, compile, tmp_path, target, batch):
    rng = numpy.random.default_rng([batch, TARGETS.index(target)])
    model, feeds = merged([random_convolution(rng) for _ in range(CASES_IN_A_MODULE)])
    path = model.write(tmp_path)
    expected = reference.run(model, path, feeds)
    module = compile(path, f"--target={target}", "--no-winograd", BLOCKED, optimised=False)
    assert_same(run_module(module, feeds), expected)


@pytest.mark.parametrize("target", TARGETS[:2])
@pytest.mark.parametrize("seed", some(range(NETWORKS), 4))
def test_random_networks_equal_the_reference(reference, compile, tmp_path, target, seed):
    rng = numpy.random.default_rng([seed, 7])
    network = RandomNetwork(rng).grow(OPS)
    model = network.finish()
    path = model.write(tmp_path)
    module = compile(path, f"--target={target}", "--no-winograd", BLOCKED,
                     optimised=seed == 0 and target == WIDEST)
    for batch in (1, 3):
        feeds = network.feeds(batch)
        assert_same(run_module(module, feeds), reference.run(model, path, feeds))


@pytest.mark.parametrize("target", TARGETS)
def test_frames_of_sound_equal_the_reference(reference, compile, tmp_path, target):
    """Windows of hundreds of samples, far apart, over one channel: the spectrum that speech networks begin with."""
    rng = numpy.random.default_rng(5)
    frames = []
    for samples, kernel, stride, pads in [(576, 256, 128, [0, 0]), (1000, 400, 160, [200, 200]), (333, 65, 1, [64, 3]),
                                          (131, 130, 127, [0, 130]), (4200, 4097, 3, [0, 0])]:
        model = Model()
        x = model.input("x", "f32", [2, 1, samples])
        model.output(model.node("Conv", [x, model.constant(signs(rng, 35, 1, kernel))], strides=[stride], pads=pads))
        frames.append((model, {"x": whole(rng, 2, 1, samples)}))
    model, feeds = merged(frames)
    path = model.write(tmp_path)
    assert_same(run_module(compile(path, f"--target={target}", BLOCKED), feeds), reference.run(model, path, feeds))


@pytest.mark.optimised_here
@pytest.mark.parametrize("search", ["greedy", "none"])
def test_images_of_one_pixel_and_few_channels_are_not_confused(reference, compile, tmp_path, search):
    """Row-major images are closer together than in blocks of a vector."""
    rng, model = numpy.random.default_rng(8), Model()
    model.dim("N", 1, 1, 3)
    x = model.input("x", "f32", ["N", 3, 5, 5])
    pooled = model.node("GlobalMaxPool", [x])
    model.output(model.node("Conv", [pooled, model.constant(signs(rng, 16, 3, 1, 1))]))
    path, feeds = model.write(tmp_path), {"x": whole(rng, 3, 3, 5, 5)}
    assert_same(run_module(compile(path, f"--layout-search={search}"), feeds), reference.run(model, path, feeds))


def test_a_normalisation_without_a_finite_scale_is_not_folded(reference, compile, tmp_path):
    """A variance of zero without epsilon: the quotient is infinite or NaN exactly where the reference's is."""
    rng, model = numpy.random.default_rng(3), Model()
    x = model.input("x", "f32", [1, 16, 5, 5])
    first = model.node("Conv", [x, model.constant(signs(rng, 32, 16, 1, 1))])
    vectors = [model.constant(vector) for vector in (numpy.ones(32, "f"), numpy.zeros(32, "f"), numpy.zeros(32, "f"),
                                                     (numpy.arange(32) > 0).astype("f"))]
    pooled = model.node("MaxPool", [first], kernel_shape=[1, 1])
    relu = model.node("Relu", [model.node("BatchNormalization", [pooled, *vectors], epsilon=0.0)])
    model.output(model.node("Conv", [relu, model.constant(numpy.eye(32, dtype="f")[:, :, None, None])]))
    path = model.write(tmp_path)
    feeds = {"x": whole(rng, 1, 16, 5, 5)}
    expected = reference.run(model, path, feeds)
    assert not all(numpy.isfinite(array).all() for array in expected.values())
    assert_same(run_module(compile(path), feeds), expected)
