# SPDX-License-Identifier: MIT
"""Tensors in blocks of two vectors: with --layout-search=wide all that can be are, and every bit is the reference's.
Records of wide blocks make the search choose them."""
import json

import numpy
import pytest

from support import machine
from support.amount import half, some
from support.convolutional import RandomNetwork, signs, whole
from support.emitted import TARGETS, assert_same, run_module, run_by
from support.model_builder import Model

WIDE = "--layout-search=wide"
LANES = {"x86-64-v4": 16, "x86-64-v3": 8, "x86-64": 4}
NETWORKS = 6
OPS = 8


class WideNetwork(RandomNetwork):
    """Most numbers of channels are multiples of wide blocks of any target; others are random."""

    def convolved(self, value, kernels, kernel, group=1, **attributes):
        if group == 1 and kernels not in (1, value[1]) and self.rng.random() < 0.7:
            kernels = (kernels + 31) // 32 * 32
        return super().convolved(value, kernels, kernel, group, **attributes)

    def add_split(self):
        """Whole blocks and a rest, read in place or copied."""
        name, channels, height, width = self.pick()
        first = 32 if channels > 32 else max(1, channels // 2)
        if channels < 2:
            return
        sizes = self.model.constant(numpy.array([first, channels - first]))
        halves = self.model.node("Split", [name, sizes], 2, axis=1)
        joined = self.model.node("Concat", [halves[1], halves[0]], axis=1)
        self.values.append(self.convolved((joined, channels, height, width), 32, 1))
        self.values[-1] = (self.clip(self.values[-1][0]), *self.values[-1][1:])


def dump(rnncc, path, *options):
    done = rnncc("inspect", path, "--dump-after=insert_layout_transforms", *options)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", some(range(NETWORKS), 3))
def test_random_networks_in_wide_blocks_equal_the_reference(reference, compile, tmp_path, target, seed):
    network = WideNetwork(numpy.random.default_rng([seed, 31])).grow(OPS)
    model = network.finish()
    path = model.write(tmp_path)
    module = compile(path, f"--target={target}", "--no-winograd", "--conv=direct", WIDE,
                     optimised=seed == 0 and target == machine.WIDEST)
    for batch in (1, 3):
        feeds = network.feeds(batch)
        assert_same(run_module(module, feeds), reference.run(model, path, feeds))


def every_kind(rng):
    """Every kind of node on wide blocks: strides, groups, dilations, a residual, a normalised input, poolings, parts of a
    Concat of which the last does not fill its block, and transforms from and to blocks of a vector."""
    model = Model()
    model.dim("N", 1, 2, 3)

    def conv(x, channels, kernels, kernel, group=1, **attributes):
        weights = model.constant(signs(rng, kernels, channels // group, kernel, kernel))
        low, high = (model.constant(numpy.float32(bound)) for bound in (-3, 3))
        y = model.node("Conv", [x, weights, model.constant(whole(rng, kernels))], group=group, **attributes)
        return y, model.node("Clip", [y, low, high])

    x = model.input("x", "f32", ["N", 3, 13, 11])
    _, a = conv(x, 3, 64, 3, pads=[1] * 4)
    b, _ = conv(a, 64, 64, 1)
    summed = model.node("Relu", [model.node("Add", [b, a])])
    vectors = [model.constant(v) for v in (signs(rng, 64), whole(rng, 64), whole(rng, 64), numpy.ones(64, "f"))]
    normal = model.node("Relu", [model.node("BatchNormalization", [summed, *vectors], epsilon=0)])
    low, high = (model.constant(numpy.float32(bound)) for bound in (0, 3))
    _, c = conv(model.node("Clip", [normal, low, high]), 64, 96, 1, strides=[2, 2])
    _, d = conv(c, 96, 96, 3, group=3, pads=[2] * 4, dilations=[2, 2])
    pooled = model.node("MaxPool", [c], kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4)
    _, e = conv(pooled, 96, 33, 1)
    joined = model.node("Concat", [c, d, pooled, e], axis=1)
    _, f = conv(joined, 3 * 96 + 33, 64, 3)
    whole_blocks = model.node("Concat", [c, d, model.node("Add", [pooled, d])], axis=1)
    _, g = conv(whole_blocks, 3 * 96, 40, 1)
    model.output(f)
    model.output(g)
    model.output(model.node("GlobalMaxPool", [whole_blocks]))
    return model


@pytest.mark.parametrize("target, oc", [(target, oc) for k, target in enumerate(TARGETS) for oc in half([1, 2, 3, 5], k + 1)])
def test_every_kind_of_reader_and_writer_equals_the_reference(rnncc, reference, compile, tmp_path, target, oc):
    rng = numpy.random.default_rng(oc)
    model = every_kind(rng)
    path, options = model.write(tmp_path), (f"--target={target}", f"--conv=direct,oc={oc},pass={oc % 2}", WIDE)
    if target in LANES:
        assert f"HW{2 * LANES[target]}c" in dump(rnncc, path, *options)
    module = compile(path, *options, optimised=oc == 2 and target == machine.WIDEST)
    for batch in (1, 3):
        feeds = {"x": whole(rng, batch, 3, 13, 11)}
        assert_same(run_module(module, feeds), reference.run(model, path, feeds))


def test_every_kind_on_neon_equals_the_reference(rnncc, reference, compile, aarch64_rnnrun, tmp_path):
    rng = numpy.random.default_rng(9)
    model = every_kind(rng)
    path, options = model.write(tmp_path), ("--target=aarch64-linux-gnu", "--conv=direct", WIDE)
    assert "HW8c" in dump(rnncc, path, *options)
    feeds = {"x": whole(rng, 2, 3, 13, 11)}
    expected = reference.run(model, path, feeds)
    assert_same(run_by(aarch64_rnnrun, compile(path, *options), feeds, list(expected), tmp_path), expected)


def strided(rng, channels=256):
    """A convolution that gains by wide blocks if a vector is half a cache line."""
    model = Model()
    x = model.input("x", "f32", [1, channels, 28, 28])
    for strides in ([1, 1], [2, 2], [2, 2]):
        x = model.node("Relu", [model.node("Conv", [x, model.constant(signs(rng, channels, channels, 1, 1))],
                                           strides=strides)])
    model.output(x)
    return model


def test_the_tuner_measures_wide_blocks_and_its_records_decide(rnncc, tmp_path):
    """Measured times decide whether they are faster: the test sets the times both ways."""
    machine.need_isa("avx2")
    path, measured = strided(numpy.random.default_rng(3)).write(tmp_path), tmp_path / "measured.jsonl"
    options = ("--target=x86-64-v3", "--threads=1")
    done = rnncc("tune", path, "-o", measured, "--trials=1", "--budget=60", *options)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in measured.read_text().splitlines()]
    best = [line for line in lines if line.get("status", "best") == "best"]
    assert any("_in8" in line["workload"] for line in best) and any("_in16" in line["workload"] for line in best)
    narrow = {line["workload"]: line["median_us"] for line in best}
    for factor, taken in ((0.5, True), (2, False)):
        records = tmp_path / f"{factor}.jsonl"
        with records.open("w") as file:
            for line in best:
                like = line["workload"].replace("_in16", "_in8").replace("_out16", "")
                line = {**line, "median_us": narrow[like] * (1 if like == line["workload"] else factor)}
                del line["sum"]
                file.write(json.dumps(line) + "\n")
        assert ("HW16c" in dump(rnncc, path, f"--schedules={records}", *options)) == taken


def test_blocks_that_no_layout_search_could_choose_are_not_measured(rnncc, tmp_path):
    machine.need_isa("avx2")
    path, measured = strided(numpy.random.default_rng(3), 64).write(tmp_path), tmp_path / "measured.jsonl"
    done = rnncc("tune", path, "-o", measured, "--trials=1", "--budget=60", "--target=x86-64-v3", "--threads=1",
                 "--layout-search=none")
    assert done.returncode == 0, done.stderr
    workloads = {json.loads(line)["workload"] for line in measured.read_text().splitlines()}
    assert workloads and not any("_in16" in workload or "_out16" in workload for workload in workloads), workloads
