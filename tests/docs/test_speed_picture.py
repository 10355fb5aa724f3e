# SPDX-License-Identifier: MIT
"""The picture of README.md is what the results of tools/bench say."""
import json
import sys
import xml.etree.ElementTree

from conftest import ROOT
from support import pages

sys.path.insert(0, str(ROOT / "tools"))
from benchmarks import speed_chart  # noqa: E402 (in that folder)
from benchmarks.environment import OWN  # noqa: E402

FOLDER = ROOT / "tools" / "benchmarks"


def test_it_is_drawn_from_the_results_that_are_there():
    drawn = speed_chart.picture(list(speed_chart.rows()))
    assert (pages.DOCS / "speed.svg").read_text() == drawn, "tools/benchmarks/speed_chart.py draws it anew"


def test_it_has_a_row_for_each_file_that_compares_with_peers_and_a_dot_for_each_case():
    expected = []
    for path in sorted(FOLDER.glob("*results.*.json")):
        cases = json.loads(path.read_text())["cases"]
        if path.name.startswith("ablation"):
            continue
        ratios = [min(one["median_seconds"] for name, one in case["contestants"].items() if name not in OWN)
                  / case["contestants"]["rnncc"]["median_seconds"] for case in cases]
        expected.append((len(ratios), sum(ratio < 1 for ratio in ratios)))
    found = [(len(speeds), sum(speed < 1 for speed in speeds)) for _, speeds in speed_chart.rows()]
    assert sorted(found) == sorted(expected)
    circles = xml.etree.ElementTree.parse(pages.DOCS / "speed.svg").findall(".//{http://www.w3.org/2000/svg}circle")
    assert len(circles) == sum(count for count, _ in expected)
    assert sum(circle.get("fill") == "#c8102e" for circle in circles) == sum(slower for _, slower in expected)


def test_own_contestants_are_those_of_the_benchmarks():
    assert speed_chart.OWN == OWN
