# SPDX-License-Identifier: MIT
"""tools/bench exported: its command line and its page. What it exports is tested in tests/pytorch."""
import sys

import pytest
from conftest import ROOT
from support.bench import assert_refused, listed

sys.path.insert(0, str(ROOT / "tools"))

from benchmarks import exported_run  # noqa: E402


def test_the_networks_of_the_tests_are_listed():
    cases = listed("exported")
    assert {"crnn", "u_net", "wavenet_step", "conformer", "vision_transformer"} < set(cases)
    assert len(cases) == len(set(cases)) >= 40
    assert listed("exported", "u_net", "crnn") == ["u_net", "crnn"]


@pytest.mark.parametrize("words, told", [(["unet"], "found unet"), (["--threads", "two"], "invalid int value")])
def test_a_network_that_is_not_there_is_refused(words, told):
    assert_refused("exported", *words, told=told)


def test_the_page_has_each_network_the_mean_and_the_worst():
    rows = [exported_run.Row("a", "script", 10.0, 40.0, 0.25), exported_run.Row("b", "dynamo", 8.0, 8.0, 1.0)]
    page = exported_run.page(rows, 2, "a machine", {"PyTorch": "1", "peer": "2"})
    assert "| a | script | 10.0 | 40.0 | 0.25 |" in page and "mean of the ratios: 0.50; the largest: 1.00." in page
    assert "a machine, 2 threads" in page and "PyTorch 1, peer 2" in page


def test_both_exporters_are_those_of_the_tests():
    modules = (ROOT / "tests" / "pytorch" / "modules.py").read_text()
    assert f"EXPORTERS = {str(exported_run.EXPORTERS).replace(chr(39), chr(34))}" in modules
