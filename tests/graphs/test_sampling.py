# SPDX-License-Identifier: MIT
"""GridSample and RoiAlign: the reference interpreter compared with ONNX Runtime, emitted kernels with the reference."""
import numpy
import pytest

from graphs.sample_models import SAMPLES, one_op
from graphs.test_reference_onnx import assert_close
from support.emitted import run_module
from support.merge import merged
from support.module import Module, ModuleError

EPSILON = 2.0**-24  # the relative error of one rounding
CASES_OF_A_KIND = 12
# A coordinate is rounded some 4 times, at up to 14 pixels: 4 * 14 roundings of a pixel, in each of which values change
# by less than three times the largest. Cubic weights are steeper, by less than 2.
ROUNDINGS = 4 * 14 * 3 * 2


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("name", SAMPLES)
def test_reference_agrees_with_onnx_runtime(reference, tmp_path, name, seed):
    model, feeds = SAMPLES[name](numpy.random.default_rng([seed, *name.encode()]))
    expected = model.onnx_run(feeds)
    got = reference.run(model, model.write(tmp_path), feeds)
    for output in model.outputs:
        assert_close(got[output], expected[output], ROUNDINGS * EPSILON)


def many_cases():
    rng = numpy.random.default_rng(7)
    return merged([build(rng) for build in SAMPLES.values() for _ in range(CASES_OF_A_KIND)])


def test_kernels_agree_with_the_reference(reference, run_on_target, tmp_path):
    model, feeds = many_cases()
    path = model.write(tmp_path)
    got, expected = run_on_target(path, feeds, model.outputs), reference.run(model, path, feeds)
    for output in model.outputs:
        assert_close(got[output], expected[output], ROUNDINGS * EPSILON)


@pytest.mark.optimised_here
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_coordinates_that_are_not_finite_read_only_the_image(compile, tmp_path, mode, padding):
    """Their results are not defined, except for zeros: there is no fault, and points beside them do not change."""
    places = numpy.array([numpy.nan, numpy.inf, -numpy.inf, 3e38, -3e38, 0.25], numpy.float32)
    grid = numpy.stack(numpy.meshgrid(places, places), axis=-1)[None]
    x = numpy.arange(1, 13, dtype=numpy.float32).reshape(1, 1, 3, 4)
    model, feeds = one_op("GridSample", [x, grid], mode=mode, padding_mode=padding)
    got = next(iter(run_module(compile(model.write(tmp_path)), feeds).values()))[0, 0]
    alone, feeds = one_op("GridSample", [x, grid[:, -1:, -1:]], mode=mode, padding_mode=padding)
    assert got[-1, -1] == pytest.approx(alone.onnx_run(feeds)[alone.outputs[0]].item(), rel=ROUNDINGS * EPSILON)
    if padding == "zeros":
        assert (got[:-1] == 0).all() and (got[:, :-1] == 0).all()


def test_values_beyond_the_border_are_zero_beside_infinities(compile, tmp_path):
    x = numpy.full((1, 1, 2, 2), numpy.inf, numpy.float32)
    model, feeds = one_op("GridSample", [x, numpy.full((1, 1, 1, 2), 9, numpy.float32)])
    assert next(iter(run_module(compile(model.write(tmp_path)), feeds).values())).item() == 0


@pytest.mark.parametrize("width", [255, 256, 300])
def test_a_region_of_more_points_than_are_kept_is_pooled_alike(compile, tmp_path, width):
    """A point for each pixel, of 11 channels."""
    x = numpy.random.default_rng(width).uniform(-1, 1, (1, 11, 4, 310)).astype(numpy.float32)
    rois = numpy.array([[2.25, 0.5, 2.25 + width, 3.5], [0, 0, 7, 3]], numpy.float32)
    model, feeds = one_op("RoiAlign", [x, rois, numpy.zeros(2, numpy.int64)], output_height=2, output_width=1,
                          coordinate_transformation_mode="output_half_pixel")
    model.opset = 21
    expected = model.onnx_run(feeds)
    got = run_module(compile(model.write(tmp_path)), feeds, threads=(1, 2, 3))
    for output in model.outputs:
        assert_close(got[output], expected[output], 300 * ROUNDINGS * EPSILON)


@pytest.mark.parametrize("image", [-1, 2, 2**62])
def test_a_region_of_an_unknown_image_is_refused(compile, tmp_path, image):
    x, rois = numpy.ones((2, 1, 4, 4), numpy.float32), numpy.array([[0, 0, 3, 3]], numpy.float32)
    model, feeds = one_op("RoiAlign", [x, rois, numpy.array([image])])
    with Module(compile(model.write(tmp_path))) as module:
        context = module.context()
        with pytest.raises(ModuleError) as refused:
            context.run(feeds)
        assert refused.value.status == "value"
        context.close()
