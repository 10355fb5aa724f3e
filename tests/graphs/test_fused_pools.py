# SPDX-License-Identifier: MIT
"""A 2x2 MaxPool that the Winograd convolution before it does gives the same bits as the two kernels one after the other.
These run if the convolution's result is an output, too."""
import re

import numpy
import pytest

from support.amount import some
from support.emitted import TARGETS, run_module, run_by
from support.merge import merged
from support.model_builder import Model

FORCED = ("--conv=winograd", "--layout-search=greedy")  # small layers would run directly, on row-major tensors
POOL = dict(kernel_shape=[2, 2], strides=[2, 2])
BOUND = 1e-4  # max |error| / max |result| of Winograd convolutions: kernels/test_conv_winograd.py


def network(extent, apart=False, batch=2, channels=16, kernels=40, group=1, activation="Relu", residual=False,
            op="MaxPool", taps=(3, 3), special=False, **window):
    """The model and its feeds. `apart`: the convolution's result is an output, too; `special`: x has NaN and infinities."""
    rng, model = numpy.random.default_rng(7), Model()
    images = batch if isinstance(batch, int) else 3
    if images != batch:
        model.dim(batch, 1, 2, 5)
    feeds = {"x": rng.standard_normal((images, channels, *extent)).astype("f")}
    weights = rng.standard_normal((kernels, channels // group, *taps)).astype("f") / 12
    bias = model.constant(rng.standard_normal(kernels).astype("f"))
    pads = [taps[0] // 2, taps[1] // 2] * 2
    y = model.node("Conv", [model.input("x", "f32", [batch, channels, *extent]), model.constant(weights), bias],
                   pads=pads, group=group)
    if residual:
        feeds["r"] = rng.standard_normal((images, kernels, *extent)).astype("f")
        y = model.node("Add", [y, model.input("r", "f32", [batch, kernels, *extent])])
    if activation:
        y = model.node(activation, [y])
    model.output(model.node(op, [y], **(POOL | window)))
    if apart:
        model.output(y)
    if special:
        feeds["x"][0, 3, ::5, ::6] = [[numpy.nan]]
        feeds["x"][1, 5, 1::7, 2::5] = [[numpy.inf]]
    return model, feeds


# Extents are odd and even, multiples of the tiles 2, 4 and 6, and others.
CASES = [
    dict(extent=(12, 12)),
    dict(extent=(13, 9), kernels=17, channels=39),
    dict(extent=(7, 10), activation=None),
    dict(extent=(2, 3), batch=1),
    dict(extent=(18, 25), activation="Tanh"),
    dict(extent=(11, 14), batch="N"),
    dict(extent=(9, 16), residual=True),
    dict(extent=(10, 10), channels=64, kernels=32, group=2, residual=True),
    dict(extent=(20, 19), special=True),
]


def written(folder, cases, apart):
    model, feeds = merged([network(apart=apart, **case) for case in cases])
    model.name = "apart" if apart else "fused"
    return model, model.write(folder), feeds


def pools_of(rnncc, path, *options):
    """The numbers of kernels that convolve and pool, and of kernels that only pool."""
    done = rnncc("inspect", path, *FORCED, *options)
    assert done.returncode == 0, done.stderr
    return len(re.findall(r" winograd\S*_max2x2 ", done.stdout)), len(re.findall(r" MaxPool ", done.stdout))


def largest_of_2x2(x):
    """NaN if one of them is."""
    whole = x[..., :x.shape[2] // 2 * 2, :x.shape[3] // 2 * 2]
    return whole.reshape(*x.shape[:2], x.shape[2] // 2, 2, x.shape[3] // 2, 2).max(axis=(3, 5))


def check(fused, apart, expected):
    """fused: pooled values; apart: each pooled value, then the convolution's result."""
    pooled, unpooled = list(apart.values())[::2], list(apart.values())[1::2]
    for name, case, whole, before in zip(fused, CASES, pooled, unpooled, strict=True):
        got, want = fused[name], expected[name]
        assert got.shape == whole.shape and got.tobytes() == whole.tobytes(), case
        numpy.testing.assert_array_equal(got, largest_of_2x2(before), err_msg=str(case))
        if not case.get("special"):
            assert numpy.abs(got - want).max() <= BOUND * numpy.abs(want).max(), case


SWEEP = [("x86-64-v3", 2), ("x86-64-v4", 4), ("x86-64-v3", 6), ("aarch64-linux-gnu", 4), ("x86-64-v4", 6),
         ("x86-64-v3", 4), ("aarch64-linux-gnu", 6), ("x86-64-v4", 2), ("aarch64-linux-gnu", 2)]


@pytest.mark.parametrize("target, tile", some(SWEEP, 4))
def test_the_bits_are_those_of_pooling_afterwards(rnncc, compile, reference, request, tmp_path, target, tile):
    options = (*FORCED, f"--conv=winograd,tile={tile}", f"--target={target}", "--threads=3")
    (model, fused, feeds), (_, apart, _) = (written(tmp_path, CASES, together) for together in (False, True))
    assert pools_of(rnncc, fused, *options) == (sum(case.get("group", 1) for case in CASES), 0)
    assert pools_of(rnncc, apart, *options) == (0, len(CASES))
    expected = reference.run(model, fused, feeds)

    def results(path, names):
        module = compile(path, *options, optimised=False)
        if target in TARGETS:
            return run_module(module, feeds)
        return run_by(request.getfixturevalue("aarch64_rnnrun"), module, feeds, names, tmp_path)

    names = [f"p{k}_{name}" for k, case in enumerate(CASES) for name in network(apart=True, **case)[0].outputs]
    check(results(fused, list(expected)), results(apart, names), expected)


OTHERS = {
    "mean": dict(op="AveragePool"),
    "windows_that_overlap": dict(strides=[1, 1]),
    "windows_of_three": dict(kernel_shape=[3, 3]),
    "padded": dict(pads=[0, 0, 1, 1]),
    "window_beyond_the_edge": dict(ceil_mode=1),
    "tiles_of_one_row": dict(taps=(1, 3)),
}


@pytest.mark.parametrize("other", OTHERS)
def test_other_poolings_are_kernels_of_their_own(rnncc, tmp_path, other):
    model, _ = network((13, 13), **OTHERS[other])
    assert pools_of(rnncc, model.write(tmp_path))[0] == 0


def test_direct_convolutions_do_not_pool(rnncc, tmp_path):
    assert pools_of(rnncc, network((12, 12))[0].write(tmp_path), "--conv=direct") == (0, 1)


def test_records_are_of_the_convolution_alone(rnncc, tmp_path):
    """A schedule that was measured without the pooling is used with it, and the other way round."""
    paths = [written(tmp_path, CASES[:1], apart)[1] for apart in (False, True)]
    said = [rnncc("inspect", path, *FORCED, "--explain=conv").stdout for path in paths]
    assert "winograd" in said[0] and said[0] == said[1]


def test_a_pooled_result_may_be_a_part_of_a_concatenation(rnncc, compile, reference, tmp_path):
    """It is written in place; images are further apart than their size."""
    rng, model = numpy.random.default_rng(9), Model()
    x, parts = model.input("x", "f32", [2, 16, 13, 8]), []
    for _ in range(2):
        weights = rng.standard_normal((32, 16, 3, 3)).astype("f") / 12
        y = model.node("Relu", [model.node("Conv", [x, model.constant(weights)], pads=[1, 1, 1, 1])])
        parts.append(model.node("MaxPool", [y], **POOL))
    model.output(model.node("Concat", parts, axis=1))
    path, feeds = model.write(tmp_path), {"x": rng.standard_normal((2, 16, 13, 8)).astype("f")}
    assert pools_of(rnncc, path) == (2, 0)
    (got,), (want,) = run_module(compile(path, *FORCED), feeds).values(), reference.run(model, path, feeds).values()
    assert numpy.abs(got - want).max() <= BOUND * numpy.abs(want).max()
