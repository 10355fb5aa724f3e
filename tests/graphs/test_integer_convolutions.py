# SPDX-License-Identifier: MIT
"""Convolutions of quantised numbers are exact: every window, blocking and edge, on every instruction set and for any
number of threads, also where sums are as large as 8 bits make them. What is expected is summed in 64 bits."""
import re

import numpy
import pytest

from support.amount import some
from support.emitted import TARGETS, assert_same, run_by, run_module
from support.merge import merged
from support.model_builder import TYPES, Model
from support.targets import SCALABLE

BOTH = dict(pads=[1, 1, 1, 1])
BYTES = {numpy.dtype("uint8"): "u8", numpy.dtype("int8"): "i8"}

# x: channels, height, width; kernels and window; types of x, weights and y; attributes.
CASES = {
    "pointwise": dict(x=(48, 5, 9), kernels=64, window=(1, 1)),
    "pointwise of rests": dict(x=(37, 7, 7), kernels=50, window=(1, 1), n=2),
    "pointwise in steps": dict(x=(20, 9, 13), kernels=16, window=(1, 1), strides=[2, 3]),
    "3x3": dict(x=(32, 6, 25), kernels=64, window=(3, 3), **BOTH, n=2),
    "3x3 of i8": dict(x=(32, 6, 25), kernels=40, window=(3, 3), types=("i8", "i8", "i8"), **BOTH),
    "first": dict(x=(3, 17, 31), kernels=32, window=(7, 7), strides=[2, 2], pads=[3, 3, 3, 3]),
    "first of i8": dict(x=(3, 17, 30), kernels=20, window=(5, 5), strides=[2, 2], pads=[2, 2, 2, 2],
                        types=("i8", "i8", "u8")),
    "five channels": dict(x=(5, 9, 8), kernels=17, window=(3, 3), **BOTH),
    "one channel": dict(x=(1, 5, 5), kernels=3, window=(5, 5), pads=[2, 2, 2, 2]),
    "weights of u8": dict(x=(24, 6, 7), kernels=16, window=(3, 3), types=("u8", "u8", "u8"), w_zero=128, **BOTH),
    "u8 to i8": dict(x=(24, 6, 7), kernels=16, window=(3, 3), types=("u8", "i8", "i8"), **BOTH),
    "i8 to u8": dict(x=(24, 6, 7), kernels=16, window=(3, 3), types=("i8", "i8", "u8"), **BOTH),
    "a zero point of 0": dict(x=(33, 9, 7), kernels=16, window=(3, 3), x_zero=0, **BOTH),
    "a zero point of -128": dict(x=(33, 9, 7), kernels=16, window=(3, 3), x_zero=-128, types=("i8", "i8", "i8"), **BOTH),
    "a scale for all": dict(x=(16, 6, 7), kernels=24, window=(1, 1), each=False),
    "no bias": dict(x=(16, 6, 7), kernels=24, window=(3, 3), bias=False, **BOTH),
    "row window": dict(x=(16, 3, 17), kernels=20, window=(1, 7), pads=[0, 3, 0, 3]),
    "column window": dict(x=(16, 8, 8), kernels=20, window=(7, 1), pads=[3, 0, 3, 0]),
    "dilated": dict(x=(18, 9, 19), kernels=20, window=(3, 3), dilations=[4, 6], pads=[4, 6, 4, 6]),
    "dilated past the plane": dict(x=(16, 4, 4), kernels=16, window=(3, 3), dilations=[9, 9], pads=[9, 9, 9, 9]),
    "uneven pads": dict(x=(16, 5, 6), kernels=16, window=(3, 2), pads=[0, 2, 3, 1]),
    "a stride past the window": dict(x=(16, 11, 14), kernels=16, window=(2, 2), strides=[3, 5]),
    "groups of vectors": dict(x=(96, 5, 6), kernels=96, window=(3, 3), group=3, **BOTH),
    "small groups": dict(x=(32, 5, 6), kernels=32, window=(3, 3), group=8, **BOTH),
    "odd groups": dict(x=(21, 5, 6), kernels=15, window=(3, 3), group=3, **BOTH),
    "depthwise": dict(x=(40, 8, 15), kernels=40, window=(3, 3), group=40, **BOTH),
    "depthwise of i8": dict(x=(33, 8, 15), kernels=33, window=(5, 5), group=33, pads=[2, 2, 2, 2],
                            types=("i8", "i8", "i8"), n=2),
    "depthwise in steps": dict(x=(32, 9, 16), kernels=32, window=(3, 3), group=32, strides=[2, 2], x_zero=0, **BOTH),
    "depthwise that grows": dict(x=(16, 6, 6), kernels=48, window=(3, 3), group=16, **BOTH),
    "a signal": dict(x=(24, 40), kernels=24, window=(5,), pads=[2, 2]),
    "largest": dict(x=(64, 4, 5), kernels=16, window=(3, 3), extreme=True, **BOTH),
    "largest of i8": dict(x=(64, 4, 5), kernels=16, window=(3, 3), extreme=True, types=("i8", "i8", "i8"), **BOTH),
    "largest of 7 bits": dict(x=(64, 4, 5), kernels=24, window=(3, 3), extreme=True, bits=7, **BOTH),
    "largest of 7 bits, i8": dict(x=(19, 4, 5), kernels=16, window=(1, 1), extreme=True, bits=7, types=("i8", "i8", "i8")),
    "largest depthwise": dict(x=(16, 6, 7), kernels=16, window=(7, 7), extreme=True, group=16, pads=[3, 3, 3, 3]),
    "volumes": dict(x=(4, 3, 5, 6), kernels=6, window=(2, 3, 3)),  # by the formula
}


def limits(dtype):
    return numpy.iinfo(TYPES[dtype][0])


def numbers(rng, dtype, shape, extreme):
    info = limits(dtype)
    values = rng.choice([info.min, info.max], shape) if extreme else rng.integers(info.min, info.max + 1, shape)
    return values.astype(TYPES[dtype][0])


def convolution(name, x, kernels, window, types=("u8", "i8", "u8"), n=1, x_zero=None, w_zero=0, each=True, bias=True, bits=8,
                extreme=False, dims=None, **attributes):
    """(Model, feeds) of a case. dims: extents of x that only the run knows, (name, least, usual, most) by axis."""
    rng = numpy.random.default_rng([*name.encode()])
    dtype, weights, result = types
    group = attributes.get("group", 1)
    model = Model()
    shape = [n, *x]
    for axis, (dim, *extents) in (dims or {}).items():
        shape[axis] = model.dim(dim, *extents) or dim
    feed = numbers(rng, dtype, (n, *x), extreme)
    zero = numbers(rng, dtype, (), False) if x_zero is None else numpy.array(x_zero, TYPES[dtype][0])
    w = numbers(rng, weights, (kernels, x[0] // group, *window), extreme)
    w = numpy.clip(w, -(2**(bits - 1)), 2**(bits - 1)).astype(w.dtype) if bits < 8 else w  # pairs of u8 by these fit 16 bits
    depth = w[0].size
    scale = lambda *size: rng.uniform(.01, .02, size).astype(numpy.float32)  # noqa: E731
    inputs = [model.input("x", dtype, shape), scale(), zero, w, scale(kernels) if each else scale(),
              numpy.full((kernels,) if each else (), w_zero, w.dtype), numpy.float32(.008 * depth ** .5),
              numbers(rng, result, (), False)]
    if bias:
        inputs.append(rng.integers(-(2**14), 2**14, kernels).astype(numpy.int32))
    constants = [value if isinstance(value, str) else model.constant(numpy.asarray(value)) for value in inputs]
    model.output(model.node("QLinearConv", constants, **attributes))
    return model, {"x": feed}


def windows_of(x, window, strides, pads, dilations):
    """[N, C, ..., window...]: what each output reads; 0 in the padding."""
    rank = len(window)
    x = numpy.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:])])
    reach = [(k - 1) * d + 1 for k, d in zip(window, dilations)]
    views = numpy.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(2, 2 + rank)))
    views = views[(slice(None), slice(None), *[slice(None, None, step) for step in strides])]
    return views[(..., *[slice(None, None, step) for step in dilations])]


def sums_of(model, feeds):
    """The sums that the only node makes, in i64, without its bias."""
    node, = model.nodes
    values = {**model.arrays, **feeds}
    x, _, x_zero, w, _, w_zero = [values[name] for name in node["inputs"][:6]]
    rank = w.ndim - 2
    given = {"strides": [1] * rank, "pads": [0] * 2 * rank, "dilations": [1] * rank, **node["attributes"]}
    group = given.pop("group", 1)
    w = w.astype(numpy.int64) - w_zero.astype(numpy.int64).reshape((-1, *[1] * (rank + 1)) if w_zero.ndim else ())
    views = windows_of(x.astype(numpy.int64) - int(x_zero), w.shape[2:], **given)
    taps = list(range(2 + rank, 2 + 2 * rank))
    parts = [numpy.moveaxis(numpy.tensordot(a, b, ([1, *taps], [1, *range(2, 2 + rank)])), -1, 1)
             for a, b in zip(numpy.split(views, group, 1), numpy.split(w, group))]
    return numpy.concatenate(parts, 1)


def exact(model, feeds):
    node, = model.nodes
    values = {**model.arrays, **feeds}
    _, x_scale, _, w, w_scale, _, y_scale, y_zero, *bias = [values[name] for name in node["inputs"]]
    column = (-1, *[1] * (w.ndim - 2))
    sums = sums_of(model, feeds) + (bias[0].astype(numpy.int64).reshape(column) if bias else 0)
    assert abs(sums).max() < 2**31
    scale = (x_scale * w_scale).astype(numpy.float32) / y_scale
    scaled = sums.astype(numpy.float32) * (scale.reshape(column) if scale.ndim else scale)
    assert scaled.dtype == numpy.float32
    info = numpy.iinfo(y_zero.dtype)
    rounded = numpy.rint(scaled).astype(float) + int(y_zero)
    return {model.outputs[0]: numpy.clip(rounded, info.min, info.max).astype(y_zero.dtype)}


def everything(names):
    parts = [convolution(name, **CASES[name]) for name in names]
    model, feeds = merged(parts)
    due = {f"p{k}_{name}": array for k, part in enumerate(parts) for name, array in exact(*part).items()}
    return model, feeds, due


@pytest.mark.every_case
@pytest.mark.parametrize("target", some([*TARGETS, "x86-64-v3+vnni", "x86-64-v2", "x86-64-v4+vnni"], 4))
def test_sums_are_exact(compile, tmp_path, target):
    model, feeds, due = everything(CASES)
    assert_same(run_module(compile(model.write(tmp_path), f"--target={target}"), feeds), due)


@pytest.mark.parametrize("schedule", ["oc=1,px=1,unroll=1", "oc=3,px=5,unroll=4,groups=1,tiles=2", "oc=8,px=28,tiles=1"])
def test_schedules_are_exact(compile, tmp_path, schedule):
    names = [name for name in CASES if "depthwise" not in name]
    model, feeds, due = everything(names)
    assert_same(run_module(compile(model.write(tmp_path), f"--conv=direct_int8,{schedule}"), feeds, (1, 3)), due)


WINOGRAD = {
    "whole tiles": dict(x=(32, 8, 8), kernels=16, window=(3, 3), **BOTH),
    "rests": dict(x=(21, 7, 11), kernels=37, window=(3, 3), pads=[2, 0, 1, 2], n=3),
    "of i8": dict(x=(40, 9, 10), kernels=48, window=(3, 3), types=("i8", "i8", "i8"), **BOTH),
    "to i8": dict(x=(16, 5, 18), kernels=33, window=(3, 3), types=("u8", "i8", "i8")),
    "less than a tile": dict(x=(16, 1, 2), kernels=16, window=(3, 3), **BOTH),
    "row": dict(x=(24, 3, 17), kernels=20, window=(1, 3), pads=[0, 1, 0, 1]),
    "column": dict(x=(33, 13, 4), kernels=20, window=(3, 1), pads=[1, 0, 2, 0]),
    "weights of u8": dict(x=(24, 6, 7), kernels=16, window=(3, 3), types=("u8", "u8", "u8"), w_zero=128, **BOTH),
    "largest": dict(x=(48, 9, 9), kernels=16, window=(3, 3), extreme=True, **BOTH),
    "largest of i8": dict(x=(48, 9, 9), kernels=16, window=(3, 3), extreme=True, types=("i8", "i8", "i8"), **BOTH),
}
WINOGRAD_KNOBS = ["tile=4,oc=1,by_groups=0,parts=1", "tile=2,oc=3,by_groups=1,parts=2", "tile=4,oc=4,by_groups=1,parts=16"]
WITH_DOT = ["x86-64-v4+vnni", "x86-64-v3+vnni"]
WITH_MATRICES = "x86-64-v4+vnni+amx"
WITHOUT_DOT = ["x86-64-v4", "x86-64-v2", "x86-64", "aarch64-linux-gnu", *[target for target in SCALABLE if "+rvv" in target]]


def schedules_of(rnncc, path, algorithm, *options):
    """What runs the network's convolutions by the algorithm: "4x4_3x3_oc2..." of each."""
    done = rnncc("inspect", path, "--dump-after=lower", *options)
    assert done.returncode == 0, done.stderr
    return re.findall(rf"(?:QLinearConv|ConvIntegerToFloat) {algorithm}_(\S+)", done.stderr)


def winograd_of(rnncc, path, *options):
    return [text.split("_")[0] for text in schedules_of(rnncc, path, "winograd_int8", *options)]


def check_algorithm(compile, rnncc, rnnrun_of, tmp_path, cases, target, algorithm, knobs):
    """Every case on one target, and with matrices, the first ones on the others."""
    names = [*cases] if target in ("x86-64-v3", WITH_MATRICES) else some([*cases], 2)
    parts = [convolution(name, **cases[name]) for name in names]
    model, feeds = merged(parts)
    due = {f"p{k}_{name}": array for k, part in enumerate(parts) for name, array in exact(*part).items()}
    path, options = model.write(tmp_path), (f"--target={target}", f"--conv={algorithm},{knobs}")
    assert len(schedules_of(rnncc, path, algorithm, *options)) == len(names)
    if target.startswith("x86"):
        assert_same(run_module(compile(path, *options), feeds, (1, 3)), due)
    else:
        assert_same(run_by(rnnrun_of(target), compile(path, *options, optimised="+rvv" in target), feeds, due, tmp_path), due)


def each_with_knobs(knobs, targets):
    """Targets and knobs: AVX2 with all of them, and in long tests the targets with one each. By default the knobs are with
    one of the first targets each."""
    pairs = [(target, knobs[i % len(knobs)]) for i, target in enumerate(["x86-64-v3", *targets])]
    return some([*pairs, *(("x86-64-v3", one) for one in knobs[1:])], len(knobs))


@pytest.mark.every_case
@pytest.mark.parametrize("target, knobs", each_with_knobs(WINOGRAD_KNOBS, [WITH_DOT[0], *WITHOUT_DOT, WITH_DOT[1]]))
def test_winograd_is_exact(compile, rnncc, rnnrun_of, tmp_path, target, knobs):
    check_algorithm(compile, rnncc, rnnrun_of, tmp_path, WINOGRAD, target, "winograd_int8", knobs)


PANELS = {
    "pointwise of rests": dict(CASES["pointwise of rests"], n=3),  # parts begin in one image and end in the next
    **{name: CASES[name] for name in (
        "3x3 of i8", "pointwise", "3x3", "pointwise in steps", "u8 to i8", "weights of u8", "no bias", "row window",
        "column window", "dilated", "dilated past the plane", "uneven pads", "a stride past the window", "a signal",
        "largest", "largest of i8")},
}
PANEL_KNOBS = ["oc=1,by_groups=0,parts=1", "oc=3,by_groups=1,parts=2", "oc=4,by_groups=1,parts=16"]


@pytest.mark.every_case
@pytest.mark.parametrize("target, knobs", each_with_knobs(PANEL_KNOBS, WITHOUT_DOT))
def test_panels_are_exact(compile, rnncc, rnnrun_of, tmp_path, target, knobs):
    check_algorithm(compile, rnncc, rnnrun_of, tmp_path, PANELS, target, "panel_int8", knobs)


MATRICES = {
    "a pixel": dict(x=(70, 3, 3), kernels=50, window=(3, 3), n=3),
    "33 pixels": dict(x=(24, 3, 11), kernels=33, window=(3, 3), **BOTH, n=2),
    "609 pixels": dict(x=(18, 21, 29), kernels=16, window=(1, 1), n=2),
    "one line and a byte": dict(x=(4, 9, 9), kernels=20, window=(1, 17), pads=[0, 8, 0, 8]),
    "parts of rows": dict(x=(24, 4, 75), kernels=16, window=(3, 3), **BOTH),
    "rows of blocks": dict(x=(16, 7, 30), kernels=17, window=(3, 3), **BOTH, n=2),
    "whole lines in steps": dict(x=(64, 13, 15), kernels=40, window=(3, 3), strides=[2, 2], **BOTH, n=2),
    "whole lines, each second row": dict(x=(64, 13, 9), kernels=16, window=(3, 3), strides=[2, 1], **BOTH),
    "whole lines, each third column": dict(x=(128, 5, 29), kernels=16, window=(2, 5), strides=[1, 3], pads=[1, 2, 0, 2]),
    "whole lines, dilated in steps": dict(x=(64, 20, 23), kernels=16, window=(3, 3), strides=[3, 2], dilations=[2, 3], **BOTH),
    "whole lines, a pixel of four": dict(x=(64, 15, 15), kernels=33, window=(1, 1), strides=[2, 2]),
    "a window of a line, in steps": dict(x=(3, 17, 31), kernels=32, window=(3, 3), strides=[2, 2], **BOTH),
    "a window of a line": dict(x=(3, 9, 37), kernels=16, window=(3, 3), **BOTH, n=2),
    "groups of 24, two together": dict(x=(96, 9, 11), kernels=96, window=(3, 3), group=4, strides=[2, 2], **BOTH, n=2),
    "groups with fewer kernels": dict(x=(64, 5, 13), kernels=32, window=(3, 3), group=4, **BOTH),
    "groups of three vectors": dict(x=(64, 6, 7), kernels=192, window=(1, 1), group=4, n=2),
    **{name: CASES[name] for name in CASES if "depthwise" not in name and name not in ("odd groups", "volumes")},
}
MATRICES_KNOBS = ["pairs=1,by_groups=0", "pairs=3,by_groups=1", "pairs=65536,by_groups=0"]


@pytest.mark.every_case
@pytest.mark.parametrize("knobs", MATRICES_KNOBS)
def test_matrices_are_exact(compile, rnncc, rnnrun_of, tmp_path, knobs):
    check_algorithm(compile, rnncc, rnnrun_of, tmp_path, MATRICES, WITH_MATRICES, "matrices_int8", knobs)


def test_matrices_of_images_that_only_the_run_knows(compile, rnncc, tmp_path):
    case = MATRICES["33 pixels"]
    model, _ = convolution("33 pixels", dims={0: EXTENTS[0]}, **case)
    path, options = model.write(tmp_path), (f"--target={WITH_MATRICES}", "--conv=matrices_int8,pairs=2,by_groups=0")
    assert len(schedules_of(rnncc, path, "matrices_int8", *options)) == 1
    module = compile(path, *options)
    for n in (1, 2, 3):
        _, feeds = convolution("33 pixels", **{**case, "n": n})
        assert_same(run_module(module, feeds, (1, 2)), exact(model, feeds))


PLANES = [(3, 20, 33), (1, 5, 7), (2, 9, 20), (1, 11, 29)]  # of EXTENTS


@pytest.mark.parametrize("knobs", MATRICES_KNOBS)
@pytest.mark.parametrize("name", ["3x3 of i8", "first", "pointwise of rests", "whole lines, dilated in steps", "dilated", "uneven pads",
                                  "groups of 24, two together"])
def test_matrices_of_planes_that_only_the_run_knows(compile, rnncc, tmp_path, name, knobs):
    """Blocks are those of the usual plane."""
    case = MATRICES[name]
    model, _ = convolution(name, dims=EXTENTS, **case)
    path, options = model.write(tmp_path), (f"--target={WITH_MATRICES}", f"--conv=matrices_int8,{knobs}")
    assert len(schedules_of(rnncc, path, "matrices_int8", *options)) == 1
    module = compile(path, *options)
    for n, *plane in PLANES:
        _, feeds = convolution(name, **{**case, "n": n, "x": (case["x"][0], *plane)})
        assert_same(run_module(module, feeds, (1, 3)), exact(model, feeds))


def test_matrices_are_chosen_where_they_save_time(rnncc, tmp_path):
    """Not where a window has too few bytes, nor for groups of one channel or of which not as many as fill blocks of
    channels are there."""
    layers = {"deep": (dict(x=(64, 28, 28), kernels=64, window=(3, 3), **BOTH), 1),
              "of an image": (dict(x=(3, 64, 64), kernels=64, window=(7, 7), strides=[2, 2], pads=[3, 3, 3, 3]), 1),
              "shallow": (dict(x=(16, 28, 28), kernels=16, window=(1, 1)), 0),
              "of groups": (dict(x=(64, 28, 28), kernels=64, window=(3, 3), group=16, **BOTH), 1),
              "of odd groups": (dict(x=(60, 28, 28), kernels=60, window=(3, 3), group=3, **BOTH), 0),
              "of single channels": (dict(x=(64, 28, 28), kernels=128, window=(3, 3), group=64, **BOTH), 0)}
    for name, (layer, chosen) in layers.items():
        (folder := tmp_path / name.replace(" ", "_")).mkdir()
        path = convolution(name, **layer)[0].write(folder)
        target = f"--target={WITH_MATRICES}"
        assert len(schedules_of(rnncc, path, "matrices_int8", target, "--machine=typical")) == chosen, name
        assert not schedules_of(rnncc, path, "matrices_int8", "--target=x86-64-v4+vnni", "--machine=typical")


I8MM = "aarch64-linux-gnu+dotprod+fp16+bf16+i8mm"
FIRST = ["pointwise of rests", "3x3 of i8", "first", "pointwise in steps", "five channels", "small groups", "dilated",
         "uneven pads", "largest", "largest of i8"]
TILES = [*FIRST, *(name for name in CASES if name not in FIRST and "depthwise" not in name and name != "volumes")]
TILE_KNOBS = ["oc=3,px=5,unroll=4,groups=1,tiles=2", "oc=4,px=6,unroll=1", "oc=1,px=1,unroll=1", "oc=8,px=28,tiles=1"]


@pytest.mark.every_case
@pytest.mark.parametrize("target, knobs", some([(["aarch64-linux-gnu+i8mm", I8MM][i % 2], knobs)
                                                for i, knobs in enumerate(TILE_KNOBS)], 2))
def test_tiles_of_two_columns_are_exact(compile, rnncc, rnnrun_of, tmp_path, target, knobs):
    """Of odd numbers of blocks and of columns, too, and at borders; of u8 and, with dot products, as i8."""
    names = some(TILES, len(FIRST))
    model, feeds, due = everything(names)
    path, options = model.write(tmp_path), (f"--target={target}", f"--conv=tiles_int8,{knobs}")
    assert len(schedules_of(rnncc, path, "tiles_int8", *options)) == len(names)
    assert_same(run_by(rnnrun_of(I8MM), compile(path, *options, optimised=False), feeds, due, tmp_path), due)


@pytest.mark.parametrize("name", some(["five channels", "a zero point of 0", "pointwise in steps"], 1))
def test_tiles_of_planes_that_only_the_run_knows(compile, rnncc, rnnrun_of, tmp_path, name):
    """Of the last tile of a row there may be fewer columns than it multiplies, also an odd number."""
    case = CASES[name]
    model, _ = convolution(name, dims=EXTENTS, **case)
    path, options = model.write(tmp_path), (f"--target={I8MM}", "--conv=tiles_int8,oc=1,px=6,unroll=1")
    assert len(schedules_of(rnncc, path, "tiles_int8", *options)) == 1
    module = compile(path, *options, optimised=False)
    for n, *plane in some([(2, 5, 9), (1, 9, 7), (3, 20, 33), (1, 6, 20)], 2):
        _, feeds = convolution(name, **{**case, "n": n, "x": (case["x"][0], *plane)})
        due = exact(model, feeds)
        assert_same(run_by(rnnrun_of(I8MM), module, feeds, due, tmp_path), due)


def test_tiles_are_chosen_where_they_save_time(rnncc, tmp_path):
    """Not for three channels, which are one step of a dot product."""
    target, layer = "--target=aarch64-linux-gnu+dotprod+i8mm", dict(window=(3, 3), **BOTH)
    for name, channels, chosen in (("deep", 64, 1), ("of an image", 3, 0)):
        (folder := tmp_path / name).mkdir()
        path = convolution(name, (channels, 28, 28), 64, **layer)[0].write(folder)
        assert len(schedules_of(rnncc, path, "tiles_int8", target)) == chosen
        assert not schedules_of(rnncc, path, "tiles_int8", "--target=aarch64-linux-gnu+dotprod")


@pytest.mark.parametrize("width, kernel", [(2**13 - 1, True), (2**13, False)])
def test_planes_too_large_for_the_kernels_are_left_to_the_formula(rnncc, tmp_path, width, kernel):
    """2^26 pixels, in blocks of up to 32 channels, are 2^31 elements."""
    model, _ = convolution("large", (16, 8, 8), 16, (1, 1))
    model.inputs[0]["shape"][2:] = [2**13, width]
    assert bool(schedules_of(rnncc, model.write(tmp_path), "direct_int8")) == kernel


@pytest.mark.parametrize("most, tile", [(2**25 - 1, "4x4"), (-(2**25), "4x4"), (2**25, "2x2"), (-(2**25) - 1, "2x2")])
def test_sums_that_tiles_of_4_have_no_bits_for_are_of_tiles_of_2(compile, rnncc, tmp_path, most, tile):
    """The largest sum, which the middle of the plane has, is the last one that fits, or the first one that does not."""
    weight = 127 if most > 0 else -128
    channels = abs(most) // (9 * 255 * abs(weight))
    rest = most - channels * 9 * 255 * weight
    model = Model()
    inputs = [model.input("x", "u8", [1, channels, 9, 9]), numpy.float32(1), numpy.uint8(0),
              numpy.full((16, channels, 3, 3), weight, numpy.int8), numpy.float32(1), numpy.int8(0),
              numpy.float32(2.**19), numpy.uint8(128), numpy.full(16, rest, numpy.int32)]
    constants = [value if isinstance(value, str) else model.constant(numpy.asarray(value)) for value in inputs]
    model.output(model.node("QLinearConv", constants, pads=[1, 1, 1, 1]))
    feeds, path = {"x": numpy.full((1, channels, 9, 9), 255, numpy.uint8)}, model.write(tmp_path)
    options = ("--target=x86-64-v3", "--conv=winograd_int8,tile=4")
    assert winograd_of(rnncc, path, *options) == [tile]
    due = exact(model, feeds)
    assert due[model.outputs[0]][0, 0, 4, 4] == 128 + round(most / 2**19)
    assert_same(run_module(compile(path, *options), feeds, (1,)), due)


def test_winograd_runs_where_there_are_dot_products_of_16_bits_or_none_of_bytes(rnncc, tmp_path):
    """Where it saves time, and none is asked to be left out."""
    model, _ = convolution("a layer", (128, 28, 28), 128, (3, 3), **BOTH)
    path, v3 = model.write(tmp_path), "--target=x86-64-v3"
    assert winograd_of(rnncc, path, v3, "--machine=typical") == ["4x4"]
    assert not winograd_of(rnncc, path, v3, "--no-winograd")
    assert winograd_of(rnncc, path, v3 + "+vnni", "--machine=typical") == ["4x4"]
    assert not winograd_of(rnncc, path, "--target=aarch64-linux-gnu+dotprod", "--machine=typical")


@pytest.mark.parametrize("columns", [1, 3, 16])
def test_depthwise_tiles_are_exact(compile, tmp_path, columns):
    model, feeds, due = everything([name for name in CASES if "depthwise" in name])
    assert_same(run_module(compile(model.write(tmp_path), f"--conv=depthwise_int8,px={columns}"), feeds, (1, 3)), due)


@pytest.mark.parametrize("target", [*SCALABLE, "aarch64-linux-gnu", I8MM])
def test_other_instruction_sets_are_exact(compile, rnnrun_of, tmp_path, target):
    names = ["pointwise of rests", "3x3", "3x3 of i8", "first", "small groups", "depthwise of i8", "largest", "largest of i8"]
    model, feeds, due = everything(names)
    module = compile(model.write(tmp_path), f"--target={target}", optimised="+rvv" in target)  # else qemu stops
    assert_same(run_by(rnnrun_of(target), module, feeds, due, tmp_path), due)


@pytest.mark.optimised_here
@pytest.mark.parametrize("search", ["none", "greedy", "wide", "auto"])
def test_layouts_are_exact(compile, tmp_path, search):
    names = ["pointwise of rests", "3x3", "first", "depthwise", "five channels"]
    model, feeds, due = everything(names)
    assert_same(run_module(compile(model.write(tmp_path), f"--layout-search={search}"), feeds, (2,)), due)


EXTENTS = {0: ("N", 1, 1, 3), 2: ("H", 5, 9, 20), 3: ("W", 7, 20, 33)}  # those that x's axes may have, and the usual one


@pytest.mark.parametrize("name", ["3x3", "first", "depthwise", "a zero point of 0", "pointwise of rests"])
def test_extents_that_only_the_run_knows(compile, tmp_path, name):
    case = CASES[name]
    model, _ = convolution(name, dims=EXTENTS, **case)
    module = compile(model.write(tmp_path))
    for n, *plane in some([(1, 5, 7), (3, 20, 33), (2, 9, 20), (1, 11, 29)], 2):
        _, feeds = convolution(name, **{**case, "n": n, "x": (case["x"][0], *plane)})
        assert_same(run_module(module, feeds, (1, 2)), exact(model, feeds))


def added(a, b):
    """What QLinearAdd makes of two tensors, each (numbers, scale, zero point), in the scale and zero point of the last pair:
    in f32, each operation rounded."""
    def real(x, scale, zero):
        return (x.astype(numpy.float32) - numpy.float32(zero)) * scale

    def rounded(scale, zero):
        y = numpy.rint((real(*a) + real(*b)) / scale + numpy.float32(zero))
        info = numpy.iinfo(zero.dtype)
        return numpy.clip(y, info.min, info.max).astype(zero.dtype)

    return rounded


def residual_model(name, r_scale, z_scale, second=False, z_zero=None, cases=CASES):
    """(Model, feeds, expected): a convolution whose result takes part in a QLinearAdd."""
    model, feeds = convolution(name, **cases[name])
    conv, = model.nodes
    sums, = exact(model, feeds).values()
    dtype, y_scale, y_zero = BYTES[sums.dtype], model.arrays[conv["inputs"][6]], model.arrays[conv["inputs"][7]]
    rng = numpy.random.default_rng(len(name))
    r, r_scale, r_zero = numbers(rng, dtype, sums.shape, False), numpy.float32(r_scale), numbers(rng, dtype, (), False)
    z_scale = numpy.float32(z_scale)
    z_zero = numbers(rng, dtype, (), False) if z_zero is None else numpy.array(z_zero, TYPES[dtype][0])
    terms = [conv["outputs"][0], model.constant(y_scale), model.constant(y_zero), model.input("r", dtype, list(r.shape)),
             model.constant(r_scale), model.constant(r_zero)]
    terms = [*terms[3:], *terms[:3]] if second else terms
    z = model.node("QLinearAdd", [*terms, model.constant(z_scale), model.constant(z_zero)])
    model.outputs = [z]
    return model, {**feeds, "r": r}, {z: added((sums, y_scale, y_zero), (r, r_scale, r_zero))(z_scale, z_zero)}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("second", [False, True])
def test_sums_with_a_residual_are_those_of_two_nodes(compile, tmp_path, target, second):
    for name in ("3x3", "3x3 of i8", "pointwise of rests", "depthwise"):
        model, feeds, expected = residual_model(name, .0173, .011, second)
        got = run_module(compile(model.write(tmp_path), f"--target={target}"), feeds, (1, 2))
        assert_same(got, expected)


def test_a_residual_is_read_before_the_sum_takes_its_place(compile, rnncc, tmp_path):
    """By matrices, of which the last one of a row has pixels that are not written."""
    model, feeds = convolution("609 pixels", **MATRICES["609 pixels"])
    x, *others = model.nodes[0]["inputs"]
    first, = model.outputs
    r, = exact(model, feeds).values()
    y_scale, y_zero = (model.arrays[others[i]] for i in (5, 6))
    w = model.constant(model.arrays[others[2]][:, ::-1].copy())
    second = model.node("QLinearConv", [x, *others[:2], w, *others[3:]])
    alone, _ = convolution("609 pixels", **MATRICES["609 pixels"])
    alone.arrays[alone.nodes[0]["inputs"][3]] = model.arrays[w]
    y, = exact(alone, feeds).values()
    model.output(model.node("QLinearAdd", [second, *others[5:7], first, *others[5:7], *others[5:7]]))
    model.outputs = model.outputs[-1:]
    path, options = model.write(tmp_path), (f"--target={WITH_MATRICES}", "--conv=matrices_int8,pairs=4,by_groups=0")
    due = added((y, y_scale, y_zero), (r, y_scale, y_zero))(y_scale, y_zero)
    assert_same(run_module(compile(path, *options), feeds), {model.outputs[0]: due})


# What becomes of y and the residual, of scales (residual, sum): by factors, or divided. In halves: many sums end in .5;
# the zero point of the sum, which is odd, decides where these go.
SCALES = {"of usual scales": (.0173, .011), "in halves": (.5, 1), "in thirds": (1 / 3, .999999), "large": (3e4, 2e-3),
          "small": (1e-6, 3e3)}


@pytest.mark.parametrize("scales", SCALES)
def test_sums_of_any_scales_are_exact(compile, tmp_path, scales):
    model, feeds, expected = residual_model("3x3", *SCALES[scales], z_zero=7)
    assert_same(run_module(compile(model.write(tmp_path)), feeds), expected)


@pytest.mark.parametrize("scales", SCALES)
def test_sums_of_matrices_take_a_residual(compile, tmp_path, scales):
    names = ["3x3 of i8", "33 pixels"]
    parts = [residual_model(name, *SCALES[scales], second=name == names[1], z_zero=7, cases=MATRICES) for name in names]
    model, feeds = merged([part[:2] for part in parts])
    due = {f"p{k}_{name}": array for k, part in enumerate(parts) for name, array in part[2].items()}
    module = compile(model.write(tmp_path), f"--target={WITH_MATRICES}", "--conv=matrices_int8")
    assert_same(run_module(module, feeds, (1, 2)), due)


@pytest.mark.parametrize("scale", [.0173, .5, 1e-7, 3e5])
@pytest.mark.parametrize("name", ["3x3", "3x3 of i8", "pointwise of rests", "depthwise"])
def test_another_scale_costs_no_kernel(rnncc, compile, tmp_path, name, scale):
    """DequantizeLinear and QuantizeLinear of another scale, as stand before a Concat."""
    model, feeds = convolution(name, **CASES[name])
    conv, = model.nodes
    sums, = exact(model, feeds).values()
    y_scale, y_zero = (model.arrays[conv["inputs"][i]] for i in (6, 7))
    zero = numbers(numpy.random.default_rng(len(name)), BYTES[sums.dtype], (), False)
    real = model.node("DequantizeLinear", [conv["outputs"][0], *conv["inputs"][6:8]])
    z = model.node("QuantizeLinear", [real, model.constant(numpy.float32(scale)), model.constant(zero)])
    model.outputs = [z]
    path = model.write(tmp_path)
    assert "_then.QLinearLeakyRelu" in rnncc("inspect", path, "--explain=conv").stdout
    quotient = (sums.astype(numpy.float32) - numpy.float32(y_zero)) * y_scale / numpy.float32(scale)
    info = numpy.iinfo(sums.dtype)
    expected = numpy.clip(numpy.rint(quotient) + numpy.float32(zero), info.min, info.max).astype(sums.dtype)
    assert_same(run_module(compile(path), feeds, (1, 2)), {z: expected})


def test_halves_go_where_quantize_linear_puts_them(rnncc, compile, tmp_path):
    """DequantizeLinear, Add and QuantizeLinear round before the zero point, here an odd one, is added."""
    model, feeds = convolution("pointwise", **CASES["pointwise"])
    conv, = model.nodes
    sums, = exact(model, feeds).values()
    one, zero, five = model.constant(numpy.float32(1)), model.arrays[conv["inputs"][7]], numpy.uint8(5)
    r = numbers(numpy.random.default_rng(1), "u8", sums.shape, False)
    reals = [model.node("DequantizeLinear", [conv["outputs"][0], one, conv["inputs"][7]]),
             model.node("DequantizeLinear", [model.input("r", "u8", list(r.shape)), one, model.constant(numpy.uint8(3))])]
    z = model.node("QuantizeLinear", [model.node("Add", reals), model.constant(numpy.float32(2)), model.constant(five)])
    model.outputs = [z]
    path = model.write(tmp_path)
    halves = (sums.astype(numpy.int64) - int(zero) + r.astype(numpy.int64) - 3) / 2
    assert (halves % 1 == .5).any()
    expected = numpy.clip(numpy.rint(halves) + 5, 0, 255).astype(numpy.uint8)
    assert "_residual" in rnncc("inspect", path, "--explain=conv").stdout
    assert_same(run_module(compile(path), {**feeds, "r": r}), {z: expected})


def test_means_of_quantised_pairs_round_before_the_zero_point(compile, tmp_path):
    """DequantizeLinear, AveragePool and QuantizeLinear: halves, and a zero point that is odd."""
    x = numbers(numpy.random.default_rng(1), "u8", (1, 20, 6, 8), False)
    model = Model()
    one, three = model.constant(numpy.float32(1)), model.constant(numpy.uint8(3))
    real = model.node("DequantizeLinear", [model.input("x", "u8", list(x.shape)), one, three])
    mean = model.node("AveragePool", [real], kernel_shape=[1, 2], strides=[1, 2])
    model.output(model.node("QuantizeLinear", [mean, one, model.constant(numpy.uint8(5))]))
    halves = x.reshape(1, 20, 6, 4, 2).astype(numpy.int64).sum(-1) / 2 - 3
    assert (halves % 1 == .5).any()
    expected = numpy.clip(numpy.rint(halves) + 5, 0, 255).astype(numpy.uint8)
    assert_same(run_module(compile(model.write(tmp_path)), {"x": x}), {model.outputs[0]: expected})


def test_a_residual_costs_no_kernel(rnncc, tmp_path):
    model, feeds = convolution("3x3", **CASES["3x3"])
    conv, = model.nodes
    y_scale, y_zero = conv["inputs"][6:8]
    shape = [*next(iter(exact(model, feeds).values())).shape]
    z = model.node("QLinearAdd", [model.input("r", "u8", shape), y_scale, y_zero, conv["outputs"][0], y_scale, y_zero, y_scale,
                                  y_zero])
    model.outputs = [z]
    done = rnncc("inspect", model.write(tmp_path), "--explain=conv")
    assert done.returncode == 0, done.stderr
    assert "_residual" in done.stdout, done.stdout


POOLS = {
    "halves": dict(x=(32, 8, 10), kernel_shape=[2, 2], strides=[2, 2]),
    "of rests": dict(x=(37, 9, 13), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], n=2),
    "of i8": dict(x=(20, 7, 8), kernel_shape=[3, 3], pads=[1, 1, 1, 1], dtype="i8"),
    "dilated": dict(x=(16, 9, 11), kernel_shape=[2, 3], dilations=[3, 2], pads=[1, 2, 0, 1], dtype="i8"),
    "rounded up": dict(x=(16, 8, 9), kernel_shape=[3, 3], strides=[3, 2], ceil_mode=1),
    "a signal": dict(x=(18, 21), kernel_shape=[4], strides=[3], pads=[2, 1]),
}


def pooled(name, x, n=1, dtype="u8", dims=None, **attributes):
    """A convolution, so that tensors are in blocks, and a MaxPool of its result."""
    window = (1,) * (len(x) - 1)
    model, feeds = convolution(name, x, x[0], window, (dtype, "i8", dtype), n=n, dims=dims)
    conv, = model.nodes
    outputs = [*model.outputs, model.node("MaxPool", conv["outputs"], **attributes)]
    model.outputs = outputs
    return model, feeds


def maxima(model, feeds):
    """By ONNX Runtime, of what the convolution makes in 64 bits."""
    conv, pool = model.nodes
    alone = Model()
    alone.nodes, alone.arrays, alone.outputs = [conv], model.arrays, conv["outputs"]
    sums, = exact(alone, feeds).values()
    only = Model()
    only.output(only.node("MaxPool", [only.input("x", BYTES[sums.dtype], list(sums.shape))], **pool["attributes"]))
    return {model.outputs[0]: sums, model.outputs[1]: next(iter(only.onnx_run({"x": sums}).values()))}


@pytest.mark.parametrize("target", [*TARGETS, "x86-64-v2"])
def test_maxima_stay_in_blocks_of_bytes(compile, rnncc, tmp_path, target):
    parts = [pooled(name, **case) for name, case in POOLS.items()]
    model, feeds = merged(parts)
    due = {f"p{k}_{name}": array for k, part in enumerate(parts) for name, array in maxima(*part).items()}
    path = model.write(tmp_path)
    assert_same(run_module(compile(path, f"--target={target}", "--layout-search=greedy"), feeds), due)
    done = rnncc("inspect", path, f"--target={target}", "--layout-search=greedy", "--dump-after=lower")
    assert done.returncode == 0, done.stderr
    assert "_pool_int8 " in done.stdout + done.stderr and "pool_plain" not in done.stdout + done.stderr


def test_maxima_of_extents_that_only_the_run_knows(compile, tmp_path):
    case = POOLS["of rests"]
    model, _ = pooled("of rests", **case, dims={2: ("H", 3, 9, 20), 3: ("W", 3, 13, 20)})
    module = compile(model.write(tmp_path))
    for plane in ((3, 20), (20, 5), (9, 13)):
        _, feeds = pooled("of rests", **{**case, "x": (37, *plane)})
        assert_same(run_module(module, feeds, (1, 2)), maxima(model, feeds))


def test_pairs_of_small_weights_take_one_product(rnncc, tmp_path):
    """Weights of 7 bits cannot make a sum of two products saturate; those of 8 bits can."""
    found = {}
    for name in ("largest", "largest of 7 bits"):
        model, _ = convolution(name, **CASES[name])
        done = rnncc(model.write(tmp_path), "--target=x86-64-v3", "--conv=direct_int8", "--emit=c", "-o",
                     tmp_path / name.replace(" ", "_"))
        assert done.returncode == 0, done.stderr
        text = "".join(path.read_text() for path in (tmp_path / name.replace(" ", "_")).rglob("*.c"))
        found[name] = "FORM = 1" in text or "vdot(sums[j][m], in, weight[j], 1)" in text
    assert found == {"largest": False, "largest of 7 bits": True}, found


@pytest.mark.parametrize("op", ["ConvInteger", "QLinearConv"])
def test_weights_of_the_run(compile, tmp_path, op):
    """Their sums are those of floats, exact up to 2^24."""
    rng, model = numpy.random.default_rng(6), Model()
    feeds = {"x": numbers(rng, "u8", (1, 16, 8, 8), False), "w": numbers(rng, "u8", (4, 16, 3, 3), False)}
    x, w = model.input("x", "u8", [1, 16, 8, 8]), model.input("w", "u8", [4, 16, 3, 3])
    one = [model.constant(numpy.float32(2.0**k)) for k in (0, 0, 12)]
    zero = model.constant(numpy.uint8(0))
    inputs = [x, w] if op == "ConvInteger" else [x, one[0], zero, w, one[1], zero, one[2], zero]
    model.output(model.node(op, inputs, **BOTH))
    views = windows_of(feeds["x"].astype(numpy.int64), (3, 3), [1, 1], BOTH["pads"], [1, 1])
    sums = numpy.moveaxis(numpy.tensordot(views, feeds["w"].astype(numpy.int64), ([1, 4, 5], [1, 2, 3])), -1, 1)
    due = sums if op == "ConvInteger" else numpy.clip(numpy.rint(sums / 2.0**12), 0, 255)
    for target in ("native", "x86-64-v3"):
        (y,) = run_module(compile(model.write(tmp_path), f"--target={target}"), feeds).values()
        assert numpy.array_equal(y, due), target
