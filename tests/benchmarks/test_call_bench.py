# SPDX-License-Identifier: MIT
"""tools/bench call: its command line, and its networks."""
import sys

import numpy
import pytest
from conftest import ROOT
from support.bench import assert_refused, listed

sys.path.insert(0, str(ROOT / "tools"))

from benchmarks import call_run  # noqa: E402


def test_cases_are_listed():
    assert listed("call") == ["one", "two", "four"] and listed("call", "t*") == ["two"]


@pytest.mark.parametrize("words, told", [(["three"], "three"), (["--rounds", "0"], "--rounds")])
def test_what_is_no_case_or_count_is_refused(words, told):
    assert_refused("call", *words, told=told)


def test_a_network_adds_one_to_each_input(compile, tmp_path):
    from support.module import rnncc
    model, feeds = call_run.model_of(4)
    with rnncc.load(compile(model.write(tmp_path)), threads=1) as module:
        assert all(numpy.array_equal(y, x + 1) for y, x in zip(module(*feeds.values()), feeds.values()))
