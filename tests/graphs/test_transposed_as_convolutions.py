# SPDX-License-Identifier: MIT
"""A transposed convolution is an ordinary one of the channels of all phases where that is faster, and computes the same; any
other stays as it is. By targets of 8 lanes, whatever this CPU has."""
import re

import numpy as np
import pytest

from support.emitted import run_module
from support.model_builder import Model

TARGET = ("--target=x86-64-v3", "--machine=typical", "--threads=1")
DOUBLED = {"strides": [2, 2], "pads": [1, 1, 1, 1]}
# Input with its batch, output channels, window, more of the node.
CHOSEN = {"few channels": ((2, 24, 12, 14), 3, (4, 4), DOUBLED),
          "few channels by Winograd's": ((1, 64, 24, 24), 3, (4, 4), DOUBLED),
          "without overlap": ((1, 16, 10, 18), 1, (2, 2), {"strides": [2, 2]}),
          "an odd window": ((1, 9, 17, 17), 2, (3, 3), {**DOUBLED, "output_padding": [1, 1]}),
          "another stride and crop of each axis": ((2, 12, 9, 16), 4, (5, 8), {"strides": [3, 4], "pads": [2, 3, 0, 1]}),
          "a sequence of few channels": ((2, 20, 40), 1, (16,), {"strides": [8], "pads": [4, 4]}),
          "whole blocks by Winograd's": ((1, 32, 32, 32), 16, (4, 4), DOUBLED),
          "whole blocks of two images": ((2, 24, 20, 28), 24, (6, 5), {"strides": [2, 3], "pads": [2, 1, 2, 1]}),
          "whole blocks of a sequence": ((2, 64, 64), 32, (16,), {"strides": [8], "pads": [4, 4]}),
          "a part of the last block": ((1, 24, 30, 30), 20, (6, 6), {"strides": [2, 2], "pads": [2, 2, 2, 2]})}
OTHERS = {"many channels of few pixels": ((1, 64, 4, 4), 32, (4, 4), DOUBLED),
          "many zeros": ((1, 64, 32, 32), 32, (3, 3), {**DOUBLED, "output_padding": [1, 1]}),
          "a stride far beyond the window": ((1, 1, 1, 1), 1, (1, 1), {"strides": [65536] * 2, "output_padding": [65535] * 2}),
          "no stride": ((1, 8, 6, 6), 3, (3, 3), {"pads": [1, 1, 1, 1]}),
          "more outputs than inputs times the stride": ((1, 24, 12, 14), 3, (4, 4), {"strides": [2, 2]}),
          "a dilation": ((1, 24, 12, 14), 3, (2, 2), {"strides": [2, 2], "dilations": [2, 2], "pads": [1, 1, 0, 0]}),
          "groups": ((1, 24, 12, 14), 2, (2, 2), {"strides": [2, 2], "group": 2}),
          "a volume": ((1, 8, 3, 3, 3), 3, (2, 2, 2), {"strides": [2, 2, 2]})}


def network(case, run_axis=None, biased=True):
    """A convolution reads the result, but where it has few channels; an activation is between."""
    shape, kernels, window, more = case
    rng, net, given = np.random.default_rng(3), Model(), list(shape)
    if run_axis is not None:
        given[run_axis] = net.dim("D", 1, shape[run_axis], 80) or "D"

    def constant(*extents):
        return net.constant(rng.uniform(-1, 1, extents).astype(np.float32))

    bias = [constant(kernels)] if biased else []
    x = net.input("x", "f32", given)
    y = net.node("ConvTranspose", [x, constant(shape[1], kernels // more.get("group", 1), *window), *bias], **more)
    y = net.node("LeakyRelu", [y])
    if kernels >= 8:
        y = net.node("Conv", [y, constant(3, kernels, *[1] * len(window))])
    net.output(y)
    return net


def operators(rnncc, net, folder, *options):
    done = rnncc("inspect", net.write(folder), *TARGET, *options)
    assert done.returncode == 0, done.stderr
    return {word for line in done.stdout.splitlines() for word in line.split()[2:3]}


def feeds_of(shape):
    return {"x": np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)}


def check(net, found, feeds):
    (found,), (due,) = found.values(), net.onnx_run(feeds).values()
    assert found.shape == due.shape
    assert np.abs(found - due).max() <= 1e-4 * np.abs(due).max()  # the bound of Winograd's


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("name", CHOSEN)
def test_phases_are_channels_where_that_is_faster(name, biased, rnncc, compile, tmp_path):
    net, feeds = network(CHOSEN[name], biased=biased), feeds_of(CHOSEN[name][0])
    assert {"PixelShuffle", "ConvTranspose"} & operators(rnncc, net, tmp_path) == {"PixelShuffle"}
    check(net, run_module(compile(net.write(tmp_path), *TARGET), feeds), feeds)


@pytest.mark.parametrize("name, axis", [("a sequence of few channels", 0), ("a sequence of few channels", 2), ("few channels", 0),
                                        ("whole blocks of a sequence", 2), ("whole blocks of two images", 2)])
def test_an_extent_may_be_known_only_by_the_run(name, axis, rnncc, compile, tmp_path):
    net = network(CHOSEN[name], axis)
    assert "ConvTranspose" not in operators(rnncc, net, tmp_path)
    module = compile(net.write(tmp_path), *TARGET)
    for extent in (1, 80):
        shape = list(CHOSEN[name][0])
        shape[axis] = extent
        feeds = feeds_of(shape)
        check(net, run_module(module, feeds), feeds)


@pytest.mark.parametrize("name", OTHERS)
def test_others_stay(name, rnncc, tmp_path):
    assert "ConvTranspose" in operators(rnncc, network(OTHERS[name]), tmp_path)


def test_weights_that_can_change_stay(rnncc, tmp_path):
    assert "ConvTranspose" in operators(rnncc, network(CHOSEN["few channels"]), tmp_path, "--weights=mutable")


def test_modules_for_the_edge_have_no_more_than_twice_the_weights(rnncc, tmp_path):
    """Four phases of nine points would be 2.25 times the window's 16."""
    model, out = network(CHOSEN["whole blocks by Winograd's"]).write(tmp_path), tmp_path / "net.a"
    done = rnncc(model, "-o", out, "--static", "--profile=edge", *TARGET)
    assert done.returncode == 0, done.stderr
    assert int(re.search(r"(\d+) bytes of weights", done.stdout + done.stderr)[1]) < 2 * 4 * 32 * 16 * 16
