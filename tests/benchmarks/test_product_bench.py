# SPDX-License-Identifier: MIT
"""tools/bench products except its measurements: no time is judged here. OpenVINO is only in the other venv."""
import copy
import os
import sys

import numpy as np
import pytest
from conftest import ROOT, build_directory

os.environ.setdefault("RNNCC_BUILD", str(build_directory()))
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "models")]

from benchmarks import arguments, contestants, measure, product_job, product_networks, product_report, run  # noqa: E402
from benchmarks.product_cases import CASES, QUICK, case_named  # noqa: E402

SMALL = ["matmul_3x5x7", "decoder_t3_b2", "bilstm_t3_b2", "conformer_t9_b1"]


def test_a_name_says_all_of_a_case():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names) and set(QUICK) < set(names)
    assert case_named("linear_64x100x70").sizes == (("M", 64), ("N", 100), ("K", 70))
    assert case_named("encoder_t64_b2").sizes == (("T", 64), ("B", 2))
    for name in ("matmul_0x1x1", "linear_64", "encoder_t64", "encoder_b1_t64", "encoders_t1_b1", "Linear_1x1x1"):
        assert case_named(name) is None


def test_products_from_64_on_and_networks_have_goals():
    goals = {case.name: (case.at_most, case.at_least) for case in CASES}
    assert goals["linear_64x64x64"] == (None, 0.85) and goals["linear_17x100x300"] == (None, None)
    assert goals["encoder_t512_b1"] == goals["bilstm_t400_b8"] == (0.8, None)


def test_the_command_line_has_them(tmp_path):
    given = arguments.parse(["products", "--target=x86-64-v3", "--case=decoder*", "--case=linear_2x3x4"])
    assert [case.name for case in given.cases] == ["decoder_t32_b8", "linear_2x3x4"]
    assert run.contestants_of(given) == ["rnncc", "onnxruntime", "openvino"]
    assert run.modules_of(given) == {"module.so": ["--target=x86-64-v3", "--machine=native"]}


@pytest.mark.parametrize("name", SMALL)
def test_modules_and_onnx_runtime_agree(name, tmp_path, rnncc):
    case = case_named(name)
    model = product_job.write_model(case, tmp_path, ["rnncc", "onnxruntime"])
    done = rnncc(model, "-o", tmp_path / "module.so")
    assert done.returncode == 0, done.stderr
    job = product_job.ProductJob(case, tmp_path)
    runners = {(who, 1): contestants.CONTESTANTS[who]().open(job, 1) for who in ("rnncc", "onnxruntime")}
    assert max(measure.check(job, job.reference(), runners).values()) < product_job.BOUND
    for runner in runners.values():
        runner.close()


def multiply_adds(name):
    net = product_networks.model(case_named(name))
    shapes = product_job.shapes_of(net.onnx()) | {given["name"]: given["shape"] for given in net.inputs}
    return product_networks.multiply_adds(net, shapes)


def test_multiply_adds_are_those_of_products_convolutions_and_recurrent_layers():
    """Of each position of 4 layers: 12 E^2 with weights, 2 T E in attention. Of a direction: I + H for each of 4 H gates."""
    assert multiply_adds("linear_3x5x7") == 3 * 5 * 7
    assert multiply_adds("encoder_t6_b2") == 4 * 2 * 6 * (12 * 256**2 + 2 * 6 * 256)
    assert multiply_adds("bilstm_t3_b2") == 3 * 2 * (2 * 512 * (64 + 128) + 2 * 512 * (256 + 128) + 256 * 64)
    block = 9 * (16 * 256**2 + 4 * 256**2 + 2 * 9 * 256 + 3 * 256**2 + 256 * 15 + 2 * 3 * 256**2)
    assert multiply_adds("conformer_t9_b1") == block


def contestant(milliseconds, **more):
    return {"median_seconds": milliseconds * 1e-3, "threads": 2, "error": 1e-7, "version": "1.0",
            "turn_medians": [milliseconds * 1e-3] * 3,
            "by_threads": {"1": milliseconds * 1.8e-3, "2": milliseconds * 1e-3}, **more}


RESULTS = {
    "date": "today", "command": "tools/bench products",
    "machine": {"cpu": "CPU", "cpus": 2, "caches": ["L2 1M"], "system": "Linux", "isa": "avx2",
                "cores": [{"threads": n, "gflops": 100.0} for n in (1, 2)]},
    "cases": [{"case": "linear_512x512x512", "bound": 1e-4, "multiply_adds": 900_000_000,
               "contestants": {"rnncc": contestant(10.0), "onnxruntime": contestant(20.0)}}]}


def rows(results):
    return [line.split(" | ")[1:] for line in product_report.page(results).splitlines() if " | " in line and "512" in line]


def test_a_product_is_judged_by_its_share_of_the_peak_on_one_thread():
    """1.8 GFLOP in 18 ms: all of one thread's 100 GFLOP/s; in 10 ms 90% of two."""
    assert rows(RESULTS)[0] == ["10.00 (2)", "20.00 (2)", "0.500", "0.500", "-", "-", "0.500 |"]
    assert rows(RESULTS)[1] == ["900.00", "9.00", "100%", "90%", "85%", "yes |"]
    slow = copy.deepcopy(RESULTS)
    slow["cases"][0]["contestants"]["rnncc"]["by_threads"]["1"] = 24e-3
    assert rows(slow)[1][2:] == ["75%", "90%", "85%", "no |"]


def test_a_network_is_judged_by_its_ratio_to_onnx_runtime_and_shown_beside_the_best_peer():
    results = copy.deepcopy(RESULTS)
    results["cases"][0]["case"] = "encoder_t512_b1"
    results["cases"][0]["contestants"]["openvino"] = contestant(12.5)
    assert rows(results)[0] == ["10.00 (2)", "20.00 (2)", "12.50 (2)", "0.500", "0.500", "0.80", "yes", "0.800 |"]
    assert rows(results)[1][-2:] == ["-", "- |"]


def test_results_are_written_for_their_instruction_set(tmp_path):
    product_report.write(RESULTS, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "PRODUCT_RESULTS.avx2.md", "product_results.avx2.json", "products.avx2.svg"]
    assert np.isclose(product_report.limit_seconds(RESULTS["cases"][0], RESULTS["machine"]), 9e-3)
