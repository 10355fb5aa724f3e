# SPDX-License-Identifier: MIT
"""rnnrun profile --html: one page that is well-formed, loads nothing, and has every kernel with the numbers of the profile."""
import os
import shutil
import subprocess

import numpy
import pytest

from conftest import ROOT, build_directory
from support.amount import long_tests
from support.model_builder import Model
from support.report_page import Page

HOSTILE = '</script><b>"&\'\x1b]0;x\x07 ü ]]> -->'
FAKE = build_directory() / "tests" / "modules" / "fake_module.so"
COUNTERS = ["cycles", "instructions", "branch misses", "L1 data cache read misses", "last-level cache misses",
            "nanoseconds on CPUs", "context switches", "page faults"]
REFUSALS = ("not allowed: /proc/sys/kernel/perf_event_paranoid", "not on this machine")
BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium")


def network(name="net"):
    model = Model(name)
    model.dim("N", 1, 2, 4)
    x = model.input("x", "f32", ["N", 3, 16, 16])
    y = model.node("Relu", [model.node("Conv", [x, model.constant(numpy.zeros((32, 3, 3, 3), numpy.float32))])])
    y = model.node("Conv", [y, model.constant(numpy.zeros((16, 32, 1, 1), numpy.float32))])
    model.nodes[-1]["name"] = HOSTILE
    model.output(model.node("Softmax", [model.node("Flatten", [y])]))
    return model


@pytest.fixture(scope="module")
def module(compile, tmp_path_factory):
    return compile(network().write(tmp_path_factory.mktemp("report")))


def report(rnnrun, module, tmp_path, *options, **how):
    done = rnnrun("profile", module, "--runs", 3, "--html", tmp_path / "report.html", *options, **how)
    assert done.returncode == 0, done.stderr
    return Page(tmp_path / "report.html"), [line.split(None, 6) for line in done.stdout.splitlines()[1:]]


def test_a_page_is_well_formed_and_loads_nothing(rnnrun, module, tmp_path):
    page, _ = report(rnnrun, module, tmp_path)
    page.has_no_references()
    assert [h.text for h in page.all("h2")] == ["Roofline", "Time by worker", "Graph", "Memory plan", "Kernels", "Counters"]


def test_a_page_has_the_rows_that_the_verb_prints(rnnrun, module, tmp_path):
    """Numbers are those of the same runs."""
    page, printed = report(rnnrun, module, tmp_path, "--threads", 2)
    rows = page.rows("kernels")
    assert len(rows) == len(printed) - 1 >= 3
    for i, (row, line) in enumerate(zip(rows, printed)):
        median, mean, part, gflops, gbps, peak = line[:6]
        assert [row[0], *row[2:5], *row[6:9]] == [str(i), median, mean, part, gflops, gbps, peak]
        assert row[9] + "  " + row[1] == line[6] or "\x1b" in HOSTILE and "script" in row[1]
    assert any(row[1] == HOSTILE.replace("\x1b", "?").replace("\x07", "?") for row in rows)


def test_a_pages_data_are_the_runs_and_the_plan(rnnrun, module, tmp_path):
    page, _ = report(rnnrun, module, tmp_path, "--threads", 2, "--dim", "N=4")
    data = page.data()
    profile, model = data["profile"], data["model"]
    assert profile["peaks"]["f32"] > 0 and profile["peaks"]["8 bits"] == 0
    assert [it["name"] for it in profile["bandwidths"]] == ["L2 cache", "memory"]
    assert [kernel["node"] for kernel in profile["kernels"]] == [step["node"] for step in model["steps"]]
    assert HOSTILE in [step["node"] for step in model["steps"]]
    convolutions = [kernel for kernel in profile["kernels"] if "conv" in kernel["kernel"]]
    assert [kernel["flops"] for kernel in convolutions] == [2 * 4 * 32 * 14 * 14 * 27, 2 * 4 * 16 * 14 * 14 * 32]
    assert len(profile["spans"]) == 2
    for spans in profile["spans"]:
        assert all(-1 <= entry < len(profile["kernels"]) and begin >= 0 and length >= 0 for entry, begin, length in spans)
    assert [entry for entry, _, _ in profile["spans"][0] if entry >= 0] == list(range(len(profile["kernels"])))
    assert all(spans == [] or len(spans) >= len(profile["kernels"]) for spans in profile["spans"])


def test_a_plans_values_lie_in_the_arena_and_do_not_collide(rnnrun, module, tmp_path):
    page, _ = report(rnnrun, module, tmp_path)
    model = page.data()["model"]
    values = {value["id"]: value for value in model["values"]}
    for step in model["steps"]:
        assert all(i in values for i in step["reads"] + step["writes"]) and step["writes"]
    arena = [value for value in model["values"] if value["where"] == "arena"]
    assert arena and all(0 <= v["at"] and v["at"] + v["bytes"] <= model["arena"] for v in arena)
    for a in arena:
        for b in arena:
            together = a["first"] <= b["last"] and b["first"] <= a["last"]
            if a["id"] < b["id"] and together and a["last"] != b["first"] and b["last"] != a["first"]:
                assert a["at"] + a["bytes"] <= b["at"] or b["at"] + b["bytes"] <= a["at"], (a, b)


def test_counters_are_there_or_it_says_why_not(rnnrun, module, tmp_path):
    page, _ = report(rnnrun, module, tmp_path)
    rows = page.rows("counters")
    assert [name for name, _ in rows] == COUNTERS
    for _, told in rows:
        assert told in REFUSALS or told == "Device or resource busy" or float(told) >= 0


def test_a_network_of_several_has_its_own_plan(rnncc, rnnrun, tmp_path):
    paths = [network("first").write(tmp_path), network("second").write(tmp_path)]
    done = rnncc("bundle", *(f"{path.stem}={path}" for path in paths), "-o", tmp_path / "both.so")
    assert done.returncode == 0, done.stderr
    page, _ = report(rnnrun, tmp_path / "both.so", tmp_path, "--network", "second")
    assert page.data()["model"]["name"] == "second" and page.all("h1")[0].text == "second"


def test_a_module_without_a_plan_has_a_page_without_its_charts(rnnrun, tmp_path):
    page, _ = report(rnnrun, FAKE, tmp_path)
    page.has_no_references()
    assert page.data()["model"] is None and page.data()["profile"]["spans"] == []
    assert "The module has no plan" in page.text and page.rows("kernels")[0][1] == "y"


def test_a_page_that_cannot_be_written_is_an_error(rnnrun, module, tmp_path):
    done = rnnrun("profile", module, "--runs", 1, "--html", tmp_path / "no" / "report.html")
    assert done.returncode == 5 and "no/report.html" in done.stderr


@pytest.mark.skipif(not long_tests(), reason="a browser is for long tests")
def test_the_pictures_of_pages_can_be_made_anew(tmp_path):
    """PNGs of the size that the script says, with more than one colour."""
    assert BROWSER, "tools/setup test chromium-headless-shell"
    done = subprocess.run([ROOT / "tools" / "pictures", tmp_path], capture_output=True, text=True, check=False,
                          env={**os.environ, "RNNCC_BUILD": str(build_directory())})
    assert done.returncode == 0, done.stderr
    for name in ("profile.png", "plan.png"):
        picture = (tmp_path / name).read_bytes()
        assert picture.startswith(b"\x89PNG") and len(picture) > 30_000
        assert int.from_bytes(picture[16:20], "big") == 1320


@pytest.mark.skipif(not long_tests(), reason="a browser is for long tests")
@pytest.mark.parametrize("options", [(), ("--threads=2",)])
def test_a_browser_draws_all_charts_without_an_error(rnnrun, module, tmp_path, options):
    assert BROWSER, "tools/setup test chromium-headless-shell"
    for of in (module, FAKE):
        page, _ = report(rnnrun, of, tmp_path, *options)
        drawn = subprocess.run([BROWSER, "--no-sandbox", "--enable-logging=stderr", "--v=0", "--dump-dom",
                                f"--user-data-dir={tmp_path / 'browser'}", tmp_path / "report.html"],
                               capture_output=True, text=True, check=True, timeout=120)
        assert "CONSOLE" not in drawn.stderr, drawn.stderr
        charts = ["roofline", "time by worker", "the graph", "the memory plan"] if page.data()["model"] else []
        assert [name for name in charts if f'aria-label="{name}"' not in drawn.stdout] == []
