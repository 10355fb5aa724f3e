# SPDX-License-Identifier: MIT
"""tools/bench cnn except its measurements: no time is judged here. OpenVINO and ncnn are only in the other venv."""
import copy
import os
import shutil
import sys

import numpy as np
import pytest
from conftest import ROOT, build_directory

os.environ.setdefault("RNNCC_BUILD", str(build_directory()))
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "models")]

from benchmarks import arguments, cnn_job, cnn_report, contestants, layers, machine, measure, report, run  # noqa: E402
from benchmarks.cnn_cases import CASES, QUICK, case_named  # noqa: E402
from networks import NETWORKS  # noqa: E402
from support.bench import listed  # noqa: E402
from support.model_builder import Model  # noqa: E402


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
    assert listed("cnn", "--case", "vgg1[69]") == ["vgg16", "vgg19"]


@pytest.fixture(scope="module")
def squeezenet(tmp_path_factory, rnncc):
    """The folder of the model's files and the module."""
    folder = tmp_path_factory.mktemp("squeezenet")
    model = cnn_job.write_model(case_named("squeezenet"), folder, ["rnncc", "onnxruntime"])
    done = rnncc(model, "-o", folder / "module.so")
    assert done.returncode == 0, done.stderr
    return folder


def test_a_network_is_compiled_with_records_and_without():
    given = arguments.parse(["cnn", "--target=x86-64-v3", "--rnncc=--schedules=mine.jsonl"])
    assert run.contestants_of(given) == ["rnncc", "untuned", "onnxruntime", "openvino", "ncnn"]
    options = ["--target=x86-64-v3", "--machine=native", "--schedules=mine.jsonl"]
    assert run.modules_of(given) == {"module.so": options, "untuned.so": [*options, "--schedules=none"]}
    given = arguments.parse(["cnn", "--without=untuned", "--without=openvino"])
    assert run.contestants_of(given) == ["rnncc", "onnxruntime", "ncnn"]
    assert list(run.modules_of(given)) == ["module.so"]
    assert run.contestants_of(arguments.parse(["rnn"])) == ["rnncc", "onnxruntime", "openvino", "torch"]


@pytest.mark.long
def test_the_untuned_module_takes_turns_with_the_tuned_one_on_the_most_threads(squeezenet):
    shutil.copy(squeezenet / "module.so", squeezenet / "untuned.so")
    job = cnn_job.CnnJob(case_named("squeezenet"), squeezenet)
    found = measure.measure(job, {"contestants": ["rnncc", "untuned"], "threads": [1, 2], "rounds": 3, "seconds": 0.1, "held": False})
    tuned, untuned = found["contestants"].values()
    assert (list(tuned["by_threads"]), list(untuned["by_threads"])) == ([1, 2], [2])
    assert "start_seconds" in tuned and "start_seconds" not in untuned
    assert untuned["threads"] == 2 and len(untuned["turn_medians"]) == 3 and untuned["to_tuned"] > 0


class Drifting:
    """A turn on a machine that gets slower with each turn."""
    clock = 0

    def __init__(self, takes):
        self.takes, self.seconds = takes, [[99.0]]

    def take(self):
        Drifting.clock += 1
        self.seconds.append([self.takes * Drifting.clock] * 3)


def test_the_untuned_ratio_is_that_of_turns_beside_each_other_whatever_the_machine_does():
    """If it were always first, the tuned module would seem faster by 4% and more."""
    Drifting.clock = 10
    assert measure.ratio_in_pairs(Drifting(1.0), Drifting(1.5), 12, 1e-6) == pytest.approx(1.5, rel=0.005)


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


# Reports


def contestant(milliseconds, **more):
    return {"median_seconds": milliseconds * 1e-3, "p10_seconds": milliseconds * 0.9e-3, "threads": 2,
            "error": 1e-7, "version": "1.0",
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
               "meanwhile": {"gflops": 95.0, "memory": 20.0},
               "limits": {"computing_seconds": 8e-3, "reading_seconds": 6e-3, "moving_seconds": 0.5e-3,
                          "least_seconds": 12e-3,
                          "by_kind": {"direct": 10e-3, "winograd": 2e-3, "depthwise": 0, "product": 0, "other": 1e-6},
                          "taken_by_kind": {"direct": 20e-3, "winograd": 8e-3, "depthwise": 0, "product": 0,
                                            "other": 1e-3}},
               "contestants": {"rnncc": contestant(30.0, p10_seconds=24e-3), "onnxruntime": contestant(50.0)}}]}
CORE = RESULTS["machine"]["cores"][-1]


@pytest.fixture
def row():
    """row(n) -> the cells of ResNet-18's row in the n-th table of the page."""
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
    words = cnn_report.line(lacking, ["rnncc", "onnxruntime", "ncnn"], "avx2").split()
    assert words[1:7] == ["30.00", "(2)", "50.00", "(2)", "-", "0.600"]


def test_the_ratio_is_of_the_best_peer(row):
    assert row(0) == ["30.00 (2)", "50.00 (2)", "0.600", "0.600", "0.60", "yes", "0.533 |"]


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
    assert rows[0] == ["30.00 (2)", "33.00 (2)", "50.00 (2)", "0.600", "0.600", "0.60", "yes", "0.533", "1.090 |"]
    assert rows[1:7] == [row(k) for k in range(1, 7)] and "--schedules=none" in page
    assert "--schedules=none" not in cnn_report.page(RESULTS)


def test_the_chart_shows_the_untuned_module_where_there_is_one(tmp_path):
    results = copy.deepcopy(RESULTS)
    results["cases"].append(copy.deepcopy(results["cases"][0]))
    results["cases"][1]["contestants"]["untuned"] = UNTUNED
    for shown, cases in ((True, results["cases"]), (False, results["cases"][:1])):
        cnn_report.write({**results, "cases": cases}, tmp_path)
        drawn = (tmp_path / "cnn.avx2.svg").read_text()
        assert (">rnncc untuned<" in drawn) == shown and ">rnncc<" in drawn and ">ONNX Runtime<" in drawn


def test_limits_are_the_multiply_adds_at_the_peak_of_all_cores(row):
    """2 GMAC at 200 GFLOP/s: 20 ms."""
    assert row(1) == ["2.00", "80%", "133", "67%", "20.00", "0.40 |"]


def test_the_limit_of_the_layers_is_beside_what_a_ratio_would_take(row):
    assert row(2) == ["190", "40", "8.00", "6.00", "0.500", "12.00", "40%", "50%", "0.24", "0.60", "met |"]
    slow = {**RESULTS["cases"][0], "contestants": {"rnncc": contestant(40.0), "onnxruntime": contestant(50.0)}}
    assert cnn_report.reach(slow) == "40% of the limit"
    slow["contestants"]["onnxruntime"] = contestant(19.0)
    assert cnn_report.reach(slow) == "more than the limit allows"


def test_kinds_have_their_times_and_how_much_of_them_is_the_limits(row):
    assert row(3) == ["20.00 (50%)", "8.00 (25%)", "1.00 (0%) |"]
    assert "| network | direct | Winograd | all other |" in cnn_report.page(RESULTS)


def test_scaling_is_the_time_on_the_fewest_threads_over_that_on_the_most(row):
    assert row(4) == ["54.00", "30.00", "1.80", "90.00", "50.00", "1.80 |"]


def test_resident_memory_beyond_weights_and_arena_is_shown(row):
    """12 MiB beyond the model's 40: 5 beyond 44 of packed weights and an arena of 3."""
    assert row(6) == ["7.0", "20.00", "40.00", "44.00", "3.00", "5.00", "0.50 |"]


def test_without_peers_there_is_a_page_without_ratios():
    alone = copy.deepcopy(RESULTS)
    del alone["cases"][0]["contestants"]["onnxruntime"]
    assert "30.00 (2) | - | - | 0.60 | - |" in cnn_report.page(alone)


# The limit


def test_a_workload_is_read_from_a_records_text():
    read = layers.workload("n2of8c3k5g7_d4k1s1p0.0_h6k3s2d2p1.2_w1k3s1p1.1_in16_bias_residual_after.Relu")
    assert (read.images, read.channels, read.kernels, read.groups, read.residual) == (2, 3, 5, 7, True)
    assert read.axes == (layers.Axis(4, 1, 1, 1, 0, 0), layers.Axis(6, 3, 2, 2, 1, 2), layers.Axis(1, 3, 1, 1, 1, 1))
    assert [axis.out for axis in read.axes] == [4, 3, 1] and read.weights == 7 * 3 * 5 * 9
    assert not layers.workload("n1c1k1_h3k3s1p1.1").residual


@pytest.mark.parametrize("axis, taps, met", [
    ((5, 3, 1, 1, 1, 1), 13, 5), ((5, 1, 2, 1, 0, 0), 3, 3), ((4, 1, 2, 1, 0, 0), 2, 2), ((1, 3, 1, 1, 1, 1), 1, 1),
    ((6, 3, 2, 2, 1, 2), 7, 3)])
def test_padding_is_not_multiplied_and_unused_input_is_not_read(axis, taps, met):
    found = layers.Axis(*axis).taps
    assert (len(found), len(set(found))) == (taps, met)


def test_taps_are_those_that_a_convolution_of_ones_counts():
    """If input and window are all 1, the sum of a convolution's outputs is the number of its multiply-adds."""
    for text in ("n2c3k5_h6k3s2d2p1.2_w7k3s1p1.0", "n1c2k3g2_h5k5s3p2.2_w4k1s2p0.0"):
        read, model = layers.workload(text), Model()
        shape = [read.images, read.groups * read.channels, *(axis.n for axis in read.axes)]
        x = model.input("x", "f32", shape)
        w = np.ones((read.groups * read.kernels, read.channels, *(axis.kernel for axis in read.axes)), np.float32)
        pads = [getattr(axis, side) for side in ("before", "after") for axis in read.axes]
        y = model.node("Conv", [x, model.constant(w)], "y", group=read.groups, pads=pads,
                       strides=[axis.stride for axis in read.axes], dilations=[axis.dilation for axis in read.axes])
        model.output(y)
        (sums,) = model.onnx_run({"x": np.ones(shape, np.float32)}).values()
        assert sums.sum() == read.macs and sums.size * 4 == read.output_bytes


EXPLAINED = """n1c64k84_h1k3s1p1.1_w1k3s1p1.1_in16_bias: 12.00 MFLOP: small
    predicted us  schedule
*         119.40  direct,oc=3,px=8,unroll=2,pass=0,groups=0,tiles=64
n1c256k256_h14k1s2p0.0_w14k1s2p0.0_in16_residual_then.Relu: 231.21 MFLOP: first, second
"""


def entry(kernel, flops=0, size=0, node="n"):
    return {"kernel": kernel, "node": node, "flops": flops, "bytes": size, "seconds": 1e-3}


def test_a_kernel_has_the_work_of_its_nodes_workload():
    found = layers.workloads(EXPLAINED)
    assert list(found) == ["small", "first", "second"]
    (small,) = layers.works_of(entry("k1_conv_direct direct_oc2px14u2_3x3s1c64o84g1_1x1", node="small"), found, 1)
    assert (small.kind, small.macs, small.weights, small.reads) == ("direct", 64 * 84, 9 * 64 * 84, (4 * 64,))
    (strided,) = layers.works_of(entry("k1_conv_direct direct_oc2px14u2_1x1s2c256o256g1_7x7", node="second"), found, 1)
    assert strided.reads == (4 * 256 * 49, 4 * 256 * 49) and strided.writes == (4 * 256 * 49,)


def test_a_kernel_of_no_known_workload_has_what_its_name_and_profile_say():
    """A weight is used once for each pixel."""
    direct = 2 * 9 * 256 * 256 * 14 * 14
    assert layers.works_of(entry("k2_conv_direct direct_oc2px14u2_tiles8_3x3s1c256o256g1_14x14", direct), {}, 1) == [
        layers.Work("direct", direct / 2, 9 * 256 * 256)]
    assert layers.works_of(entry("k4_gemm_packed n1000k512_v3r1", 2 * 512000), {}, 1) == [
        layers.Work("product", 512000, 512000)]
    assert layers.works_of(entry("k5_pool_blocked", 3e6, 4e6), {}, 1) == [
        layers.Work("other", reads=(1e6, 1e6), writes=(1e6, 1e6))]


@pytest.mark.parametrize("block, by_each", [("b7", False), ("b16_groups", True), ("b25", False)])
def test_winograds_transforms_and_products_take_turns(block, by_each):
    """F(4x4,3x3) on 14x14: 16 tiles of 36 points."""
    layer = layers.workload("n1c256k128_h14k3s1p1.1_w14k3s1p1.1_in16_residual")
    kernel = f"k1_conv_winograd winograd4x4_3x3_oc2t8{block}_c256o128_14x14"
    first, products, last = layers.works_of(entry(kernel), {"n": layer}, 1)
    assert products == layers.Work("winograd", 36 * 16 * 256 * 128, 36 * 256 * 128)
    span = {"b7": 7}.get(block, 16)
    assert first == layers.Work("winograd", reads=(4 * 256 * 196,), points=layers.Points(
        4 * 36 * 16 * 256, 4 * 36 * span * 256, by_each))
    output = (4 * 128 * 196,)
    assert last == layers.Work("winograd", reads=output, writes=output, points=layers.Points(4 * 36 * 16 * 128, 0))


def test_a_kernel_that_pools_writes_only_the_maxima():
    """15x14 outputs are pooled to 7x7."""
    layer = layers.workload("n1c32k64_h15k3s1p1.1_w14k3s1p1.1_in16")
    kernel = "k1_conv_winograd winograd4x4_3x3_oc2t8b16_c32o64_15x14"
    whole, pooled = (layers.works_of(entry(kernel + end), {"n": layer}, 1) for end in ("", "_max2x2"))
    assert pooled[:2] == whole[:2] and pooled[2].points == whole[2].points
    assert (whole[2].writes, pooled[2].writes) == ((4 * 64 * 15 * 14,), (4 * 64 * 7 * 7,))


def test_a_group_of_a_convolution_has_its_share_of_the_tensors():
    layer = layers.workload("n1c32k64g4_h14k3s1p1.1_w14k3s1p1.1_in16")
    first, _, last = layers.works_of(entry("k1_conv_winograd winograd4x4_3x3_oc2t8b16_c32o64_14x14"), {"n": layer}, 1)
    assert (first.reads, last.reads, last.writes) == ((4 * 32 * 196,), (), (4 * 64 * 196,))


def test_a_kernel_takes_the_longest_of_computing_reading_weights_and_moving_tensors():
    """200 GFLOP/s; 160 GB/s for data within 2 MiB, 40 GB/s beyond 64 MiB, as for 80 MB of weights."""
    works = [layers.Work("direct", 4e8, 1e5, (1e6,), (1e6,)), layers.Work("product", 1e5, 2e7),
             layers.Work("other", reads=(4e5, 4e5), writes=(1.6e6,))]
    limits = layers.limits(works, CORE)
    assert limits["computing_seconds"] == pytest.approx(4.001e-3)
    assert limits["reading_seconds"] == pytest.approx(2.01e-3)
    assert limits["moving_seconds"] == pytest.approx((1e6 + 1.6e6) / 160e9)
    assert limits["by_kind"] == pytest.approx({"direct": 4e-3, "winograd": 0, "depthwise": 0, "product": 2e-3,
                                               "other": 1.6e6 / 160e9})
    assert limits["least_seconds"] == pytest.approx(6.01e-3)


@pytest.mark.parametrize("points, seconds", [
    (layers.Points(1.6e6, 1 << 20), 1e-5), (layers.Points(1.6e6, 1 << 20, by_each=True), 2e-5),
    (layers.Points(1.6e6, 1 << 25), 4e-5), (layers.Points(1.6e6, 0), 1e-5)])
def test_points_are_moved_at_the_speed_of_what_holds_a_cores_share(points, seconds):
    found = layers.limits([layers.Work("winograd", reads=(4e5,), points=points)], CORE)
    assert found["by_kind"]["winograd"] == found["moving_seconds"] == pytest.approx(seconds)


def test_the_machines_speed_meanwhile_counts():
    """Two cores with 16 MiB each need more than 25 MB of caches."""
    described = {**RESULTS["machine"], "caches": ["L2 1024K", "L3 25M"]}
    read = [{"bytes": 1 << log, "forward": 50.0, "alternating": 60.0} for log in (20, 23, 24, 25)]
    described["cores"] = [{"threads": n, "gflops": 100.0, "read": read} for n in (1, 2)]
    core = machine.core_meanwhile(described, {"gflops": 90.0, "memory": 15.0})
    assert (core["threads"], core["gflops"]) == (2, 90.0)
    assert [machine.bandwidth(core, 1 << log) for log in (20, 23, 24, 26)] == [60.0, 60.0, 15.0, 15.0]
    assert read[-1]["forward"] == 50.0


def test_the_machine_takes_turns_with_the_contestants(squeezenet):
    job = cnn_job.CnnJob(case_named("squeezenet"), squeezenet)
    found = measure.measure_network(job, {"contestants": ["rnncc"], "threads": [2], "rounds": 3, "seconds": 0.1,
                                          "isa": machine.best_isa(), "held": False})
    assert found["contestants"].keys() == {"rnncc"} and len(found["profile"]) > 30
    assert found["meanwhile"].keys() == {"gflops", "memory"} and min(found["meanwhile"].values()) > 0


def test_the_median_of_turns_beside_the_contestants_counts(monkeypatch):
    rates = iter([3.0, 30.0, 1.0, 10.0, 2.0, 20.0])

    class Speeds:
        speed_multiply_add = staticmethod(lambda isa, threads: next(rates))
        speed_memory = staticmethod(lambda isa, threads, size: next(rates))

    monkeypatch.setattr(machine, "speeds", lambda: Speeds)
    meanwhile = machine.Meanwhile(2, "avx2")
    for _ in range(3):
        meanwhile.take()
    assert meanwhile.found == {"gflops": 2.0, "memory": 20.0}


def test_layers_of_a_module_have_its_multiply_adds_and_weights(squeezenet, rnncc):
    facts, job = cnn_job.module_facts(squeezenet), cnn_job.CnnJob(case_named("squeezenet"), squeezenet)
    entries = layers.profile(squeezenet / "module.so", job.feeds, 2)
    explained = rnncc("inspect", squeezenet / "squeezenet.json", "--explain=conv", "-v").stdout
    assert {each["node"] for each in entries if "_conv_" in each["kernel"]} == layers.workloads(explained).keys()
    works = [work for each in entries for work in layers.works_of(each, layers.workloads(explained), 1)]
    assert 0.8 * (facts["multiply_adds"] - facts["multiply_adds_3x3"]) < sum(each.macs for each in works)
    assert sum(each.macs for each in works) < facts["multiply_adds"]
    assert 0.9 * facts["packed_bytes"] < 4 * sum(each.weights for each in works) < facts["packed_bytes"]
    found = layers.facts(entries, explained, 1, CORE)
    assert sum(found["taken_by_kind"].values()) == pytest.approx(sum(each["seconds"] for each in entries))
    assert all(taken > 0 for kind, taken in found["taken_by_kind"].items() if found["by_kind"][kind])
