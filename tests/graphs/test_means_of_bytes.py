# SPDX-License-Identifier: MIT
"""AveragePool between DequantizeLinear and QuantizeLinear, QLinearAveragePool and QLinearGlobalAveragePool add up bytes and
change the scale once: in blocks, row-major and with the channels last, on every instruction set and for any number of threads.
Where scales are powers of two, ONNX Runtime rounds once, too, and has the same numbers; elsewhere they differ by a step at
most, where a mean lies halfway between two."""
import re

import numpy
import onnxruntime
import pytest

from conftest import build_directory
from graphs.test_integer_convolutions import windows_of
from support.amount import some
from support.emitted import TARGETS, assert_same, run_by, run_module
from support.merge import merged
from support.model_builder import TYPES, Model
from support.reference import Reference
from support.targets import SCALABLE

F32 = numpy.float32

# x: channels and plane; attributes of the pool. Channels that fill blocks, and such that do not.
WINDOWS = {
    "halves": dict(x=(32, 8, 10), kernel_shape=[2, 2], strides=[2, 2]),
    "rests": dict(x=(37, 9, 13), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], n=2),
    "padding counts": dict(x=(37, 9, 13), kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1, n=2, dtype="i8"),
    "padding of each side": dict(x=(20, 7, 8), kernel_shape=[3, 4], pads=[2, 0, 1, 3], strides=[1, 2], count_include_pad=1),
    "the same extent": dict(x=(5, 6, 9), kernel_shape=[4, 2], auto_pad="SAME_UPPER", dtype="i8"),
    "rounded up": dict(x=(16, 8, 9), kernel_shape=[3, 3], strides=[3, 2], ceil_mode=1, dtype="i8"),
    "rounded up, padding counts": dict(x=(19, 8, 10), kernel_shape=[3, 3], strides=[3, 2], pads=[0, 1, 0, 1], ceil_mode=1,
                                       count_include_pad=1),
    "dilated": dict(x=(16, 9, 11), kernel_shape=[2, 3], dilations=[3, 2], pads=[1, 2, 0, 1], dtype="i8"),
    "dilated, padding counts": dict(x=(17, 9, 11), kernel_shape=[2, 3], dilations=[3, 2], pads=[1, 2, 0, 1], count_include_pad=1),
    "far apart": dict(x=(3, 2, 300), kernel_shape=[2, 3], strides=[1, 70], dilations=[1, 40], pads=[1, 2, 0, 2], dtype="i8"),
    "a signal": dict(x=(18, 150), kernel_shape=[4], strides=[3], pads=[2, 1]),
    "a long row": dict(x=(2, 1, 200), kernel_shape=[1, 5], pads=[0, 2, 0, 2]),
    "volumes": dict(x=(3, 4, 5, 6), kernel_shape=[2, 3, 2], strides=[1, 2, 1], pads=[1, 1, 0, 0, 1, 1], count_include_pad=1, n=2),
    "volumes rounded up": dict(x=(3, 4, 5, 7), kernel_shape=[3, 3, 4], strides=[2, 2, 3], pads=[0, 0, 0, 0, 1, 2], ceil_mode=1,
                               count_include_pad=1),
    "all that is largest": dict(x=(16, 7, 7), kernel_shape=[7, 7], fill=255, x_zero=0),
    "all that is least": dict(x=(16, 7, 7), kernel_shape=[7, 7], fill=-128, x_zero=127, dtype="i8", scales=(8, .25)),
    "any scales": dict(x=(37, 9, 13), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], scales=(.0173, .0211)),
    "scales far apart": dict(x=(16, 5, 5), kernel_shape=[2, 2], scales=(1e30, 1e-6), dtype="i8"),
}

PLANES = {
    "7x7": dict(x=(2048, 7, 7)), "7x7 of rests": dict(x=(37, 7, 7), n=3, dtype="i8"), "one pixel": dict(x=(35, 1, 1), n=2),
    "a signal": dict(x=(21, 50), dtype="i8"), "volumes": dict(x=(5, 3, 4, 5), n=2), "a plane": dict(x=(3, 40, 41)),
    "all that is largest": dict(x=(16, 9, 9), fill=255, x_zero=0), "any scales": dict(x=(48, 7, 7), scales=(.0173, .0211)),
    "scales far apart": dict(x=(16, 3, 3), scales=(1e30, 1e-6)),
}


def parameters(name, dtype, scales, x_zero):
    """Scales and zero points, x's and y's."""
    rng, info = numpy.random.default_rng([*name.encode()]), numpy.iinfo(TYPES[dtype][0])
    zeros = [int(rng.integers(info.min + 60, info.max - 60)) if x_zero is None else x_zero, int(rng.integers(-9, 9)) + (info.max + info.min) // 2]
    return [F32(scales[0]), TYPES[dtype][0](zeros[0]), F32(scales[1]), TYPES[dtype][0](zeros[1])]


def numbers(name, shape, dtype, fill):
    info, rng = numpy.iinfo(TYPES[dtype][0]), numpy.random.default_rng([*name.encode()])
    drawn = rng.integers(info.min, info.max + 1, shape) if fill is None else numpy.full(shape, fill)
    return drawn.astype(TYPES[dtype][0])


def pooled(name, x, pairs=False, n=1, dtype="u8", fill=None, x_zero=None, scales=(.25, .125), dims=None, convolved=False, **attributes):
    """(Model, feeds). Without kernel_shape: the mean of all pixels. pairs: written with QuantizeLinear and DequantizeLinear.
    convolved: behind a convolution that changes no number, so that it is in blocks."""
    model, given = Model(), [n, *x]
    for axis, (dim, *extents) in (dims or {}).items():
        given[axis] = model.dim(dim, *extents) or dim
    values = parameters(name, dtype, scales, x_zero)
    x_scale, zero, y_scale, y_zero = [model.constant(numpy.asarray(value)) for value in values]
    source = model.input("x", dtype, given)
    if convolved:
        w = numpy.eye(x[0], dtype=numpy.int8).reshape(x[0], x[0], *[1] * (len(x) - 1))
        one = model.constant(F32(1))
        source = model.node("QLinearConv", [source, one, zero, model.constant(w), one, model.constant(numpy.int8(0)), one, zero])
    op = "AveragePool" if "kernel_shape" in attributes else "GlobalAveragePool"
    if pairs:
        mean = model.node(op, [model.node("DequantizeLinear", [source, x_scale, zero])], **attributes)
        model.output(model.node("QuantizeLinear", [mean, y_scale, y_zero]))
    else:
        model.output(model.node(f"QLinear{op}", [source, x_scale, zero, y_scale, y_zero], **attributes))
    return model, {"x": numbers(name, (n, *x), dtype, fill)}


def counted(extent, kernel, stride, dilation, begin, end, out, padded):
    """Of the windows along an axis: how many points a mean is over."""
    def points(o):
        at = numpy.arange(kernel) * dilation + o * stride - begin
        return ((at >= -begin) & (at < extent + end) if padded else (at >= 0) & (at < extent)).sum()
    return numpy.array([points(o) for o in range(out)])


def due(name, model, feeds, rounds_first, dtype="u8", scales=(.25, .125), x_zero=None, **case):
    """By integers and, in the end, three roundings of f32."""
    x_scale, zero, y_scale, y_zero = parameters(name, dtype, scales, x_zero)
    x = feeds["x"].astype(numpy.int64) - int(zero)
    rank, attributes = x.ndim - 2, {key: value for key, value in case.items() if key not in ("x", "n", "fill")}
    window = attributes.pop("kernel_shape", list(x.shape[2:]))
    strides = attributes.pop("strides", [1] * rank)
    dilations = attributes.pop("dilations", [1] * rank)
    reach = [(k - 1) * d + 1 for k, d in zip(window, dilations)]
    pads = attributes.pop("pads", [0] * 2 * rank)
    if attributes.pop("auto_pad", None):
        both = [max((-(-e // s) - 1) * s + r - e, 0) for e, s, r in zip(x.shape[2:], strides, reach)]
        pads = [b // 2 for b in both] + [b - b // 2 for b in both]
    up, padded = attributes.pop("ceil_mode", 0), attributes.pop("count_include_pad", 0)
    assert not attributes
    out, more = [], []  # more: what the last windows reach past the padding
    for axis in range(rank):
        slack = x.shape[2 + axis] + pads[axis] + pads[rank + axis] - reach[axis]
        count = (-(-slack // strides[axis]) if up else slack // strides[axis]) + 1
        if up and (count - 1) * strides[axis] >= x.shape[2 + axis] + pads[axis]:
            count -= 1
        out.append(count)
        more.append(max(0, (count - 1) * strides[axis] - slack))
    all_pads = [*pads[:rank], *(p + m for p, m in zip(pads[rank:], more))]
    sums = windows_of(x, window, strides, all_pads, dilations).sum(tuple(range(2 + rank, 2 + 2 * rank)))
    points = numpy.ones([1, 1] + [1] * rank, numpy.int64)
    for axis in range(rank):
        along = counted(x.shape[2 + axis], window[axis], strides[axis], dilations[axis], pads[axis], pads[rank + axis], out[axis], padded)
        points = points * along.reshape([-1 if k == 2 + axis else 1 for k in range(2 + rank)])
    with numpy.errstate(over="ignore"):
        factor = F32(float(x_scale) / float(y_scale))
        y = sums.astype(F32) * factor / points.astype(F32)
    y = numpy.rint(y).astype(float) + int(y_zero) if rounds_first else numpy.rint(y + F32(y_zero)).astype(float)
    info = numpy.iinfo(y_zero.dtype)
    return {model.outputs[0]: numpy.clip(y, info.min, info.max).astype(y_zero.dtype)}


def parts_of(convolved=False):
    """((Model, feeds), what is due) of every case, of both forms."""
    parts = []
    for cases in (WINDOWS, PLANES):
        for name, case in cases.items():
            for pairs in (False, True):
                if convolved and len(case["x"]) > 3:
                    continue
                model, feeds = pooled(name, pairs=pairs, convolved=convolved and case["x"][0] < 100, **case)
                parts.append(((model, feeds), due(name, model, feeds, pairs or cases is PLANES, **case)))
    return parts


def joined(parts):
    model, feeds = merged([part for part, _ in parts])
    return model, feeds, {f"p{k}_{name}": array for k, (_, expected) in enumerate(parts) for name, array in expected.items()}


def test_the_reference_is_exact(tmp_path):
    model, feeds, expected = joined(parts_of())
    reference = Reference(build_directory() / "tests" / "support" / "reference_run")
    assert_same(reference.run(model, model.write(tmp_path), feeds), expected)


def by_onnx_runtime(model, feeds):
    """Node by node; its own operators are of its domain."""
    written = model.onnx()
    written.opset_import.add(domain="com.microsoft", version=1)
    for node in written.graph.node:
        node.domain = "com.microsoft" if node.op_type.startswith("QLinear") else ""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(written.SerializeToString(), options).run(None, feeds)[0]


def test_onnx_runtime_has_the_same_numbers():
    """Exactly, of scales that are powers of two; else but for halves, where its sums of floats have rounded before."""
    for (model, feeds), expected in parts_of():
        array, = expected.values()
        attributes = model.nodes[0]["attributes"]
        if model.nodes[0]["op"] == "QLinearAveragePool" and ("dilations" in attributes or {"ceil_mode", "count_include_pad"} <= {*attributes}):
            continue  # its own has no dilations, and counts what windows reach past the padding
        scales = [float(value) for value in model.arrays.values() if value.dtype == F32]
        if max(scales) > 1e9:
            continue  # its numbers leave i32 before they are saturated
        apart = by_onnx_runtime(model, feeds).astype(int) - array
        powers = all(numpy.log2(scale) % 1 == 0 for scale in scales)
        assert (apart == 0).all() if powers else abs(apart).max() <= 1 and (apart != 0).mean() < .02, (model.nodes, apart)


@pytest.mark.every_case
@pytest.mark.parametrize("blocked", [True, False])
@pytest.mark.parametrize("target", some([*TARGETS, "x86-64-v2"], 2))
def test_means_are_of_bytes(compile, rnncc, tmp_path, target, blocked):
    model, feeds, expected = joined(parts_of(blocked))
    path, options = model.write(tmp_path), (f"--target={target}", "--layout-search=greedy")
    assert_same(run_module(compile(path, *options), feeds), expected)
    done = rnncc("inspect", path, *options, "--dump-after=lower")
    assert done.returncode == 0, done.stderr
    kernels = set(re.findall(r"^k\d+_([a-z_0-9]+) n\d+ \S+$", done.stdout + done.stderr, re.MULTILINE))
    means = {"pool_int8", "mean_pool_int8", "global_mean_int8"} - ({"mean_pool_int8"} if blocked else {"pool_int8"})
    assert kernels & {"pool_int8", "mean_pool_int8", "global_mean_int8"} == means, kernels
    assert not any(name.startswith(("reduce", "pool_", "global_pool", "elementwise")) for name in kernels - means), kernels


@pytest.mark.parametrize("target", some(["aarch64-linux-gnu", *SCALABLE], 1))
def test_other_instruction_sets_have_the_same(compile, rnnrun_of, tmp_path, target):
    model, feeds, expected = joined(parts_of(True))
    module = compile(model.write(tmp_path), f"--target={target}", "--layout-search=greedy", optimised="+rvv" in target)
    assert_same(run_by(rnnrun_of(target), module, feeds, expected, tmp_path), expected)


@pytest.mark.parametrize("name, cases", [("rests", WINDOWS), ("padding counts", WINDOWS), ("7x7 of rests", PLANES)])
@pytest.mark.parametrize("convolved", [True, False])
def test_extents_that_only_the_run_knows(compile, tmp_path, name, cases, convolved):
    case = cases[name]
    model, _ = pooled(name, convolved=convolved, **case, dims={0: ("N", 1, 2, 3), 2: ("H", 1, 9, 20), 3: ("W", 1, 13, 20)})
    module = compile(model.write(tmp_path))
    for n, plane in ((1, (3, 20)), (3, (20, 5)), (2, (1, 1))):
        changed = {**case, "x": (37, *plane), "n": n}
        _, feeds = pooled(name, **changed)
        assert_same(run_module(module, feeds, (1, 2)), due(name, model, feeds, cases is PLANES, **changed))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("convolved", [True, False])
def test_a_window_around_the_input_has_the_mean_0(compile, tmp_path, target, convolved):
    """Of its two rows one is before the input, one behind it: of no point, and 0 / 0 is none."""
    case = dict(x=(20, 2, 9), kernel_shape=[2, 3], dilations=[3, 1], pads=[1, 0, 1, 0], dtype="i8")
    model, feeds = pooled("around", convolved=convolved, **case)
    zero = parameters("around", "i8", (.25, .125), None)[3]
    module = compile(model.write(tmp_path), f"--target={target}", "--layout-search=greedy")
    assert_same(run_module(module, feeds, (1,)), {model.outputs[0]: numpy.full((1, 20, 1, 7), zero)})


@pytest.mark.optimised_here
@pytest.mark.parametrize("channels, pixels", [(37, (4, 5)), (16, (7, 7)), (3, (9,))])
def test_channels_may_be_last(compile, tmp_path, channels, pixels):
    case = dict(x=(channels, *pixels), n=2, dtype="i8")
    model, feeds = pooled("last", **case)
    expected, = due("last", model, feeds, True, **case).values()
    last = lambda x: numpy.ascontiguousarray(numpy.moveaxis(x, 1, -1))  # noqa: E731
    model.inputs[0]["shape"] = [2, *pixels, channels]
    model.nodes[0]["attributes"]["channels_last"] = 1
    got = run_module(compile(model.write(tmp_path)), {"x": last(feeds["x"])})
    assert_same(got, {model.outputs[0]: last(expected)})


def test_sums_beyond_f32_are_exact(compile, tmp_path):
    """In f32, 4000 sums of a column, 4623 each, end above their sum: from 2^24 on, each addition rounds up by one. The mean is
    halfway between two numbers."""
    case = dict(x=(1, 23, 4001), kernel_shape=[23, 4000], fill=201, x_zero=0, scales=(.25, .5))
    model, feeds = pooled("large", pairs=True, **case)
    assert_same(run_module(compile(model.write(tmp_path)), feeds, (1,)), due("large", model, feeds, True, **case))


def test_inspect_says_which_means_are_of_bytes(rnncc, tmp_path):
    """A scale that only the run knows leaves the formula of floats."""
    known, _ = pooled("rests", **WINDOWS["rests"])
    of_run, _ = pooled("rests", **WINDOWS["rests"])
    of_run.nodes[0]["inputs"][1] = of_run.input("s", "f32", [])
    everything, _ = pooled("7x7", **PLANES["7x7"])
    for model, in_bytes, why in ((known, "int8", "sums of at most 2295, less than 2^31"), (everything, "int8", "sums of at most 12495,"),
                                 (of_run, "f32", "its inputs are in floats")):
        row, = [line for line in rnncc("inspect", "--explain=int8", model.write(tmp_path)).stdout.splitlines() if "AveragePool" in line]
        assert f" {in_bytes} " in row and why in row, row


def test_sums_beyond_i32_are_not_of_bytes(rnncc, tmp_path):
    """2^23 + 1 pixels of 255 are more; one row less is not."""
    for height, in_bytes in ((2**13, True), (2**13 + 128, False)):
        model = Model()
        one, zero = model.constant(F32(1)), model.constant(numpy.uint8(0))
        model.output(model.node("QLinearGlobalAveragePool", [model.input("x", "u8", [1, 1, height, 1024]), one, zero, one, zero]))
        done = rnncc("inspect", model.write(tmp_path), "--dump-after=lower")
        assert done.returncode == 0 and ("global_mean_int8" in done.stdout + done.stderr) is in_bytes
