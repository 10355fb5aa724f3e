# SPDX-License-Identifier: MIT
"""A transposed convolution of few output channels is an ordinary one of the channels of all phases, and computes the same; any
other stays as it is. By targets of 8 lanes, whatever this CPU has."""
import numpy as np
import pytest

from support.emitted import run_module
from support.model_builder import Model

TARGET = "--target=x86-64-v3"
# Input with its batch, output channels, window, more of the node.
FEW = {"doubling": ((2, 5, 6, 7), 3, (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
       "by Winograd's": ((1, 64, 24, 24), 3, (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
       "without overlap": ((1, 16, 5, 9), 1, (2, 2), {"strides": [2, 2]}),
       "an odd window": ((1, 9, 7, 7), 2, (3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
       "another stride and crop of each axis": ((2, 4, 3, 8), 4, (5, 8), {"strides": [3, 4], "pads": [2, 3, 0, 1]}),
       "fewer points than the stride": ((1, 4, 3, 3), 1, (1, 2), {"strides": [2, 2], "output_padding": [1, 0]}),
       "a sequence": ((2, 20, 11), 1, (16,), {"strides": [8], "pads": [4, 4]})}
OTHERS = {"half of the lanes and more": ((1, 8, 6, 6), 5, (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
          "no stride": ((1, 8, 6, 6), 3, (3, 3), {"pads": [1, 1, 1, 1]}),
          "more outputs than inputs times the stride": ((1, 8, 6, 6), 3, (4, 4), {"strides": [2, 2]}),
          "a dilation": ((1, 8, 6, 6), 3, (2, 2), {"strides": [2, 2], "dilations": [2, 2], "pads": [1, 1, 0, 0]}),
          "groups": ((1, 8, 6, 6), 2, (2, 2), {"strides": [2, 2], "group": 2}),
          "a volume": ((1, 8, 3, 3, 3), 3, (2, 2, 2), {"strides": [2, 2, 2]})}


def network(case, run_axis=None, biased=True):
    shape, kernels, window, more = case
    rng, net, given = np.random.default_rng(3), Model(), list(shape)
    if run_axis is not None:
        given[run_axis] = net.dim("D", 1, shape[run_axis], 40) or "D"
    weights = [rng.uniform(-1, 1, (shape[1], kernels // more.get("group", 1), *window))]
    weights += [rng.uniform(-1, 1, kernels)] if biased else []
    x = net.input("x", "f32", given)
    net.output(net.node("Relu", [net.node("ConvTranspose", [x, *(net.constant(each.astype(np.float32)) for each in weights)], **more)]))
    return net


def operators(rnncc, net, folder, *options):
    done = rnncc("inspect", net.write(folder), TARGET, *options)
    assert done.returncode == 0, done.stderr
    return {word for line in done.stdout.splitlines() for word in line.split()[2:3]}


def check(net, module, shape):
    feeds = {"x": np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)}
    (found,), (due,) = run_module(module, feeds).values(), net.onnx_run(feeds).values()
    assert found.shape == due.shape
    assert np.abs(found - due).max() <= 1e-4 * np.abs(due).max()  # the bound of Winograd's


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("name", FEW)
def test_few_channels_are_those_of_all_phases(name, biased, rnncc, compile, tmp_path):
    net = network(FEW[name], biased=biased)
    assert {"Conv", "ConvTranspose"} & operators(rnncc, net, tmp_path) == {"Conv"}
    check(net, compile(net.write(tmp_path), TARGET), FEW[name][0])


@pytest.mark.parametrize("name, axis", [("a sequence", 0), ("a sequence", 2), ("doubling", 0), ("doubling", 3)])
def test_an_extent_may_be_known_only_by_the_run(name, axis, rnncc, compile, tmp_path):
    net = network(FEW[name], axis)
    assert "ConvTranspose" not in operators(rnncc, net, tmp_path)
    module = compile(net.write(tmp_path), TARGET)
    for extent in (1, 40):
        shape = list(FEW[name][0])
        shape[axis] = extent
        check(net, module, shape)


@pytest.mark.parametrize("name", OTHERS)
def test_others_stay(name, rnncc, tmp_path):
    assert "ConvTranspose" in operators(rnncc, network(OTHERS[name]), tmp_path)


def test_weights_that_can_change_stay(rnncc, tmp_path):
    assert "ConvTranspose" in operators(rnncc, network(FEW["doubling"]), tmp_path, "--weights=mutable")
