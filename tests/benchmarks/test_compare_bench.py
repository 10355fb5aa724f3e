# SPDX-License-Identifier: MIT
"""tools/bench compare except its measurements: no time is judged here."""
import os
import sys
from types import SimpleNamespace

import pytest
from conftest import ROOT, build_directory
from support.bench import assert_refused

os.environ.setdefault("RNNCC_BUILD", str(build_directory()))
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "models")]

from benchmarks import arguments, compare_report, environment, measure, run  # noqa: E402
from benchmarks.cases import CASES as RNN_CASES  # noqa: E402
from benchmarks.cnn_cases import CASES as CNN_CASES  # noqa: E402

OTHER = sys.executable  # any program


def test_all_recurrent_cases_and_networks_are_compared():
    given = arguments.parse(["compare", OTHER])
    assert given.cases == RNN_CASES + CNN_CASES and len(given.threads) == 1
    chosen = arguments.parse(["compare", OTHER, "--case", "lstm_256", "--case", "vgg1?", "--threads", "1"])
    assert [case.name for case in chosen.cases] == ["lstm_256", "vgg11", "vgg13", "vgg16", "vgg19"]
    assert chosen.threads == [1]


@pytest.mark.parametrize("words", [["missing/rnncc"], [OTHER, "--case", "resnet51"], [OTHER, "--threads", "1,2"]])
def test_a_bad_argument_is_named_before_anything_is_set_up(words):
    assert_refused("compare", *words, told=words[-1])


def test_the_other_compiler_makes_the_module_before():
    given = arguments.parse(["compare", OTHER, "--target=x86-64-v3", "--rnncc=--schedules=none"])
    modules = run.modules_of(given)
    assert {name: str(run.compiler_of(name, given)) for name in modules} == {"before.so": OTHER,
                                                                            "after.so": str(run.RNNCC)}
    expected = ["--target=x86-64-v3", "--machine=native", "--schedules=none"]
    assert all(options == expected for options in modules.values())


def test_a_page_is_never_written_to_the_tree():
    given = arguments.parse(["compare", OTHER])
    assert run.output_folder(given) == environment.BUILD / "bench" and not run.is_full(given)


@pytest.fixture
def folder(tmp_path, rnncc):
    """before.so and after.so of a small recurrent case, the latter with another schedule."""
    case = measure.any_case_named("gru_8_t3_b2")
    given = SimpleNamespace(what="compare", target=None, rnncc=[], other=run.RNNCC)
    model, seconds = run.prepare(case, tmp_path, given, compare_report.COMPILERS)
    assert len(seconds) == 2 and min(seconds) > 0
    assert rnncc(model, "-o", tmp_path / "after.so", "--rnn=input=step").returncode == 0
    return tmp_path


def test_two_modules_are_measured_in_pairs_and_their_outputs_compared(folder):
    job = measure.any_job(measure.any_case_named("gru_8_t3_b2"), folder)
    result = measure.measure_pair(job, {"contestants": compare_report.COMPILERS, "threads": [1], "rounds": 3,
                                        "seconds": 0.01})
    found = result["contestants"]
    assert list(found) == ["before", "after"] and found["before"]["error"] == 0 and found["after"]["error"] < 1e-5
    assert result["ratio"] > 0 and all(len(each["turn_medians"]) == 6 for each in found.values())


def result(case, ratio, before, after):
    times = {"before": {"median_seconds": 1e-3}, "after": {"median_seconds": ratio * 1e-3}}
    return {"case": case, "ratio": ratio, "threads": 2, "contestants": times, "compile_seconds": [before, after]}


def test_the_page_says_the_mean_the_extremes_and_the_time_of_compiling(tmp_path):
    machine = {"cpu": "CPU", "cpus": 2, "caches": ["L2 1M"], "system": "Linux", "isa": "avx2"}
    cases = [result("lstm_256", 0.5, 1, 1), result("vgg11", 2.0, 3, 1)]
    compare_report.write({"date": "today", "command": "tools/bench compare", "machine": machine, "cases": cases}, tmp_path)
    page = (tmp_path / compare_report.PAGE_FILE).read_text()
    assert "Instruction set: AVX2" in page
    assert "geometric mean 1.000, least 0.500, most 2.000, of 2 cases" in page
    assert "all cases together: 0.500" in page
    assert "| vgg11 | 1.00 | 2.00 | 2.000 | 3.00 1.00 |" in page
