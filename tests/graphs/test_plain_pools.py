# SPDX-License-Identifier: MIT
"""Pooling of row-major tensors with sizes known at run time equals the reference to the bit: rows shorter and longer than
the number of outputs computed at once, any stride, dilation and padding, and NaN in any position."""
import numpy
import pytest

from support.convolutional import reach, whole
from support.emitted import TARGETS, assert_same, run_module
from support.merge import merged
from support.model_builder import Model

POOLS = 16
WIDE = [(1, 300, 1), (3, 1100, 1), (3, 2, 90)]  # kernel, dilation, stride: few outputs need inputs that fit no stack


def pool(rng, number, lengths):
    """(model, feeds) of one pool; its channels and extents are run-time dims, at `lengths`."""
    kernel, stride, dilation = ([int(k) for k in rng.integers(1, most, 2)] for most in (5, 5, 4))
    if number < len(WIDE):
        kernel[1], dilation[1], stride[1] = WIDE[number]
    maximum = number % 2 == 0
    reaches = [reach(k, d) for k, d in zip(kernel, dilation)]
    pads = [int(rng.integers(0, min(k, r) if maximum else k)) for k, r in zip(kernel * 2, reaches * 2)]
    model = Model()
    extents = [max(length, r) for length, r in zip(lengths, reaches)]
    for name, extent in zip("CHW", (3, *extents)):
        model.dim(name, 1 if name == "C" else reaches["HW".index(name)], extent, extent)
    x = model.input("x", "f32", [2, "C", "H", "W"])
    attributes = {} if maximum else {"count_include_pad": number // 2 % 2}
    model.output(model.node("MaxPool" if maximum else "AveragePool", [x], kernel_shape=kernel, strides=stride,
                            dilations=dilation, pads=pads, **attributes))
    image = whole(rng, 2, 3, *extents)
    image.flat[rng.integers(0, image.size, 2)] = numpy.nan
    return model, {"x": image}


@pytest.mark.parametrize("target", TARGETS)
def test_plain_pools_equal_the_reference(reference, compile, tmp_path, target):
    rng = numpy.random.default_rng(4)
    parts = []
    for number in range(POOLS):
        model, feeds = pool(rng, number, [int(length) for length in (rng.integers(1, 9), rng.integers(1, 300))])
        for described in model.inputs:
            described["shape"] = [f"{axis}{number}" if isinstance(axis, str) else axis for axis in described["shape"]]
        model.dims = {f"{name}{number}": bounds for name, bounds in model.dims.items()}
        parts.append((model, feeds))
    model, feeds = merged(parts)
    path = model.write(tmp_path)
    assert_same(run_module(compile(path, f"--target={target}"), feeds), reference.run(model, path, feeds))


@pytest.mark.every_case
@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("height, width", [(2, 2), (2, 4), (4, 2), (2, 3)])
def test_a_window_that_steps_over_the_input_has_no_points(compile, reference, tmp_path, blocked, height, width):
    """Its mean is 0, as ONNX Runtime's plain kernel says, and its maximum the least number, which no element is: index -1."""
    model, dilated = Model(), dict(kernel_shape=[2, 2], dilations=[3, 3], pads=[1, 1, 1, 1])
    x = model.input("x", "f32", [1, 16, height, width])
    y = model.node("Conv", [x, model.constant(numpy.eye(16, dtype="f").reshape(16, 16, 1, 1))]) if blocked else x
    model.output(model.node("Relu", [model.node("AveragePool", [y], **dilated)]))
    if not blocked:
        model.output(*model.node("MaxPool", [y], 2, **dilated))
    feeds = {"x": numpy.random.default_rng(1).uniform(1, 2, (1, 16, height, width)).astype("f")}
    due, path = model.onnx_run(feeds), model.write(tmp_path)
    mean = numpy.nan_to_num(due[model.outputs[0]])  # that of blocked tensors says NaN
    assert numpy.any(mean == 0)
    for got in (run_module(compile(path), feeds, threads=(1, 3)), reference.run(model, path, feeds)):
        numpy.testing.assert_allclose(got[model.outputs[0]], mean, rtol=1e-6)
        if not blocked:
            values, indices = (got[name] for name in model.outputs[1:])
            none = due[model.outputs[1]] < -1e38
            assert numpy.all(none == (values == -numpy.inf)) and numpy.all(indices[none] == -1) and none.any()
            numpy.testing.assert_array_equal(indices[~none], due[model.outputs[2]][~none])
