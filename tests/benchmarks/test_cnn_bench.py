# SPDX-License-Identifier: MIT
"""tools/bench cnn but for its measuring: no time is judged here. OpenVINO and ncnn are in the other venv only."""
import copy
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import ROOT, build_directory

os.environ.setdefault("RNNCC_BUILD", str(build_directory()))
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "models")]

from benchmarks import arguments, cnn_job, cnn_report, contestants, layers, measure, report, run  # noqa: E402
from benchmarks.cnn_cases import CASES, QUICK, case_named  # noqa: E402
from networks import NETWORKS  # noqa: E402


def test_every_network_is_a_case_by_its_name():
    assert {case.name for case in CASES} == NETWORKS.keys() and set(QUICK) < NETWORKS.keys()
    for case in CASES:
        assert case_named(case.name) is case


def test_a_batch_is_a_case_that_is_not_judged():
    case = case_named("resnet50_b4")
    assert (case.network, case.B, case.at_most, case.name) == ("resnet50", 4, None, "resnet50_b4")
    assert case_named("ssd_resnet50_b2").without == case_named("ssd_resnet50").without
    assert [case_named(name) for name in ("resnet51", "resnet50_b1", "resnet50_b0", "resnet50_x")] == [None] * 4


def test_list_prints_the_cases_that_patterns_choose():
    done = subprocess.run([ROOT / "tools" / "bench", "cnn", "--case", "vgg1[69]", "--list"], capture_output=True,
                          text=True, timeout=60)
    assert (done.returncode, done.stdout.split()) == (0, ["vgg16", "vgg19"])


@pytest.fixture(scope="module")
def squeezenet(tmp_path_factory, rnncc):
    """Its folder, with the model's files and the module."""
    folder = tmp_path_factory.mktemp("squeezenet")
    model = cnn_job.write_model(case_named("squeezenet"), folder, ["rnncc", "onnxruntime"])
    done = rnncc(model, "-o", folder / "module.so")
    assert done.returncode == 0, done.stderr
    return folder


def test_a_network_is_compiled_with_records_and_without():
    given = arguments.parse(["cnn", "--rnncc=--target=x86-64-v3 --schedules=mine.jsonl"])
    assert run.contestants_of(given) == ["rnncc", "untuned", "onnxruntime", "openvino", "ncnn"]
    assert run.modules_of(given) == {"module.so": ["--target=x86-64-v3", "--schedules=mine.jsonl"],
                                     "untuned.so": ["--target=x86-64-v3", "--schedules=mine.jsonl", "--schedules=none"]}
    given = arguments.parse(["cnn", "--without=untuned", "--without=openvino"])
    assert run.contestants_of(given) == ["rnncc", "onnxruntime", "ncnn"]
    assert list(run.modules_of(given)) == ["module.so"]
    assert run.contestants_of(arguments.parse(["rnn"])) == ["rnncc", "onnxruntime", "openvino", "torch"]


def test_the_untuned_module_takes_turns_with_the_tuned_one_on_the_most_threads(squeezenet):
    shutil.copy(squeezenet / "module.so", squeezenet / "untuned.so")
    job = cnn_job.CnnJob(case_named("squeezenet"), squeezenet)
    found = measure.measure(job, {"contestants": ["rnncc", "untuned"], "threads": [1, 2], "rounds": 3, "seconds": 0.1})
    tuned, untuned = found["contestants"].values()
    assert (list(tuned["by_threads"]), list(untuned["by_threads"])) == ([1, 2], [2])
    assert "start_seconds" in tuned and "start_seconds" not in untuned
    assert untuned["threads"] == 2 and len(untuned["turn_medians"]) == 3 and untuned["to_tuned"] > 0


def test_the_untuned_ratio_is_of_turns_of_one_round_and_one_thread_count():
    seconds = {("rnncc", 1): [[1.0], [1.0], [1.0]], ("rnncc", 2): [[2.0], [4.0], [4.0, 4.0, 9.0]],
               ("untuned", 2): [[3.0], [6.0], [4.0]]}
    assert measure.to_tuned({key: SimpleNamespace(seconds=each) for key, each in seconds.items()}, 2) == 1.5


def test_the_c_loops_run_a_network_and_onnx_runtime(squeezenet):
    job = cnn_job.CnnJob(case_named("squeezenet"), squeezenet)
    runners = {(name, 2): contestants.CONTESTANTS[name]().open(job, 2) for name in ("rnncc", "onnxruntime")}
    errors = measure.check(job, job.reference(), runners)
    assert errors.keys() == {"rnncc", "onnxruntime"} and max(errors.values()) < cnn_job.BOUND
    for runner in runners.values():
        runner.close()


def test_facts_are_those_of_the_network_and_of_its_module(squeezenet):
    facts = cnn_job.module_facts(squeezenet)
    assert (facts["image"], facts["outputs"]) == ([1, 3, 224, 224], {"probabilities": [1, 1000]})
    assert facts["weight_bytes"] == 4 * 1235496
    assert 0 < facts["multiply_adds_3x3"] < facts["multiply_adds"] == pytest.approx(0.349e9, rel=0.01)
    assert facts["weight_bytes"] <= facts["packed_bytes"] < facts["module_bytes"] and facts["arena_bytes"] > 0


@pytest.mark.parametrize("change", [lambda y: y + 2e-4 * y.max(), lambda y: y[:, ::-1], lambda y: y * np.nan],
                         ids=["offset", "reversed", "nan"])
def test_an_output_that_disagrees_ends_the_case(change, squeezenet):
    job = cnn_job.CnnJob(case_named("squeezenet"), squeezenet)
    expected = {"probabilities": np.random.default_rng(1).uniform(0, 1, (1, 1000))}

    class Fake:
        def run(self):
            return {name: change(values) for name, values in expected.items()}

    with pytest.raises(measure.Disagreement, match="ncnn"):
        measure.check(job, expected, {("ncnn", 1): Fake()})


# What is reported


def contestant(milliseconds, **more):
    return {"median_seconds": milliseconds * 1e-3, "threads": 2, "error": 1e-7, "version": "1.0",
            "turn_medians": [milliseconds * 1e-3] * 3, "start_seconds": 0.05, "bytes_beyond_weights": 12 << 20,
            "by_threads": {"1": milliseconds * 1.8e-3, "2": milliseconds * 1e-3}, **more}


READ = [{"bytes": 1 << log, "forward": gbps, "alternating": gbps} for log, gbps in ((20, 80.0), (25, 20.0))]
RESULTS = {
    "date": "today", "command": "tools/bench cnn",
    "machine": {"cpu": "CPU", "cpus": 2, "caches": ["L2 1M"], "system": "Linux", "isa": "avx2",
                "cores": [{"threads": n, "gflops": 100.0, "read": READ} for n in (1, 2)]},
    "cases": [{"case": "resnet18", "rounds": 3, "bound": 1e-4, "multiply_adds": 2_000_000_000,
               "multiply_adds_3x3": 1_600_000_000, "weight_bytes": 40 << 20, "packed_bytes": 44 << 20,
               "arena_bytes": 3 << 20, "module_bytes": (44 << 20) + (1 << 19), "compile_seconds": 7.0,
               "limits": {"computing_seconds": 8e-3, "reading_seconds": 6e-3, "least_seconds": 12e-3},
               "contestants": {"rnncc": contestant(30.0), "onnxruntime": contestant(50.0)}}]}


@pytest.fixture
def row():
    """row(begins) -> the cells of the page's row that begins so, n-th from the top."""
    lines = cnn_report.page(RESULTS).splitlines()

    def cells(number):
        return [line for line in lines if line.startswith("| ResNet-18 |")][number].split(" | ")[1:]

    return cells


def test_a_peer_that_does_not_run_a_network_has_no_figures_there():
    results = copy.deepcopy(RESULTS)
    lacking = {**results["cases"][0], "case": "ssd_resnet50"}
    results["cases"][0]["contestants"] = {**lacking["contestants"], "ncnn": contestant(60.0)}
    results["cases"].append(lacking)
    rows = [line.split(" | ")[1:] for line in cnn_report.page(results).splitlines() if line.startswith("| SSD-ResNet")]
    assert rows[0][:3] == ["30.00 (2)", "50.00 (2)", "-"]
    words = cnn_report.line(lacking, ["rnncc", "onnxruntime", "ncnn"]).split()
    assert words[1:7] == ["30.00", "(2)", "50.00", "(2)", "-", "0.600"]


def test_the_ratio_is_of_the_best_peer(row):
    assert row(0) == ["30.00 (2)", "50.00 (2)", "0.600", "0.600", "0.60", "yes |"]


UNTUNED = {key: value for key, value in contestant(33.0, to_tuned=1.09, by_threads={"2": 33e-3}).items()
           if key not in ("start_seconds", "bytes_beyond_weights")}


def test_the_untuned_module_is_beside_the_tuned_one_and_is_no_peer(row):
    results = copy.deepcopy(RESULTS)
    found = results["cases"][0]["contestants"]
    results["cases"][0]["contestants"] = {"rnncc": found["rnncc"], "untuned": UNTUNED, **found}
    found["untuned"] = {**UNTUNED, "median_seconds": 1e-3}
    assert report.best_peer(results["cases"][0]) == ("onnxruntime", 50e-3)
    page = cnn_report.page(results)
    rows = [line.split(" | ")[1:] for line in page.splitlines() if line.startswith("| ResNet-18 |")]
    assert rows[0] == ["30.00 (2)", "33.00 (2)", "50.00 (2)", "0.600", "0.600", "0.60", "yes", "1.090 |"]
    assert rows[1:6] == [row(k) for k in range(1, 6)] and "--schedules=none" in page
    assert "--schedules=none" not in cnn_report.page(RESULTS)


def test_the_chart_shows_the_untuned_module_where_there_is_one(tmp_path):
    results = copy.deepcopy(RESULTS)
    results["cases"].append(copy.deepcopy(results["cases"][0]))
    results["cases"][1]["contestants"]["untuned"] = UNTUNED
    for shown, cases in ((True, results["cases"]), (False, results["cases"][:1])):
        cnn_report.write({**results, "cases": cases}, tmp_path)
        drawn = (tmp_path / "cnn.svg").read_text()
        assert (">rnncc untuned<" in drawn) == shown and ">rnncc<" in drawn and ">ONNX Runtime<" in drawn


def test_limits_are_the_multiply_adds_at_the_peak_of_all_cores(row):
    """2 GMAC at 200 GFLOP/s: 20 ms."""
    assert row(1) == ["2.00", "80%", "133", "67%", "20.00", "0.40 |"]


def test_the_limit_of_the_layers_is_beside_what_a_ratio_would_take(row):
    assert row(2) == ["8.00", "6.00", "12.00", "40%", "0.24", "0.60", "met |"]
    slow = {**RESULTS["cases"][0], "contestants": {"rnncc": contestant(40.0), "onnxruntime": contestant(50.0)}}
    assert cnn_report.reach(slow) == "40% of the limit"
    slow["contestants"]["onnxruntime"] = contestant(19.0)
    assert cnn_report.reach(slow) == "more than the limit allows"


def test_a_layer_takes_the_multiply_adds_of_its_algorithm_or_the_reading_of_its_weights():
    """F(4x4,3x3) on 14x14: 16 tiles of 36 points. The other kernels: a weight is used once a pixel."""
    direct = 2 * 9 * 256 * 256 * 14 * 14
    winograd = layers.work("k1_conv_winograd winograd4x4_3x3_oc2t8b16_groups_c256o256_14x14", direct, 1)
    assert winograd == (36 * 16 * 256 * 256, 36 * 256 * 256)
    assert layers.work("k2_conv_direct direct_oc2px14u2_tiles8_3x3s1c256o256g1_14x14", direct, 1) == (
        direct / 2, 9 * 256 * 256)
    assert layers.work("k3_conv_depthwise depthwise_3x3s2_14x14c192_px14", 2 * 9 * 192 * 196, 1) == (
        9 * 192 * 196, 9 * 192)
    assert layers.work("k4_gemm_packed n1000k512_v3r1", 2 * 512000, 1) == (512000, 512000)
    assert layers.work("k5_pool_blocked", 3e6, 1) == (0, 0)
    limits = layers.limits([(4e8, 1e5), (1e5, 2e7)], RESULTS["machine"])
    assert limits == pytest.approx({"computing_seconds": 4.001e-3, "reading_seconds": 2.01e-3, "least_seconds": 6e-3})


def test_layers_of_a_module_have_its_multiply_adds_and_weights(squeezenet):
    facts, works = cnn_job.module_facts(squeezenet), layers.works_of(squeezenet / "module.so", 1)
    macs, weights = (sum(values) for values in zip(*works))
    assert facts["multiply_adds"] - facts["multiply_adds_3x3"] < macs < facts["multiply_adds"]
    assert 0.9 * facts["packed_bytes"] < 4 * weights < facts["packed_bytes"]


def test_scaling_is_the_time_on_the_fewest_threads_over_that_on_the_most(row):
    assert row(3) == ["54.00", "30.00", "1.80", "90.00", "50.00", "1.80 |"]


def test_what_is_resident_beyond_weights_and_arena_is_shown(row):
    """12 MiB beyond the model's 40: 5 beyond 44 of packed weights and an arena of 3."""
    assert row(5) == ["7.0", "20.00", "40.00", "44.00", "3.00", "5.00", "0.50 |"]


def test_without_peers_there_is_a_page_without_ratios():
    alone = copy.deepcopy(RESULTS)
    del alone["cases"][0]["contestants"]["onnxruntime"]
    assert "30.00 (2) | - | - | 0.60 | - |" in cnn_report.page(alone)
