# SPDX-License-Identifier: MIT
"""tools/bench train: its command line, its networks and its page, but for its measuring."""
import re
import sys

import numpy
import pytest
from conftest import ROOT
from support.bench import assert_refused, listed

sys.path[:0] = [str(ROOT / "tools")]

from benchmarks import contestants, environment, train_cases, train_networks, train_page, train_run  # noqa: E402
from benchmarks.cases import Case  # noqa: E402


def test_the_cases_are_listed():
    assert listed("train") == [*train_cases.CASES]
    assert listed("train", "gru_800*") == ["gru_800_t50_b32", "gru_800_t300_b20"]


@pytest.mark.parametrize("words, told", [(["lstm_801"], "lstm_801"), (["--without", "ncnn"], "ncnn"), (["--threads", "0"], "0"),
                                         (["--clock", "sun"], "sun"), (["--continue"], "--record")])
def test_what_is_not_there_is_refused(words, told):
    assert_refused("train", *words, told=told)


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
                           {"torch": 0.7, "cells": 1 / 3}, 250.0, values, "tools/bench train"),
            train_page.Row(lstm, 1, {"rnncc": seconds, "torch": seconds / 0.9, "written": 2 * seconds}, {"rnncc": 0.001},
                           {"torch": 0.9, "written": 0.5}, 450.0, 2 * values, "tools/bench train"),
            train_page.Row(small, 1, {"rnncc": 0.01}, {"rnncc": 0.001}, {}, 250.0, 1, "tools/bench train --turns 3")]
    page = train_page.page(rows, "a machine", "2", "wall")
    assert "| 0.70 | 0.56 | 0.60 | no | 0.33 | 0.27 | 0.35 | yes |" in page
    assert "| 0.90 | 0.80 | 0.60 | no: beyond the peak | 0.50 | 0.44 | 0.35 | no: beyond the peak |" in page
    assert "| 400 | 500 | 80% | 70% | yes |" in page
    assert "| 1.00 | 1.10 | yes |" in page and "| 2.00 | 1.10 | no |" in page
    assert "`tools/bench train`, `tools/bench train --turns 3` on a machine: " in page
    assert "CPU time" not in page and "CPU time" in train_page.page(rows, "a machine", "2", "cpu")


# ---- pages that grow ----

SETTING = {"machine": "a machine", "torch": "2", "clock": "wall"}


@pytest.fixture
def record(monkeypatch, tmp_path):
    """record(words) runs the benchmark, but for measuring: (case, threads) that it measures. The n-th of all takes n
    milliseconds; CUT_OFF of them are measured."""
    made = []

    def measured(case, threads, given, folder):
        if len(made) == record.cut_off:
            raise KeyboardInterrupt
        made.append((case.name, threads))
        return train_page.Row(case, threads, {"rnncc": len(made) / 1000}, {"rnncc": 0.001}, {}, 250.0, 1, given.command)

    def record(*words):
        before = len(made)
        try:
            train_run.run(train_run.parse([*words, "--record", str(record.page)]))
        except KeyboardInterrupt:
            pass
        return made[before:]

    record.page, record.cut_off = tmp_path / "PAGE.md", None
    monkeypatch.setattr(train_run, "measured", measured)
    monkeypatch.setattr(train_run, "setting_of", lambda given: SETTING)
    return record


def peaks(page):
    """The table's rows of the peak: layer and threads."""
    table = page.read_text().split("## Beside the peak")[1].split("##")[0]
    return [line.split(" | ")[:2] for line in table.splitlines() if line.startswith("| ") and "T=" in line]


def test_a_page_keeps_what_it_has_of_other_cases_and_threads_in_order(record):
    assert record("gru_800_t50_b32", "--threads=2") == [("gru_800_t50_b32", 2)]
    record("lstm_800_t50_b32", "--threads=1,2")
    record("gru_800_t50_b32", "--threads=1")
    assert peaks(record.page) == [[f"| {op} T=50 B=32 H=800", n] for op in ("LSTM", "GRU") for n in "12"]
    assert "| LSTM T=50 B=32 H=800 | 2 | 3.00 |" in record.page.read_text()
    record("lstm*_800_t50*", "--threads=2")  # once more: the fifth
    assert "| LSTM T=50 B=32 H=800 | 2 | 5.00 |" in record.page.read_text() and len(peaks(record.page)) == 4


def test_a_page_that_was_cut_off_is_continued(record):
    record.cut_off = 3
    record("*_800_t50*", "--threads=1,2")
    assert len(peaks(record.page)) == 3
    record.cut_off = None
    assert record("*_800_t50*", "--threads=1,2", "--continue") == [("gru_800_t50_b32", 2), ("rnn_800_t50_b32", 1), ("rnn_800_t50_b32", 2)]
    text = record.page.read_text()
    assert len(peaks(record.page)) == 6 and text.count("`tools/bench train") == 1 and "--continue" not in text
    assert record("*_800_t50*", "--continue") == []


@pytest.mark.parametrize("name", SETTING)
def test_rows_of_another_machine_are_not_mixed_in(name, record, monkeypatch):
    record("gru_800_t50_b32")
    before = record.page.read_text()
    monkeypatch.setattr(train_run, "setting_of", lambda given: {**SETTING, name: "other"})
    with pytest.raises(environment.Missing, match=f"{name} {SETTING[name]}, now it is other"):
        record("rnn_800_t50_b32")
    assert record.page.read_text() == before


def test_a_page_without_its_numbers_is_not_overwritten(record):
    record.page.write_text("figures")
    with pytest.raises(environment.Missing, match="PAGE.json"):
        record("gru_800_t50_b32")
    assert record.page.read_text() == "figures"


@pytest.mark.parametrize("name", train_cases.CASES)
def test_a_step_works_in_little_more_memory_than_is_saved(name, rnncc, tmp_path):
    """Packed weights, a quarter of what the LSTM saves, are where their gradients will be."""
    case = train_cases.CASES[name]
    plan = rnncc("inspect", train_networks.layer_model(case).write(tmp_path), "--train", "--threads=2").stdout
    context = int(re.search(r"^arena +(\d+) bytes", plan, re.MULTILINE)[1])
    assert context <= train_cases.WORKSPACE * (train_cases.saved_bytes(case) + train_cases.loss_bytes(case))
