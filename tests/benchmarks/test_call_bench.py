# SPDX-License-Identifier: MIT
"""tools/bench call: its command line, and its networks."""
import subprocess
import sys

import numpy
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))

from benchmarks import call_run  # noqa: E402


def bench(*words):
    return subprocess.run([ROOT / "tools" / "bench", "call", *words], capture_output=True, text=True, timeout=60)


def test_cases_are_listed():
    assert bench("--list").stdout.split() == ["one", "two", "four"] and bench("--list", "t*").stdout.split() == ["two"]


@pytest.mark.parametrize("words, told", [(["three"], "three"), (["--rounds", "0"], "--rounds")])
def test_what_is_no_case_or_count_is_refused(words, told):
    done = bench(*words)
    assert done.returncode == 2 and told in done.stderr


def test_a_network_adds_one_to_each_input(compile, tmp_path):
    from support.module import rnncc
    model, feeds = call_run.model_of(4)
    with rnncc.load(compile(model.write(tmp_path)), threads=1) as module:
        assert all(numpy.array_equal(y, x + 1) for y, x in zip(module(*feeds.values()), feeds.values()))
