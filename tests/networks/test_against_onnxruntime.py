# SPDX-License-Identifier: MIT
"""Compiled networks compute what ONNX Runtime computes with the same weights, for any number of images, and the same bits
on any number of threads. Most run in a small form, whose odd channel counts fill no vector; with pytest's option --long
all run in their own size, too."""
import numpy
import pytest
from support.amount import long_tests, some
from support.module import Module
from support.some_networks import NETWORKS, SOME_NETWORKS, error

# Relative to the largest probability. Direct convolution adds some thousand products in another order: 1e-5 is a hundred
# rounding errors of a float. The transforms of Winograd's F(4x4,3x3) multiply by up to 8 and cancel: 1e-4.
DIRECT, WINOGRAD = 1e-5, 1e-4
BATCH = 4
SMALL = {**dict.fromkeys(NETWORKS, {"size": 64, "width": 0.4}), "inception_v3": {"size": 107, "width": 0.3},
         **{f"vgg{depth}": {"size": 64, "width": 0.2} for depth in (11, 13, 16, 19)},
         **{f"densenet{depth}": {"size": 64, "width": 0.5} for depth in (121, 169, 201)},
         "densenet161": {"size": 64, "width": 0.34},
         **{f"resnet{depth}": {"size": 64, "width": 0.2} for depth in (101, 152)}}
ALGORITHMS = {"winograd": ([], WINOGRAD), "direct": (["--no-winograd"], DIRECT)}
WITHOUT_WINOGRAD = ["resnet18", "inception_v3", "vgg11", "densenet121"]
FULL = [("squeezenet", "winograd")]
# Small forms that clang optimises: in long tests one of each of three kinds of networks.
OPTIMISED = some(["resnet18", "densenet121", "mobilenet_v2"], 1)


def pytest_generate_tests(metafunc):
    if "full_size" in metafunc.fixturenames:
        every = [(name, "winograd") for name in NETWORKS] + [(name, "direct") for name in WITHOUT_WINOGRAD]
        metafunc.parametrize("full_size, algorithm", every if long_tests() else FULL)


def images(net, count):
    shape = [count, *net.inputs[0]["shape"][1:]]
    return {"image": numpy.random.default_rng(count).standard_normal(shape, numpy.float32)}


def outputs(module, feeds, threads):
    with module.context(threads) as context:
        return next(iter(context.run(feeds).values()))


def check(net, compile, folder, bound, *options, optimised=True):
    with Module(compile(net.write(folder), *options, optimised=optimised)) as module:
        for count in (1, 2, BATCH):
            feeds = images(net, count)
            alone, expected = outputs(module, feeds, 1), net.onnx_run(feeds)[net.outputs[0]]
            assert len(alone) == count and error(alone, expected) <= bound, f"{count} images"
            for threads in (2, 3, 8):
                assert numpy.array_equal(outputs(module, feeds, threads), alone), f"{count} images, {threads} threads"


@pytest.mark.parametrize("name", SOME_NETWORKS)
def test_a_small_form_computes_what_onnx_runtime_does(name, compile, tmp_path):
    check(NETWORKS[name](batch=BATCH, **SMALL[name]), compile, tmp_path, WINOGRAD, optimised=name in OPTIMISED)


@pytest.mark.parametrize("name", some(WITHOUT_WINOGRAD, 1))
def test_without_winograd_a_small_form_differs_by_rounding_only(name, compile, tmp_path):
    check(NETWORKS[name](batch=BATCH, **SMALL[name]), compile, tmp_path, DIRECT, "--no-winograd",
          optimised=name in OPTIMISED)


def test_a_network_computes_what_onnx_runtime_does(full_size, algorithm, compile, tmp_path):
    options, bound = ALGORITHMS[algorithm]
    check(NETWORKS[full_size](batch=BATCH), compile, tmp_path, bound, *options)


def detections(*scores, side=0.5):
    """[1,4,6]: one of each class and score; none for a score of -1."""
    rows = numpy.full((1, 4, 6), -1, numpy.float32)
    for number, score in enumerate(scores):
        rows[0, number] = number, score, 0.1, 0.1, side, side
    return rows


def test_detections_are_compared_one_by_one_in_any_order():
    expected = detections(0.9, 0.5, 0.3)
    assert error(expected[:, [1, 0, 2, 3]], expected) == 0
    assert error(detections(0.9, 0.5, 0.3, side=0.75), expected) == 0.25
    assert error(detections(0.9, 0.5, 0.3, 0.25), expected) == pytest.approx(0.24)  # one more: 0.01 is not a detection
    assert error(detections(0.9, 0.5), expected) == pytest.approx(0.29)
    full, other = detections(0.9, 0.5, 0.4, 0.3), detections(0.9, 0.5, 0.4, 0.25)
    other[0, 3, 0] = 7
    assert error(other, full) == pytest.approx(0.05)  # another one in the last row, with a similar score
    assert error(detections(numpy.nan), expected) == numpy.inf
