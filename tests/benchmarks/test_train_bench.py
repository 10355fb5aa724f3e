# SPDX-License-Identifier: MIT
"""tools/bench train: its command line, its networks and its page, but for its measuring."""
import re
import subprocess
import sys

import numpy
import pytest
from conftest import ROOT

sys.path[:0] = [str(ROOT / "tools")]

from benchmarks import contestants, train_cases, train_networks, train_page  # noqa: E402
from benchmarks.cases import Case  # noqa: E402


def bench(*words):
    return subprocess.run([ROOT / "tools" / "bench", "train", *words], capture_output=True, text=True, timeout=60)


def test_the_cases_are_listed():
    assert bench("--list").stdout.split() == [*train_cases.CASES]
    assert bench("--list", "gru_800*").stdout.split() == ["gru_800_t50_b32", "gru_800_t300_b20"]


@pytest.mark.parametrize("words, told", [(["lstm_801"], "lstm_801"), (["--without", "ncnn"], "ncnn"), (["--threads", "0"], "0"),
                                         (["--clock", "sun"], "sun")])
def test_what_is_not_there_is_refused(words, told):
    done = bench(*words)
    assert done.returncode == 2 and told in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_steps_written_out_are_the_layer(op):
    case = Case(op, 6, T=4, B=3)
    feeds = train_networks.feeds_of(case)
    losses = [float(*model.onnx_run(feeds).values())
              for model in (train_networks.layer_model(case), train_networks.written_model(case))]
    assert abs(losses[0] - losses[1]) < 2.0**-20 * abs(losses[0])


def test_gates_go_to_the_order_of_pytorch_and_back():
    case = Case("LSTM", 2, T=4, B=3)
    recurrent = contestants.torch_weights(case)["weight_hh_l0"]
    assert not numpy.array_equal(recurrent, train_networks.weights(case)[1])
    assert numpy.array_equal(train_networks.onnx_order(case, recurrent), train_networks.weights(case)[1])


def test_the_page_says_which_goals_are_met_and_which_the_peak_forbids():
    lstm, small = train_cases.CASES["lstm_800_t50_b32"], train_cases.CASES["gru_128_t50_b32"]
    seconds = train_cases.flops(lstm) / 400e9
    values = train_cases.saved_bytes(lstm) + train_cases.loss_bytes(lstm)
    rows = [train_page.Row(lstm, 2, {"rnncc": seconds, "torch": seconds / 0.7, "cells": 3 * seconds}, {"rnncc": 0.001},
                           {"torch": 0.7, "cells": 1 / 3}, 250.0, values),
            train_page.Row(lstm, 1, {"rnncc": seconds, "torch": seconds / 0.9, "written": 2 * seconds}, {"rnncc": 0.001},
                           {"torch": 0.9, "written": 0.5}, 450.0, 2 * values),
            train_page.Row(small, 1, {"rnncc": 0.01}, {"rnncc": 0.001}, {}, 250.0, 1)]
    page = train_page.page(rows, "tools/bench train", "a machine", "2", "wall")
    assert "| 0.70 | 0.56 | 0.60 | no | 0.33 | 0.27 | 0.35 | yes |" in page
    assert "| 0.90 | 0.80 | 0.60 | no: beyond the peak | 0.50 | 0.44 | 0.35 | no: beyond the peak |" in page
    assert "| 400 | 500 | 80% | 70% | yes |" in page
    assert "| 1.00 | 1.10 | yes |" in page and "| 2.00 | 1.10 | no |" in page
    assert "`tools/bench train` on a machine: " in page
    assert "CPU time" not in page and "CPU time" in train_page.page(rows, "c", "a machine", "2", "cpu")


@pytest.mark.parametrize("name", train_cases.CASES)
def test_a_step_works_in_little_more_memory_than_is_saved(name, rnncc, tmp_path):
    """Packed weights, a quarter of what the LSTM saves, are where their gradients will be."""
    case = train_cases.CASES[name]
    plan = rnncc("inspect", train_networks.layer_model(case).write(tmp_path), "--train", "--threads=2").stdout
    context = int(re.search(r"^arena +(\d+) bytes", plan, re.MULTILINE)[1])
    assert context <= train_cases.WORKSPACE * (train_cases.saved_bytes(case) + train_cases.loss_bytes(case))
