# SPDX-License-Identifier: MIT
"""tools/bench ablation except its measurements: no time is judged here."""
import copy
import json
import os
import shutil
import sys

import numpy as np
import pytest
from conftest import ROOT, build_directory

os.environ.setdefault("RNNCC_BUILD", str(build_directory()))
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "models")]

from benchmarks import ablation_report, arguments, cnn_job, environment, measure, report, run  # noqa: E402
from benchmarks.ablation_cases import BASELINE, CASES, NETWORKS, STEPS, recorded  # noqa: E402
from benchmarks.cnn_cases import case_named  # noqa: E402
from support.bench import assert_refused  # noqa: E402
from support.model_builder import Model  # noqa: E402


# The command line


def test_the_networks_are_cases_in_the_order_of_the_paper():
    assert tuple(case.name for case in CASES) == NETWORKS
    assert arguments.parse(["ablation"]).cases == CASES
    given = arguments.parse(["ablation", "densenet*", "resnet50", "--threads", "2"])
    assert ([case.name for case in given.cases], given.threads) == (["resnet50", "densenet201"], [2])


@pytest.mark.parametrize("words", [["resnet51"], ["--threads", "0"], ["--threads", "1,2"], ["--quick"],
                                   ["--without=openvino"]])
def test_a_bad_argument_is_named_before_anything_is_set_up(words):
    assert_refused("ablation", *words, told=words[-1])


def test_it_needs_no_peer():
    text = environment.REQUIREMENTS.read_text()
    wanted = {pin.split("==")[0] for pin in environment.wanted_packages(text, "ablation", [])}
    assert {"numpy", "onnx", "matplotlib"} <= wanted and not wanted & {"onnxruntime", "openvino", "torch", "ncnn"}


def test_each_step_is_a_module_and_only_the_last_is_tuned():
    modules = run.modules_of(arguments.parse(["ablation", "--schedules", "mine.jsonl", "--target=x86-64-v3",
                                            "--rnncc=-v"]))
    assert list(modules) == [f"{step.name}.so" for step in STEPS]
    assert all(options[-3:] == ["--target=x86-64-v3", "--machine=native", "-v"] for options in modules.values())
    *others, last = modules.values()
    assert "--schedules=mine.jsonl" in last and all("--schedules=none" in options for options in others)
    assert [("--no-winograd" in options) for options in modules.values()] == [True] * 4 + [False] * 2


def test_a_page_in_the_tree_is_of_all_networks_and_the_default_schedules():
    for words in (["resnet50"], ["--schedules", "mine.jsonl"], ["--rnncc=-v"]):
        assert not run.is_full(arguments.parse(["ablation", *words]))
    assert run.is_full(arguments.parse(["ablation"])) and run.HERE == ROOT / "tools" / "benchmarks"


# Computations


def small_network(scale):
    rng, model = np.random.default_rng(1), Model()
    image = model.input("image", "f32", [1, 3, 9, 9])
    weights = rng.standard_normal((20, 3, 3, 3)).astype(np.float32) * scale
    model.output(model.node("Flatten", [model.node("Conv", [image, model.constant(weights)])], "y"))
    return model


@pytest.fixture
def folder(tmp_path, compile):
    """plain.so and blocked.so, of one network, and wrong.so, whose weights are 0.1% off."""
    for name, scale, option in (("plain", 1, "--conv=plain"), ("blocked", 1, "--conv=direct"), ("wrong", 1.001, "")):
        (tmp_path / name).mkdir()
        made = compile(small_network(np.float32(scale)).write(tmp_path / name), *filter(None, [option]))
        shutil.copy(made, tmp_path / f"{name}.so")
    facts = {"image": [1, 3, 9, 9], "outputs": {"y": [1, 980]}, "weight_bytes": 0}
    (tmp_path / "facts.json").write_text(json.dumps(facts))
    return tmp_path


def measured(folder, *names):
    job = cnn_job.CnnJob(case_named("resnet50"), folder)
    return measure.measure_steps(job, {"contestants": names, "threads": [2], "rounds": 4, "seconds": 0.01})


def test_modules_of_one_network_are_measured_in_turns(folder):
    result = measured(folder, "plain", "blocked")
    found = result["contestants"]
    assert (list(found), result["rounds"], result["threads"]) == (["plain", "blocked"], 3, 2)
    assert found["plain"]["error"] == 0 and 0 <= found["blocked"]["error"] < 1e-6
    assert all(len(step["turn_medians"]) == 3 and min(step["turn_medians"]) > 0 for step in found.values())


def test_a_module_that_computes_something_else_ends_the_case(folder):
    with pytest.raises(measure.Disagreement, match="wrong"):
        measured(folder, "plain", "wrong")


# Reports


def results(*milliseconds):
    """Results of two networks on which the steps take these times in the first round, twice in the second and third."""
    found = {step.name: {"median_seconds": 2e-3 * each, "error": 2e-7 * (step.name != BASELINE),
                         "turn_medians": [1e-3 * each, 2e-3 * each, 2e-3 * each]}
             for step, each in zip(STEPS, milliseconds)}
    cases = [{"case": name, "rounds": 3, "bound": 1e-4, "threads": 2, "multiply_adds": 4e9, "recorded": [50, 53],
              "contestants": found} for name in ("resnet50", "vgg19")]
    return {"date": "today", "command": "tools/bench ablation", "cases": cases,
            "machine": {"cpu": "CPU", "cpus": 2, "caches": ["L2 1M"], "system": "Linux", "isa": "avx2",
                        "cores": [{"threads": 2, "gflops": 100.0}]}}


RESULTS = results(60, 50, 40, 30, 20, 10)


def rows(page, first):
    return [line for line in page.splitlines() if line.startswith(f"| {first} |")]


def test_speed_ups_are_over_plain_and_of_a_step_over_the_one_before():
    page = ablation_report.page(RESULTS)
    assert rows(page, "plain NCHW")[0] == "| plain NCHW | 1 | 1 |"
    assert rows(page, "global search")[0] == "| global search | 2.00 (2.00 to 2.00) | 2.00 (2.00 to 2.00) |"
    assert rows(page, "global search")[1] == "| global search | 1.33 | 1.33 |"
    assert rows(page, "tuning")[2] == "| tuning | 20.00 | 20.00 |"
    assert rows(page, "blocked convolutions")[3] == "| blocked convolutions | 2.0e-07 | 2.0e-07 |"


def test_the_last_step_is_called_tuning_where_there_are_records():
    assert "`rnncc tune` for: ResNet-50 50 of 53; VGG-19 50 of 53." in ablation_report.page(RESULTS)
    untuned = copy.deepcopy(RESULTS)
    untuned["cases"][0]["recorded"] = [0, 53]
    assert rows(ablation_report.page(untuned), "tuning")
    untuned["cases"][1]["recorded"] = [0, 16]
    page = ablation_report.page(untuned)
    assert len(rows(page, "tuning, but no records")) == 4 and not rows(page, "tuning")


def test_recorded_and_predicted_choices_are_distinguished(tmp_path, rnncc):
    """26 convolutions; all that are like a certain one get a record."""
    model = cnn_job.write_model(case_named("squeezenet"), tmp_path, ["rnncc"])
    without = rnncc("inspect", model, "--explain=conv", "-v", "--schedules=none").stdout
    assert recorded(without) == [0, 26]
    both = without.replace("the least predicted time", "measured, 12.5 us", 1)
    first = without.splitlines()[0]
    assert recorded(both) == [first.count(", ") + 1, 26]


def test_a_round_that_disturbs_one_step_moves_a_quartile_and_not_the_speed_up():
    disturbed = copy.deepcopy(RESULTS)
    disturbed["cases"][0]["contestants"]["tuned"]["turn_medians"][1] *= 2
    assert ablation_report.speed_up(disturbed["cases"][0], "tuned") == pytest.approx((4.5, 6, 6))


def test_the_baseline_is_reported_as_a_part_of_the_peak():
    """8 GFLOP in 120 ms, of 200 GFLOP/s."""
    assert rows(ablation_report.page(RESULTS), "ResNet-50") == ["| ResNet-50 | 4.00 | 67 | 33% |"]


def test_the_page_names_each_steps_options():
    page = ablation_report.page(RESULTS)
    for step in STEPS:
        assert f"* {step.title}: {step.what} (`{' '.join(step.command_options(None))}`)" in page


def test_the_drawing_has_a_bar_for_each_step_of_each_network(tmp_path):
    ablation_report.write(RESULTS, tmp_path)
    drawn = (tmp_path / "ablation.avx2.svg").read_text()
    texts = [step.title for step in STEPS[1:]] + ["ResNet-50", "VGG-19", "speed-up over plain NCHW (= 1)", "NeoCPU"]
    assert all(text in drawn for text in texts)
    assert all(drawn.count(f">{value}<") == 2 for value in ("1.20", "1.50", "2.00", "3.00", "6.00"))
    assert len(json.loads((tmp_path / "ablation_results.avx2.json").read_text())["cases"]) == 2


@pytest.mark.parametrize("networks", [1, 2, 5])
def test_no_word_of_the_drawing_is_cut_off(networks, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(report, "save", lambda figure, path: drawn.append(figure))
    cases = [{**RESULTS["cases"][0], "case": name, "recorded": [0, 53]} for name in NETWORKS[:networks]]
    ablation_report.chart({**RESULTS, "cases": cases, "date": "2026-11-22 03:08 UTC"}, tmp_path / "ablation.svg")
    (figure,) = drawn
    figure.draw_without_rendering()
    for words in (figure.legends[0], figure._supxlabel, *figure.axes[0].get_xticklabels(), *figure.axes[0].texts):
        box = words.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1 and 0 <= box.y0 < box.y1 <= figure.bbox.y1, words
