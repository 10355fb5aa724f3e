# SPDX-License-Identifier: MIT
"""Convolutions, poolings and element-wise nodes whose height or width only the run knows: on blocked tensors, with the
results of ONNX Runtime for every extent from the least to the largest, and the same bits on any number of threads."""
import itertools
import re

import numpy
import pytest

from support.amount import long_tests
from support.emitted import TARGETS, assert_same
from support.model_builder import Model, whole
from support.module import Module

BOUND = 1e-4  # of Winograd's algorithm: max |error| / max |result|


class Network(Model):
    """A model of one input, [N, channels, H, W] or [N, channels, W], whose numbers are whole, so that every order of
    sums has the same result."""
    search = "greedy"  # auto would leave such small tensors row-major

    def __init__(self, channels, dims, axes="HW"):
        super().__init__()
        self.rng = numpy.random.default_rng(channels)
        for name, extents in dims.items():
            self.dim(name, *extents)
        shape = ["N" if "N" in dims else 1, channels, *[name if name in dims else 9 for name in axes]]
        self.x = self.input("x", "f32", shape)

    def conv(self, x, channels, kernels, window=(3, 3), bias=True, group=1, **attributes):
        inputs = [x, self.constant(whole(self.rng, kernels, channels // group, *window))]
        inputs += [self.constant(whole(self.rng, kernels))] if bias else []
        return self.node("Conv", inputs, group=group, **attributes)

    def transposed(self, x, channels, kernels, window, group=1, **attributes):
        weights = whole(self.rng, channels, kernels // group, *window)
        return self.node("ConvTranspose", [x, self.constant(weights)], group=group, **attributes)


WIDTH = {"W": (1, 20, 40)}
BOTH = {"N": (1, 1, 3), "H": (1, 8, 19), "W": (1, 20, 40)}
SAME = {"pads": [1, 1, 1, 1]}


def dense():
    """Residuals, a window wider than the least width, and channels that fill no block."""
    net = Network(5, BOTH)
    a = net.node("Relu", [net.conv(net.x, 5, 37, **SAME)])
    b = net.conv(a, 37, 37, (1, 1))
    c = net.node("Relu", [net.node("Add", [net.conv(b, 37, 37, (3, 5), pads=[1, 2, 1, 2]), a])])
    net.output(net.conv(c, 37, 20, (1, 1), bias=False))
    return net


def strided():
    """Strides, dilations, and padding that differs from side to side or is wider than the input."""
    net = Network(16, BOTH)
    a = net.conv(net.x, 16, 32, (3, 4), strides=[2, 3], pads=[2, 3, 1, 0])
    b = net.conv(a, 32, 16, (3, 3), dilations=[2, 4], pads=[3, 5, 2, 6])
    net.output(a, net.conv(b, 16, 33, (1, 1), strides=[2, 2]), net.conv(net.x, 16, 8, (3, 3), auto_pad="SAME_UPPER",
                                                                    strides=[2, 2]))
    return net


def grouped():
    net = Network(32, BOTH)
    a = net.conv(net.x, 32, 32, group=2, **SAME)
    net.output(net.conv(a, 32, 24, group=8, pads=[0, 2, 2, 0]))
    return net


def unpadded():
    """Tensors of fewer pixels than the input, in products of differences of dims, and channels that fill no block; groups
    that Winograd's algorithm begins in the middle of such tensors."""
    net = Network(33, {"H": (5, 8, 19), "W": (5, 20, 40)})
    a = net.conv(net.x, 33, 256, (3, 3))
    net.output(net.conv(a, 256, 256, (3, 3), group=16), net.conv(net.x, 33, 33, (2, 2)))
    return net


def depthwise():
    net = Network(21, BOTH)
    a = net.node("Relu", [net.conv(net.x, 21, 21, group=21, **SAME)])
    b = net.node("Relu", [net.node("Add", [net.conv(a, 21, 21, (5, 3), group=21, bias=False, pads=[2, 1, 2, 1]), a])])
    c = net.conv(b, 21, 21, (3, 5), group=21, strides=[2, 2], dilations=[1, 2], pads=[1, 4, 1, 4])
    net.output(b, c, net.conv(net.x, 21, 21, group=21, auto_pad="SAME_LOWER", strides=[1, 2]))
    return net


def pooled():
    """Means are over powers of two, so they are exact."""
    net = Network(21, BOTH)
    a = net.conv(net.x, 21, 21, group=21, **SAME)
    b = net.node("MaxPool", [a], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, **SAME)
    c = net.node("AveragePool", [b], kernel_shape=[2, 2], strides=[1, 1], count_include_pad=1, **SAME)
    d = net.node("AveragePool", [a], kernel_shape=[1, 4], strides=[1, 2], count_include_pad=1, pads=[0, 2, 0, 1])
    e = net.node("MaxPool", [a], kernel_shape=[3, 5], pads=[2, 4, 0, 1])
    net.output(c, d, e, net.node("GlobalMaxPool", [c]), net.node("GlobalAveragePool", [net.node("Mul", [c, c])]))
    return net


def joined():
    """Concat, Split and broadcast sums of blocked tensors, and the transforms of what is row-major."""
    net = Network(16, BOTH)
    a, b = net.conv(net.x, 16, 32, **SAME), net.conv(net.x, 16, 20, **SAME)
    c = net.conv(net.node("Concat", [a, b, a], axis=1), 84, 48, (1, 1))
    d, e = net.node("Split", [c], outputs=2, axis=1, num_outputs=2)
    f = net.node("Mul", [net.node("Sigmoid", [net.node("GlobalMaxPool", [d])]), net.node("Sub", [d, d])])
    net.output(net.conv(e, 24, 16, **SAME), net.node("Transpose", [d], perm=[0, 2, 3, 1]), net.node("Max", [e, f]))
    return net


def sequence():
    """A tensor of rank 3: a plane of one row."""
    net = Network(24, WIDTH, axes="W")
    a = net.node("Relu", [net.conv(net.x, 24, 40, (5,), pads=[2, 2])])
    b = net.conv(a, 40, 40, (3,), group=40, pads=[2, 0])
    net.output(net.node("MaxPool", [b], kernel_shape=[3], strides=[2], pads=[1, 1]), net.conv(b, 40, 16, (1,)))
    return net


def reader():
    """A text-line reader: a column of pixels collapses into a step of a sequence. Its height is constant."""
    net = Network(1, WIDTH)
    a = net.node("MaxPool", [net.conv(net.x, 1, 32, **SAME)], kernel_shape=[2, 1], strides=[2, 1])
    b = net.node("Relu", [net.conv(a, 32, 48, (4, 3), pads=[0, 1, 0, 1])])
    net.output(net.node("Transpose", [net.node("Squeeze", [b, net.constant(numpy.array([2]))])], perm=[2, 0, 1]))
    return net


def transposed():
    """Strides up to 4, cropping, and groups."""
    net = Network(16, BOTH)
    a = net.node("Relu", [net.transposed(net.x, 16, 37, (3, 3), strides=[1, 2], pads=[1, 0, 1, 1])])
    b = net.transposed(a, 37, 20, (2, 5), strides=[2, 3], dilations=[1, 2], pads=[0, 2, 1, 4])
    c = net.transposed(net.x, 16, 32, (4, 4), strides=[2, 4], group=2)
    net.output(b, c, net.transposed(a, 37, 16, (1, 3), pads=[0, 1, 0, 1], output_padding=[0, 0]))
    return net


def wide():
    """In blocks of two vectors."""
    net = Network(32, BOTH)
    net.search = "wide"
    a = net.node("Relu", [net.conv(net.x, 32, 64, **SAME)])
    b = net.node("Relu", [net.node("Add", [net.conv(a, 64, 64, (1, 1)), a])])
    net.output(net.conv(net.node("MaxPool", [b], kernel_shape=[2, 2], **SAME), 64, 64, (3, 2), strides=[1, 2], **SAME))
    return net


NETWORKS = (dense, strided, grouped, unpadded, depthwise, pooled, joined, sequence, reader, transposed, wide)


def extents(net):
    """Every width, each with the next height and batch; in long tests each with every height."""
    ranges = [range(dim["min"], dim["max"] + 1) for dim in net.dims.values()]
    if long_tests() and len(ranges) == 3:
        return [(1 + h % 3, h, w) for h, w in itertools.product(*ranges[1:])]
    return [tuple(r[i * (7 if len(r) < 20 else 1) % len(r)] for r in ranges) for i in range(len(ranges[-1]))]


def feeds_of(net, values):
    dims, rng = dict(zip(net.dims, values)), numpy.random.default_rng(sum(values))
    return {"x": whole(rng, *[dims.get(extent, extent) for extent in net.inputs[0]["shape"]])}


def cases():
    """By default each network on one target; in long tests on all."""
    every = [(network, target) for network in NETWORKS for target in TARGETS]
    return every if long_tests() else [(network, TARGETS[i % len(TARGETS)]) for i, network in enumerate(NETWORKS)]


@pytest.mark.parametrize("network, target", cases(), ids=lambda case: getattr(case, "__name__", case))
def test_every_extent_equals_onnx_runtime(compile, tmp_path, network, target):
    net = network()
    module = compile(net.write(tmp_path), f"--target={target}", f"--layout-search={net.search}",
                     "--no-winograd", optimised=network is dense)
    with Module(module) as loaded, loaded.context(1) as alone, loaded.context(3) as three:
        for values in extents(net):
            feeds = feeds_of(net, values)
            got = alone.run(feeds)
            assert_same(got, net.onnx_run(feeds))
            assert_same(three.run(feeds), got)


def winograd():
    """Every form of Winograd's algorithm, a residual, a fused pooling, and groups."""
    net = Network(32, BOTH)
    a = net.node("Relu", [net.conv(net.x, 32, 48, **SAME)])
    b = net.node("Relu", [net.node("Add", [net.conv(a, 48, 48, pads=[2, 0, 0, 2]), a])])
    c = net.node("MaxPool", [net.conv(b, 48, 32, (3, 3), group=1, pads=[2, 2, 2, 2])], kernel_shape=[2, 2], strides=[2, 2])
    d = net.conv(net.conv(c, 32, 32, (1, 7), pads=[0, 3, 0, 3]), 32, 32, (5, 1), pads=[2, 0, 2, 0])
    net.output(net.conv(d, 32, 32, (5, 5), pads=[2, 2, 2, 2], group=2), net.conv(d, 32, 16, (3, 1), pads=[1, 0, 1, 0]))
    return net


def test_winograd_of_groups_in_tensors_of_differences_of_dims(rnncc, tmp_path):
    done = rnncc("inspect", unpadded().write(tmp_path), "--target=x86-64-v4", "--conv=winograd")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("winograd") >= 16


@pytest.mark.parametrize("options", [("--threads=1", "--conv=winograd"), ("--threads=3", "--conv=winograd,tile=2"),
                                     ("--threads=3", "--conv=winograd,by_groups=1,parts=1,oc=1")], ids=" ".join)
def test_winograd_equals_onnx_runtime_within_its_bound(compile, rnncc, tmp_path, options):
    net = winograd()
    path, options = net.write(tmp_path), ["--target=x86-64-v3", *options]
    listed = rnncc("inspect", path, *options).stdout
    assert listed.count("winograd") == 8 and "max2x2" in listed and "_pool_blocked" not in listed
    module = compile(path, *options, optimised=False)
    with Module(module) as loaded, loaded.context(1) as alone, loaded.context(3) as three:
        for values in extents(net)[::1 if long_tests() else 3]:
            feeds = feeds_of(net, values)
            got = alone.run(feeds)
            for name, expected in net.onnx_run(feeds).items():
                assert got[name].shape == expected.shape
                assert numpy.abs(got[name] - expected).max() <= BOUND * numpy.abs(expected).max(), (name, values)
            assert_same(three.run(feeds), got)


def heavy():
    """Weights that take longer to read than planes of few pixels to compute; a residual and a pooling."""
    net = Network(64, {"W": (4, 64, 90)})
    a = net.node("Relu", [net.conv(net.x, 64, 128, **SAME)])
    b = net.node("Relu", [net.node("Add", [net.conv(a, 128, 128, **SAME), a])])
    net.output(net.node("MaxPool", [net.conv(b, 128, 128, pads=[0, 1, 0, 1])], kernel_shape=[2, 2], strides=[2, 2]))
    return net


HEAVY_OPTIONS = ("--target=x86-64-v3", "--machine=typical", "--threads=3")


def test_a_smaller_tile_runs_planes_of_few_pixels(compile, rnncc, tmp_path):
    net = heavy()
    path = net.write(tmp_path)
    explained = rnncc("inspect", "--explain=conv", path, *HEAVY_OPTIONS).stdout
    limits = [int(limit) for limit in re.findall("few pixels: winograd,tile=2.*at most ([0-9]+) pixels", explained)]
    assert len(limits) == 3, explained
    edges = {limit // rows + more for limit, rows in zip(limits, (9, 9, 7)) for more in (0, 1)}
    with Module(compile(path, *HEAVY_OPTIONS, optimised=False)) as loaded:
        with loaded.context(1) as alone, loaded.context(3) as three:
            for width in sorted({4, 90} | edges):
                feeds = {"x": whole(numpy.random.default_rng(width), 1, 64, 9, width)}
                got, ((name, expected),) = alone.run(feeds), net.onnx_run(feeds).items()
                assert numpy.abs(got[name] - expected).max() <= BOUND * numpy.abs(expected).max(), width
                assert_same(three.run(feeds), got)


@pytest.mark.parametrize("width, runs", [(4, "winograd2x2_3x3"), (64, "winograd[46]x[46]_3x3")])
def test_each_tile_runs_where_it_is_for(compile, rnnrun, tmp_path, width, runs):
    module = compile(heavy().write(tmp_path), *HEAVY_OPTIONS, optimised=False)
    profile = rnnrun("profile", module, "--threads=1", "--dim", f"W={width}", "--runs=3").stdout
    times = {row.split()[7]: float(row.split()[0]) for row in profile.splitlines() if "winograd" in row}
    assert len(times) == 6 and all((time > 20) == bool(re.match(runs, name)) for name, time in times.items()), profile


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.__name__)
def test_nothing_runs_row_major(rnncc, tmp_path, network):
    net = network()
    done = rnncc("inspect", net.write(tmp_path), "--target=x86-64-v4", f"--layout-search={net.search}")
    assert done.returncode == 0, done.stderr
    for kernel in ("plain_", "pool_plain", "_reduce", "elementwise_chain ", "conv_pad"):
        assert kernel not in done.stdout
