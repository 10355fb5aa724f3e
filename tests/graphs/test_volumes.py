# SPDX-License-Identifier: MIT
"""Windows over volumes, indices of maxima, norms: the reference interpreter compared with ONNX Runtime, emitted kernels
with the reference."""
import numpy
import pytest

from graphs.test_reference_onnx import FUNCTION_ERROR, assert_close, peer_run
from graphs.volume_models import ROUNDED, VOLUMES
from support.amount import long_tests
from support.emitted import assert_same, run_module
from support.merge import merged
from support.model_builder import Model
from support.module import Module, ModuleError

EPSILON = 2.0**-24  # the relative error of one rounding
CASES_OF_A_KIND = 6 if long_tests() else 3


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", VOLUMES)
def test_reference_agrees_with_onnx_runtime(reference, tmp_path, name, seed):
    model, feeds = VOLUMES[name](numpy.random.default_rng([seed, *name.encode()]))
    expected = peer_run(model, feeds)
    got = reference.run(model, model.write(tmp_path), feeds)
    for output in model.outputs:
        assert_close(got[output], expected[output], 4 * FUNCTION_ERROR if name in ROUNDED else 0)


def many_cases():
    """A merged model, and the case to which each output belongs."""
    rng, names = numpy.random.default_rng(7), [name for name in VOLUMES for _ in range(CASES_OF_A_KIND)]
    model, feeds = merged([VOLUMES[name](rng) for name in names])
    return model, feeds, {output: names[int(output[1:].split("_")[0])] for output in model.outputs}


def test_kernels_agree_with_the_reference(reference, run_on_target, tmp_path):
    """Sums are exact. A mean is rounded once, a root and a power within 2 ULP, and normalising rounds a few times."""
    model, feeds, case_of = many_cases()
    path = model.write(tmp_path)
    got, expected = run_on_target(path, feeds, model.outputs), reference.run(model, path, feeds)
    for output, case in case_of.items():
        assert_close(got[output], expected[output], 16 * EPSILON if case in ROUNDED else 0)


def unpool(shape=None):
    model = Model()
    inputs = [model.input("x", "f32", [1, 1, 2, 2]), model.input("i", "i64", [1, 1, 2, 2])]
    if shape:
        inputs.append(model.constant(numpy.array(shape)))
    model.output(model.node("MaxUnpool", inputs, kernel_shape=[2, 2], strides=[2, 2]))
    return model


def test_a_larger_output_keeps_the_places_of_unpooled_elements(compile, tmp_path):
    """Indices are those of the windows' own extents; the rest is at the end of each axis, as in ONNX's own test."""
    x = numpy.arange(1, 5, dtype=numpy.float32).reshape(1, 1, 2, 2)
    i = numpy.array([5, 7, 13, 15]).reshape(1, 1, 2, 2)
    plain, larger = (next(iter(run_module(compile(unpool(shape).write(tmp_path)), {"x": x, "i": i}).values()))
                     for shape in (None, [1, 1, 5, 6]))
    assert_same({"y": numpy.pad(plain, ((0, 0), (0, 0), (0, 1), (0, 2)))}, {"y": larger})


@pytest.mark.every_case
@pytest.mark.parametrize("bad", [-1, 16, 2**62, -(2**63)])
def test_an_index_out_of_range_is_refused(compile, tmp_path, bad):
    with Module(compile(unpool().write(tmp_path))) as module:
        context = module.context()
        with pytest.raises(ModuleError) as refused:
            context.run({"x": numpy.ones((1, 1, 2, 2), numpy.float32), "i": numpy.array([[[[1, 2], [3, bad]]]])})
        assert refused.value.status == "value"
        context.close()


@pytest.mark.optimised_here
def test_volumes_whose_extents_only_run_time_knows(compile, tmp_path):
    rng, model = numpy.random.default_rng(1), Model()
    for name in ("N", "D", "H", "W"):
        model.dim(name, 3, 5, 9)
    x = model.input("x", "f32", ["N", 2, "D", "H", "W"])
    weights = model.constant(rng.integers(-2, 3, (5, 2, 3, 2, 3)).astype(numpy.float32))
    first = model.node("Relu", [model.node("Conv", [x, weights], pads=[1, 0, 1, 1, 1, 1], strides=[1, 2, 1])])
    model.output(model.node("MaxPool", [first], kernel_shape=[2, 1, 2]), model.node("GlobalMaxPool", [first]))
    module = compile(model.write(tmp_path))
    for extents in ((3, 3, 3, 3), (4, 9, 5, 7)):
        feeds = {"x": rng.integers(-3, 4, (extents[0], 2, *extents[1:])).astype(numpy.float32)}
        assert_same(run_module(module, feeds), model.onnx_run(feeds))
