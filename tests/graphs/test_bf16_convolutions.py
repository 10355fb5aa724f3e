# SPDX-License-Identifier: MIT
"""Convolutions by --precision=bf16-dynamic, whose products are of bf16, by AMX, with sums in f32. Integers are exact; other sums
are as near to double precision as those of f32 are, of numbers that are rounded to bf16 before."""
import re

import numpy
import pytest
from test_integer_convolutions import BOTH, EXTENTS, MATRICES, MATRICES_KNOBS, PLANES, windows_of

from support.amount import some
from support.bf16 import EPS, assert_within, bf16
from support.convolutional import RandomNetwork, random_convolution
from support.emitted import assert_same, run_module
from support.merge import merged
from support.model_builder import Model

AMX = "--target=x86-64-v4+vnni+amx"
OPTIONS = AMX, "--precision=bf16-dynamic"
OF_BYTES = {"types", "x_zero", "w_zero", "each", "bias", "bits", "extreme"}
CASES = {**{name: {key: value for key, value in case.items() if key not in OF_BYTES}
            for name, case in MATRICES.items() if not (name == "a pixel" or "largest" in name or "zero point" in name or "i8" in name)},
         "32 channels, whole lines": dict(x=(32, 9, 11), kernels=33, window=(3, 3), **BOTH, n=2),
         "48 channels, a line and a half": dict(x=(48, 7, 7), kernels=32, window=(1, 1)),
         "a pointwise plane": dict(x=(40, 6, 9), kernels=24, window=(1, 1), n=2)}
KINDS = ("plain", "no bias", "residual", "clip", "prologue")


def whole(rng, *shape):
    return rng.integers(-8, 9, shape).astype(numpy.float32)


def convolve(x, w, **attributes):
    """In double precision."""
    rank = w.ndim - 2
    given = {"strides": [1] * rank, "pads": [0] * 2 * rank, "dilations": [1] * rank, **attributes}
    groups = given.pop("group", 1)
    views = windows_of(x.astype(numpy.float64), w.shape[2:], **given)
    taps = [1, *range(2 + rank, 2 + 2 * rank)]
    parts = [numpy.tensordot(part, of_part.astype(numpy.float64), (taps, [1, *range(2, 2 + rank)]))
             for part, of_part in zip(numpy.split(views, groups, 1), numpy.split(w, groups))]
    return numpy.moveaxis(numpy.concatenate(parts, -1), -1, 1)


def normalised(model, x, rng, values):
    """Relu of a batch normalisation, of whole numbers."""
    channels = values.shape[1]
    scale, shift = rng.integers(1, 3, channels).astype(numpy.float32), whole(rng, channels)
    constants = [scale, shift, numpy.zeros(channels, numpy.float32), numpy.ones(channels, numpy.float32)]
    y = model.node("BatchNormalization", [x, *map(model.constant, constants)], epsilon=0.0)
    column = (-1, *[1] * (values.ndim - 2))
    return model.node("Relu", [y]), numpy.maximum(values * scale.reshape(column) + shift.reshape(column), 0)


def convolution(name, kind, x, kernels, window, n=1, numbers=whole, dims=None, **attributes):
    """(Model, feeds, due in double precision, what it is a sum of)"""
    rng, model, shape = numpy.random.default_rng([*name.encode()]), Model(), [n, *x]
    for axis, dim in (dims or {}).items():
        model.dim(*dim)
        shape[axis] = dim[0]
    w, bias, feeds = numbers(rng, kernels, x[0] // attributes.get("group", 1), *window), numbers(rng, kernels), {"x": numbers(rng, n, *x)}
    values, read = feeds["x"], model.input("x", "f32", shape)
    if kind == "prologue":
        read, values = normalised(model, read, rng, values)
    column = bias.astype(numpy.float64).reshape(-1, *[1] * len(window))
    constants = [model.constant(w)] + ([model.constant(bias)] if kind != "no bias" else [])
    y, due = model.node("Conv", [read, *constants], **attributes), convolve(bf16(values), bf16(w), **attributes)
    terms = convolve(numpy.abs(bf16(values)), numpy.abs(bf16(w)), **attributes) + numpy.abs(column)
    due = due + column if kind != "no bias" else due
    if kind == "residual":
        feeds["residual"] = numbers(rng, *due.shape)
        y, due = model.node("Add", [y, model.input("residual", "f32", list(due.shape))]), due + feeds["residual"]
        terms = terms + numpy.abs(feeds["residual"])
    if kind in ("residual", "clip"):
        y, due = model.node("Relu", [y]), numpy.maximum(due, 0)
    model.output(y)
    return model, feeds, due, terms


def schedules_of(rnncc, path, *options):
    """What runs the network's convolutions: "matrices_bf16_b4x4_3x3...", ... of each."""
    done = rnncc("inspect", path, "--dump-after=lower", *options)
    assert done.returncode == 0, done.stderr
    return re.findall(r"^k\S+ n\d+ Conv (\S+)", done.stderr, re.M)


@pytest.mark.every_case
@pytest.mark.parametrize("shift, knobs", [*enumerate(MATRICES_KNOBS)])
def test_integers_are_exact(compile, rnncc, tmp_path, shift, knobs):
    made = [convolution(name, KINDS[(i + shift) % len(KINDS)], **CASES[name]) for i, name in enumerate(CASES)]
    model, feeds = merged([part[:2] for part in made])
    path, options = model.write(tmp_path), (*OPTIONS, f"--conv=matrices_bf16,{knobs}")
    chosen = schedules_of(rnncc, path, *options)
    assert len(chosen) == len(CASES) and all(text.startswith("matrices_bf16_") for text in chosen), chosen
    due = {f"p{k}_{part[0].outputs[0]}": part[2].astype(numpy.float32) for k, part in enumerate(made)}
    assert_same(run_module(compile(path, *options), feeds, (1, 3)), due)


@pytest.mark.parametrize("knobs", MATRICES_KNOBS)
def test_random_convolutions_equal_the_reference(reference, compile, tmp_path, knobs):
    """Of groups and planes of any kind, among others: on whole numbers of few bits."""
    rng = numpy.random.default_rng([*knobs.encode()])
    model, feeds = merged([random_convolution(rng) for _ in range(25)])
    path = model.write(tmp_path)
    module = compile(path, *OPTIONS, "--layout-search=greedy", f"--conv=matrices_bf16,{knobs}", optimised=False)
    assert_same(run_module(module, feeds, (1, 3)), reference.run(model, path, feeds))


@pytest.mark.parametrize("seed", some(range(8), 3))
def test_random_networks_equal_the_reference(reference, compile, tmp_path, seed):
    """Convolutions that read each other's blocks, parts of them and sums of them."""
    network = RandomNetwork(numpy.random.default_rng([seed, 9])).grow(9)
    model = network.finish()
    path = model.write(tmp_path)
    module = compile(path, *OPTIONS, "--layout-search=greedy", "--conv=matrices_bf16", optimised=False)
    for batch in (1, 3):
        feeds = network.feeds(batch)
        assert_same(run_module(module, feeds, (1, 2)), reference.run(model, path, feeds))


@pytest.mark.parametrize("knobs", MATRICES_KNOBS)
@pytest.mark.parametrize("name", ["first", "pointwise of rests", "whole lines, dilated in steps", "dilated", "uneven pads", "small groups"])
def test_planes_that_only_the_run_knows(compile, rnncc, tmp_path, name, knobs):
    case = CASES[name]
    model, _, _, _ = convolution(name, "clip", dims=EXTENTS, **case)
    path, options = model.write(tmp_path), (*OPTIONS, f"--conv=matrices_bf16,{knobs}")
    assert schedules_of(rnncc, path, *options)[0].startswith("matrices_bf16")
    module = compile(path, *options)
    for n, *plane in PLANES:
        _, feeds, due, _ = convolution(name, "clip", **{**case, "n": n, "x": (case["x"][0], *plane)})
        assert_same(run_module(module, feeds, (1, 3)), {model.outputs[0]: due.astype(numpy.float32)})


@pytest.mark.parametrize("name", ["first", "609 pixels", "whole lines, dilated in steps", "pointwise of rests", "dilated",
                                  "groups of 24, two together"])
def test_sums_are_as_exact_as_those_of_floats(compile, tmp_path, name):
    numbers = lambda rng, *shape: rng.standard_normal(shape).astype(numpy.float32)  # noqa: E731
    model, feeds, due, terms = convolution(name, "residual", numbers=numbers, **CASES[name])
    got = run_module(compile(model.write(tmp_path), *OPTIONS, "--conv=matrices_bf16"), feeds, (1, 2))
    depth = numpy.prod([CASES[name]["x"][0] // CASES[name].get("group", 1), *CASES[name]["window"]])
    assert_within(got[model.outputs[0]], due, (depth + 4) * EPS * terms, name)
    assert (got[model.outputs[0]] != due.astype(numpy.float32)).any()


def test_images_that_only_the_run_knows(compile, tmp_path):
    case = CASES["33 pixels"]
    model, _, _, _ = convolution("33 pixels", "clip", dims={0: ("N", 1, 2, 3)}, **case)
    module = compile(model.write(tmp_path), *OPTIONS, "--conv=matrices_bf16,pairs=2,by_groups=0")
    for n in (1, 2, 3):
        _, feeds, due, _ = convolution("33 pixels", "clip", **{**case, "n": n})
        assert_same(run_module(module, feeds, (1, 2)), {model.outputs[0]: due.astype(numpy.float32)})


def test_lanes_without_channels_are_zero_behind_a_prologue(compile, rnncc, tmp_path):
    """Of zeros it would be infinite."""
    rng, model, channels = numpy.random.default_rng(3), Model(), 40
    feeds, w = {"x": 2.0 ** rng.integers(-2, 3, (1, channels, 12, 14)).astype(numpy.float32)}, whole(rng, 20, channels, 1, 1)
    ones, zeros = numpy.ones(channels, numpy.float32), numpy.zeros(channels, numpy.float32)
    y = model.node("BatchNormalization", [model.input("x", "f32", [1, channels, 12, 14]),
                                          *map(model.constant, (ones, zeros, zeros, ones))], epsilon=0.0)
    model.output(model.node("Conv", [model.node("Reciprocal", [y]), model.constant(w)]))
    path, options = model.write(tmp_path), (*OPTIONS, "--conv=matrices_bf16")
    kernels = re.findall(r"^k\S+ n\d+ (\S+)", rnncc("inspect", path, *options, "--dump-after=lower").stderr, re.M)
    assert [kernel for kernel in kernels if kernel != "LayoutTransform"] == ["Conv"]
    due = convolve(1 / feeds["x"].astype(numpy.float64), w).astype(numpy.float32)
    assert_same(run_module(compile(path, *options), feeds, (1, 2)), {model.outputs[0]: due})


@pytest.mark.parametrize("channels", [17, 40])
def test_lanes_without_channels_are_never_multiplied(compile, tmp_path, channels):
    """In those of the last block the first convolution has zeros, whose reciprocals are infinite."""
    rng, model = numpy.random.default_rng(channels), Model()
    x, w = whole(rng, 1, 16, 6, 7), whole(rng, 20, channels, 3, 3)
    ones = numpy.zeros((channels, 16, 1, 1), numpy.float32)
    bias = 2.0 ** rng.integers(-3, 4, channels).astype(numpy.float32)
    y = model.node("Conv", [model.input("x", "f32", [1, 16, 6, 7]), model.constant(ones), model.constant(bias)])
    y = model.node("Reciprocal", [y])
    model.output(model.node("Conv", [y, model.constant(w)], **BOTH))
    due = convolve(numpy.broadcast_to(1 / bias.reshape(-1, 1, 1), (1, channels, 6, 7)), w, **BOTH)
    got = run_module(compile(model.write(tmp_path), *OPTIONS, "--conv=matrices_bf16"), {"x": x}, (1, 2))
    assert_same(got, {model.outputs[0]: due.astype(numpy.float32)})


@pytest.mark.parametrize("name", ["whole lines, dilated in steps", "a window of a line, in steps", "rows of blocks", "dilated"])
def test_what_a_strip_had_before_counts_for_nothing(compile, tmp_path, name):
    """NaN in all of an image, and none in the next one, whose strips are smaller at the edges."""
    case = {**CASES[name], "n": 3}
    model, feeds, due, _ = convolution(name, "clip", **case)
    feeds["x"][::2] = numpy.nan
    for knobs in ("pairs=1", "pairs=3,by_groups=1"):
        got = run_module(compile(model.write(tmp_path), *OPTIONS, f"--conv=matrices_bf16,{knobs}"), feeds, (1,))
        assert_same({"y": got[model.outputs[0]][1]}, {"y": due[1].astype(numpy.float32)})
        assert numpy.isnan(got[model.outputs[0]][0, :, 0, 0]).all()


@pytest.mark.parametrize("name", ["a window of a line", "five channels", "row window"])
def test_what_lies_behind_a_strip_counts_for_nothing(compile, tmp_path, name):
    """The strip of a convolution of NaN, which is larger, was there before."""
    before, feeds, _, _ = convolution("before", "plain", x=(32, 40, 40), kernels=16, window=(3, 3))
    feeds["x"][:] = numpy.nan
    model, own, due, _ = convolution(name, "clip", **CASES[name])
    both, all_feeds = merged([(before, feeds), (model, own)])
    got = run_module(compile(both.write(tmp_path), *OPTIONS, "--conv=matrices_bf16,by_groups=0"), all_feeds, (1,))
    assert_same({"y": got[f"p1_{model.outputs[0]}"]}, {"y": due.astype(numpy.float32)})
    assert numpy.isnan(got[f"p0_{before.outputs[0]}"]).all()


def test_an_infinite_number_stays_in_its_windows(compile, tmp_path):
    """Where lines are whole."""
    model, feeds, due, _ = convolution("32 channels, whole lines", "plain", **CASES["32 channels, whole lines"])
    feeds["x"][0, 5, 4, 6] = numpy.inf
    got = run_module(compile(model.write(tmp_path), *OPTIONS, "--conv=matrices_bf16"), feeds, (1,))[model.outputs[0]]
    near = numpy.zeros(due.shape, bool)
    near[0, :, 3:6, 5:8] = True
    assert numpy.array_equal(got[~near], due.astype(numpy.float32)[~near]) and not numpy.isfinite(got[near]).any()


# ---- which ----

LAYERS = {"deep": (dict(x=(64, 28, 28), kernels=64, window=(3, 3), **BOTH), True),
          "of an image": (dict(x=(3, 64, 64), kernels=64, window=(7, 7), strides=[2, 2], pads=[3, 3, 3, 3]), True),
          "of a signal": (dict(x=(64, 400), kernels=64, window=(5,), pads=[2, 2]), True)}


@pytest.mark.parametrize("name", LAYERS)
def test_matrices_are_chosen_where_they_save_time(rnncc, tmp_path, name):
    path = convolution(name, "plain", **LAYERS[name][0])[0].write(tmp_path)
    assert schedules_of(rnncc, path, *OPTIONS, "--machine=typical")[0].startswith("matrices_bf16") == LAYERS[name][1]
    for others in ([AMX], [AMX, "--precision=bf16"], ["--target=x86-64-v4+bf16", "--precision=bf16-dynamic"]):
        assert not any("matrices" in text for text in schedules_of(rnncc, path, *others, "--machine=typical"))


def of_one_node(tmp_path, x, w, **attributes):
    rng, model = numpy.random.default_rng(1), Model()
    values = rng.standard_normal(x).astype(numpy.float32)
    y = model.node("Conv", [model.input("x", "f32", x), model.constant(rng.standard_normal(w).astype(numpy.float32))], **attributes)
    model.output(y)
    return model.write(tmp_path), {"x": values}


@pytest.mark.parametrize("x, w, attributes", [
    ([1, 60, 9, 9], (60, 20, 3, 3), dict(group=3)), ([1, 64, 9, 9], (64, 1, 3, 3), dict(group=64)),
    ([1, 16, 4, 9, 9], (16, 16, 3, 3, 3), {})], ids=["odd groups", "depthwise", "volumes"])
def test_others_stay_in_f32(compile, rnncc, tmp_path, x, w, attributes):
    """Bit for bit, which is said of a node that is asked for by name."""
    path, feeds = of_one_node(tmp_path, x, w, **attributes)
    due = run_module(compile(path, AMX), feeds, (1,))
    assert_same(run_module(compile(path, *OPTIONS), feeds, (1,)), due)
    done = rnncc("inspect", path, *OPTIONS)
    assert "no RNN, GRU, LSTM, MatMul, Gemm or Conv is computed by \"bf16-dynamic\"" in done.stderr, done.stderr


def test_what_is_faster_in_f32_stays_so(compile, tmp_path):
    """And what --conv runs by another algorithm. Bit for bit."""
    path, feeds = of_one_node(tmp_path, [1, 3, 60, 60], (16, 3, 3, 3))
    due = run_module(compile(path, AMX), feeds, (1,))
    assert_same(run_module(compile(path, *OPTIONS), feeds, (1,)), due)
    (other := tmp_path / "other").mkdir()
    path, feeds = of_one_node(other, [1, 64, 28, 28], (64, 64, 3, 3), **BOTH)
    direct, bf16_direct, by_matrices = (run_module(compile(path, *options), feeds, (1,)) for options in (
        (AMX, "--conv=direct"), (*OPTIONS, "--conv=direct"), OPTIONS))
    assert_same(bf16_direct, direct)
    assert any((by_matrices[name] != direct[name]).any() for name in direct)


def test_a_schedule_on_record_is_of_its_products(rnncc, tmp_path):
    """Of bf16 another than of f32."""
    path = convolution("deep", "plain", **LAYERS["deep"][0])[0].write(tmp_path)
    keys = [rnncc("inspect", path, "--explain=conv", *options).stdout.split(":")[0] for options in (OPTIONS, [AMX])]
    assert keys[0].replace("_bf16", "") == keys[1] != keys[0]


def test_weights_can_change(compile, tmp_path):
    case = CASES["33 pixels"]
    model, feeds, due, _ = convolution("33 pixels", "clip", **case)
    got = run_module(compile(model.write(tmp_path), *OPTIONS, "--weights=mutable", "--conv=matrices_bf16"), feeds, (1, 2))
    assert_same(got, {model.outputs[0]: due.astype(numpy.float32)})
