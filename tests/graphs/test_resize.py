# SPDX-License-Identifier: MIT
"""Resize: the reference interpreter compared with ONNX Runtime, emitted kernels with the reference."""
import numpy
import pytest

from graphs.resize_models import OF_ANY_RANK, RESIZES
from graphs.test_reference_onnx import assert_close
from support.emitted import TARGETS, assert_same, run_module
from support.merge import merged
from support.model_builder import Model

EPSILON = 2.0**-24  # the relative error of one rounding
CASES_OF_A_KIND = 12
# An element is a sum of taps whose weights' magnitudes add up to less than 2 for each axis: a rounding of each weight and
# of each sum, for up to five axes.
ROUNDINGS = 64


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("name", RESIZES)
def test_reference_agrees_with_onnx_runtime(reference, tmp_path, name, seed):
    model, feeds = RESIZES[name](numpy.random.default_rng([seed, *name.encode()]))
    expected = model.onnx_run(feeds)
    got = reference.run(model, model.write(tmp_path), feeds)
    for output in model.outputs:
        assert_close(got[output], expected[output], 0 if name == "nearest" else ROUNDINGS * EPSILON)


def many_cases():
    rng = numpy.random.default_rng(7)
    cases = [*RESIZES.values(), *OF_ANY_RANK.values()]
    return merged([build(rng) for build in cases for _ in range(CASES_OF_A_KIND)])


def assert_agrees(model, got, expected):
    for output in model.outputs:
        assert_close(got[output], expected[output], ROUNDINGS * EPSILON)


def test_kernels_agree_with_the_reference(reference, run_on_target, tmp_path):
    model, feeds = many_cases()
    path = model.write(tmp_path)
    assert_agrees(model, run_on_target(path, feeds, model.outputs), reference.run(model, path, feeds))


def decoder(mode):
    """As in segmentation networks: the image doubles between convolutions, first by scales, then to sizes, which have the
    batch, known at run time, in them."""
    rng, model = numpy.random.default_rng(1), Model()
    model.dim("N", 1, 2, 3)
    value, channels = model.input("x", "f32", ["N", 5, 6, 7]), 5
    for kernels in (21, 16):
        weights = model.constant(rng.integers(-2, 3, (kernels, channels, 3, 3)).astype(numpy.float32))
        value, channels = model.node("Conv", [value, weights], pads=[1] * 4), kernels
        if kernels == 21:
            doubled = [None, model.constant(numpy.array([1, 1, 2, 2], numpy.float32))]
        else:
            doubled = [None, None, model.node("Concat", [model.node("Shape", [value], end=2), model.constant([24, 28])], axis=0)]
        value = model.node("Resize", [value, *doubled], mode=mode, coordinate_transformation_mode="asymmetric",
                           nearest_mode="floor")
    model.output(model.node("Relu", [value]))
    return model


@pytest.mark.optimised_here
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("target", TARGETS)
def test_blocked_tensors_are_resized_as_plain_ones(compile, tmp_path, mode, target):
    """Integers, and linear weights of 0.5: the sums are exact."""
    model = decoder(mode)
    module = compile(model.write(tmp_path), f"--target={target}", "--no-winograd", "--layout-search=greedy")
    for batch in (1, 3):
        feeds = {"x": numpy.random.default_rng(batch).integers(-3, 4, (batch, 5, 6, 7)).astype(numpy.float32)}
        got, expected = run_module(module, feeds), model.onnx_run(feeds)
        assert_agrees(model, got, expected) if mode == "cubic" else assert_same(got, expected)


def test_a_decoder_stays_blocked(rnncc, tmp_path):
    done = rnncc("inspect", decoder("linear").write(tmp_path), "--target=x86-64-v4", "--layout-search=greedy")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("resize_linear_blocked") == 2


def test_sizes_may_follow_from_another_tensors_shape(compile, tmp_path):
    model = Model()
    model.dim("N", 1, 2, 4)
    x, like = model.input("x", "f32", ["N", 3, 5, 5]), model.input("like", "f32", ["N", 8, 9, 11])
    sizes = model.node("Concat", [model.node("Shape", [x], end=2), model.node("Shape", [like], start=2)], axis=0)
    model.output(model.node("Resize", [x, None, None, sizes], mode="linear"))
    feeds = {"x": numpy.random.default_rng(1).uniform(-1, 1, (3, 3, 5, 5)).astype(numpy.float32),
             "like": numpy.zeros((3, 8, 9, 11), numpy.float32)}
    got, expected = run_module(compile(model.write(tmp_path)), feeds), model.onnx_run(feeds)
    assert_agrees(model, got, expected)
