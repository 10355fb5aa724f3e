# SPDX-License-Identifier: MIT
"""tools/bench weights: its command line, and what it times."""
import sys

import numpy
import pytest
from conftest import ROOT
from support.bench import assert_refused, listed

sys.path.insert(0, str(ROOT / "tools"))

from benchmarks import weights_run  # noqa: E402


def test_cases_are_listed():
    assert listed("weights") == list(weights_run.CASES)
    assert listed("weights", "gru*") == ["gru_1024", "gru_256"]


@pytest.mark.parametrize("words, told", [(["rnn"], "rnn"), (["--rounds", "0"], "--rounds")])
def test_what_is_no_case_or_count_is_refused(words, told):
    assert_refused("weights", *words, told=told)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_copy_has_every_byte(monkeypatch, threads):
    made, real = [], numpy.zeros_like
    monkeypatch.setattr(numpy, "zeros_like", lambda array: made.append(real(array)) or made[-1])
    arrays = [numpy.arange(1001.0), numpy.arange(7.0)]
    weights_run.copier(arrays, threads)()
    assert all(numpy.array_equal(a, b) for a, b in zip(arrays, made))
