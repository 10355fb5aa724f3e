# SPDX-License-Identifier: MIT
"""tools/bench width: its command line, its model, and its turns with few runs."""
import sys

import pytest
from conftest import ROOT
from support.bench import assert_refused, listed

sys.path.insert(0, str(ROOT / "tools"))

from benchmarks import width_run  # noqa: E402


def test_the_widths_are_listed():
    assert listed("width") == ["32", "48", "64", "100", "256", "512"]
    assert listed("width", "33") == ["33"]


@pytest.mark.parametrize("width, found", [("31", "found 31"), ("513", "found 513"), ("wide", "invalid int value")])
def test_a_width_beyond_the_reader_is_refused(width, found):
    assert_refused("width", width, told=found)


def test_readers_differ_in_their_width_alone():
    of_any, one = (width_run.reader(width) for width in (None, 40))
    assert of_any.inputs[0]["shape"] == [1, 1, 32, "W"] and one.inputs[0]["shape"] == [1, 1, 32, 40]
    assert [node["op"] for node in of_any.nodes] == [node["op"] for node in one.nodes]
    assert all((of_any.arrays[name] == array).all() for name, array in one.arrays.items())


def test_each_is_first_in_half_of_the_turns(monkeypatch):
    given, order = width_run.parse(["--turns=4", "40"]), []
    monkeypatch.setattr(width_run, "median_us", lambda module, dims, given: order.append(module) or {"any": 3, "40": 2}[module])
    pairs = width_run.turns("any", "40", 40, given)
    assert order == ["any", "40", "40", "any"] * 2 and pairs == [(3, 2)] * 4
    assert width_run.ratio(pairs) == 1.5 and width_run.line(40, pairs).split() == ["40", "3", "2", "1.50"]
