# SPDX-License-Identifier: MIT
"""tools/bench steps: its command line, its networks and its lines, but for its measuring."""
import sys

import numpy
import pytest
from conftest import ROOT
from support.bench import assert_refused, listed

sys.path[:0] = [str(ROOT / "tools")]

from benchmarks import steps_run  # noqa: E402


def test_the_cases_are_listed():
    assert listed("steps") == [*steps_run.CASES]
    assert listed("steps", "cnn*") == ["cnn_32", "cnn_strided"]


@pytest.mark.parametrize("words, told", [(["cnn_31"], "cnn_31"), (["--threads", "0"], "0"), (["--clock", "sun"], "sun")])
def test_what_is_not_there_is_refused(words, told):
    assert_refused("steps", *words, told=told)


def test_products_are_counted_both_ways_and_the_first_layer_has_no_gradient_for_images():
    assert steps_run.products_of(2, (3, 4, 9, 10), (4, 5, 1, 10)) == 2 * 2 * 3 * 4 * 9 * 10 * 2 + 2 * 2 * 4 * 5 * 10 * 3


def test_a_line_has_the_ratio_and_the_part_of_the_peak():
    line = steps_run.line("cnn_32", {"rnncc": 0.002, "torch": 0.004}, {"torch": 0.5}, 0.001)
    assert line.split() == ["cnn_32", "rnncc", "2000", "us", "torch", "4000", "us", "of", "torch", "0.50", "50%", "of", "the", "peak"]
    assert "peak" not in steps_run.line("a", {"rnncc": 1.0, "torch": 1.0}, {"torch": 1.0}, 0)


def test_a_loss_of_images_is_one_number():
    net = steps_run.Network("images")
    x = net.call("Relu", steps_run.convolution(net, steps_run.images(net, 2, 3, 8, 8), 3, 4))
    net.model.output(steps_run.classified(net, x, 4, 5, 2))
    (loss,) = net.model.onnx_run(net.feeds).values()
    assert numpy.isfinite(loss) and loss.shape == () and sorted(net.weights) == ["w0", "w1", "w2", "w3"]
