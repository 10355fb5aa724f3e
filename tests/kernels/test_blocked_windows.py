# SPDX-License-Identifier: MIT
"""Depthwise and transposed convolution and pooling stay on blocked tensors, and compute the same as ONNX Runtime:
with residual and activation, batches known only at run time, on every target and any number of threads."""
import numpy
import pytest

from support.emitted import TARGETS, assert_same, run_module
from support.model_builder import Model, whole

CHANNELS = 21  # not a multiple of a block
BLOCKED = "--layout-search=greedy"  # a search would leave such small tensors row-major


def depthwise(model, rng, x, window, bias=True, **attributes):
    inputs = [x, model.constant(whole(rng, CHANNELS, 1, *window))]
    if bias:
        inputs.append(model.constant(whole(rng, CHANNELS)))
    return model.node("Conv", inputs, group=CHANNELS, **attributes)


def lane_wise_network(spatial):
    """Every op of the two families, each on the result of the one before. Means are over powers of two, so they are exact."""
    rng, model = numpy.random.default_rng(spatial), Model()
    model.dim("N", 1, 2, 3)
    extents, same = [19, 30][:spatial], {"pads": [1] * 2 * spatial}
    x = model.input("x", "f32", ["N", CHANNELS, *extents])
    first = model.node("Relu", [depthwise(model, rng, x, [3] * spatial, **same)])
    second = model.node("Relu", [model.node("Add", [depthwise(model, rng, first, [3] * spatial, bias=False, **same),
                                                    first])])
    largest = model.node("MaxPool", [second], kernel_shape=[3] * spatial, strides=[2] * spatial, ceil_mode=1, **same)
    mean = model.node("AveragePool", [largest], kernel_shape=[2] * spatial, strides=[1] * spatial, count_include_pad=1,
                      **same)
    strided = depthwise(model, rng, mean, [5, 3][:spatial], strides=[2] * spatial, dilations=[1, 2][:spatial],
                        pads=[2] * 2 * spatial)
    axes = model.constant(numpy.array([2, 3][:spatial]))
    model.output(strided, model.node("GlobalMaxPool", [strided]), model.node("ReduceSum", [strided, axes]),
                 model.node("ReduceMin", [strided, axes], keepdims=0))
    return model


@pytest.mark.parametrize("spatial", [1, 2])
@pytest.mark.parametrize("target", TARGETS)
def test_lane_wise_kernels_equal_onnx_runtime(compile, tmp_path, target, spatial):
    model = lane_wise_network(spatial)
    module = compile(model.write(tmp_path), f"--target={target}", BLOCKED)
    for batch in (1, 3):
        feeds = {"x": whole(numpy.random.default_rng(batch), batch, CHANNELS, *[19, 30][:spatial])}
        assert_same(run_module(module, feeds), model.onnx_run(feeds))


def test_lane_wise_ops_stay_blocked(rnncc, tmp_path):
    done = rnncc("inspect", lane_wise_network(2).write(tmp_path), "--target=x86-64-v4", BLOCKED)
    assert done.returncode == 0, done.stderr
    listed = done.stdout
    assert listed.count("depthwise_") == 3
    assert listed.count("_global_pool_blocked") == 3 and listed.count("_pool_blocked") == 5
    assert "pool_plain" not in listed and "plain_" not in listed and "_reduce" not in listed


def test_global_mean_sums_in_parts(compile, tmp_path):
    """One sum in order over 16,384 numbers of one sign could lose 16,384 roundings; eight parts lose 2,048 and three
    more, and the quotient one."""
    model = Model()
    x = model.input("x", "f32", [1, CHANNELS, 128, 128])
    first = model.node("Conv", [x, model.constant(numpy.ones((CHANNELS, 1, 1, 1), numpy.float32))], group=CHANNELS)
    model.output(model.node("GlobalAveragePool", [first]))
    feeds = {"x": numpy.random.default_rng(1).uniform(0.5, 1, (1, CHANNELS, 128, 128)).astype(numpy.float32)}
    got = next(iter(run_module(compile(model.write(tmp_path), BLOCKED), feeds).values()))
    exact = feeds["x"].astype(float).mean(axis=(2, 3), keepdims=True)
    assert (numpy.abs(got - exact) <= (2048 + 3 + 1) * 2.0**-24 * exact).all()
    in_order = numpy.cumsum(feeds["x"].reshape(CHANNELS, -1), axis=1, dtype=numpy.float32)[:, -1] / 16384
    assert numpy.abs(got - exact).max() < numpy.abs(in_order - exact.reshape(-1)).max() / 4


def transposed_network(seed):
    """Transposed convolutions after each other, so that blocked tensors are read and written."""
    rng, model = numpy.random.default_rng(seed), Model()
    spatial, channels = int(rng.integers(1, 3)), int(rng.choice([3, 16, 32, 24]))
    model.dim("N", 1, 2, 3)
    extents = [int(extent) for extent in rng.integers(1, 20, spatial)]
    x = model.input("x", "f32", ["N", channels, *extents])
    value = x
    for _ in range(2):
        groups = int(rng.choice([1, 1, 2, channels])) if channels % 2 == 0 else 1
        kernels = 1 if groups == channels else max(1, int(rng.choice([1, 5, 16, 33, 64, 64])) // groups)
        kernel, stride, dilation = ([int(k) for k in rng.integers(1, most, spatial)] for most in (8, 5, 3))
        full = [(e - 1) * s + (k - 1) * d + 1 for e, s, k, d in zip(extents, stride, kernel, dilation)]
        begin = [int(rng.integers(0, min(k + 1, f))) for k, f in zip(kernel, full)]
        end = [int(rng.integers(0, min(k + 1, f - b))) for k, f, b in zip(kernel, full, begin)]
        inputs = [value, model.constant(whole(rng, channels, kernels, *kernel))]
        if rng.random() < 0.5:
            inputs.append(model.constant(whole(rng, groups * kernels)))
        value = model.node("ConvTranspose", inputs, strides=stride, dilations=dilation, pads=begin + end, group=groups)
        value = model.node("Relu", [value])
        channels, extents = groups * kernels, [f - b - e for f, b, e in zip(full, begin, end)]
    model.output(value)
    return model


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("target", TARGETS)
def test_transposed_convolutions_equal_onnx_runtime(compile, tmp_path, target, seed):
    """In blocks of one vector, and of two."""
    model = transposed_network(seed)
    module = compile(model.write(tmp_path), f"--target={target}", BLOCKED if seed % 2 else "--layout-search=wide")
    shape = model.inputs[0]["shape"][1:]
    for batch in (1, 3):
        feeds = {"x": whole(numpy.random.default_rng(batch), batch, *shape)}
        assert_same(run_module(module, feeds), model.onnx_run(feeds))


def test_phases_without_an_output_take_no_time(compile, tmp_path):
    """Of 65536 x 65536 phases nine have outputs: visiting the others would take minutes."""
    model = Model()
    x = model.input("x", "f32", [1, 8, 1, 1])
    weights = model.constant(whole(numpy.random.default_rng(1), 8, 8, 3, 3))
    model.output(model.node("ConvTranspose", [x, weights], strides=[65536, 65536]))
    feeds = {"x": whole(numpy.random.default_rng(2), 1, 8, 1, 1)}
    assert_same(run_module(compile(model.write(tmp_path), BLOCKED), feeds), model.onnx_run(feeds))
