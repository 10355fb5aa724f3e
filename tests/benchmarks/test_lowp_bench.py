# SPDX-License-Identifier: MIT
"""tools/bench lowp except its measurements: no time is judged here. OpenVINO is only in the other venv."""
import copy
import ctypes
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import ROOT, build_directory
from onnx import TensorProto, helper
from support.machine import need_isa

os.environ.setdefault("RNNCC_BUILD", str(build_directory()))
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "models")]

from benchmarks import (arguments, cases, contestants, isas, lowp_job, lowp_limits, lowp_models, lowp_report,  # noqa: E402
                        machine, measure, run)
from benchmarks.lowp_cases import CASES, QUICK, WEIGHTS, Case, case_named  # noqa: E402


# The command line


def test_a_name_says_all_of_a_case():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names) and set(QUICK) < set(names)
    assert all(case_named(case.name) == case for case in CASES)
    assert case_named("lstm_300_t7_b2").title == "LSTM 300, T=7 B=2" and case_named("lstm_8").dynamic
    assert case_named("encoder_t64_b2_dynamic").title.endswith("T=64 B=2, dynamic")
    for name in ("lstm_8_dynamic", "resnet18_dynamic", "resnet51", "encoder_t64", "encoder_t64_b2_static"):
        assert case_named(name) is None


def test_contestants_are_those_that_compute_a_case_in_low_precision(monkeypatch):
    monkeypatch.setattr(machine, "has_flag", lambda name: name == "avx512_bf16")
    peers = ["onnxruntime_int8", "onnxruntime", "openvino_int8"]
    own = ["rnncc", *WEIGHTS, "f32"]
    assert lowp_job.contestants([], "avx512") == [*own, *peers, "openvino_bf16"]
    assert lowp_job.contestants([], "amx") == ["rnncc", *WEIGHTS, "bf16_products", "f32", *peers, "openvino_bf16"]
    assert lowp_job.contestants([], "avx2") == [*own, *peers]
    assert lowp_job.contestants(["openvino"], "avx512") == [*own, *peers[:2]]
    weights = list(WEIGHTS)
    assert case_named("lstm_8").without == peers[1:] and case_named("encoder_t8_b1_dynamic").without == weights + peers[1:]
    assert case_named("densenet121").without == weights + peers[1:]
    assert case_named("resnet18").without == case_named("encoder_t8_b1").without == [*weights, "onnxruntime"]
    assert case_named("gru_8").without == ["onnxruntime_int8", "openvino_int8"]


def test_quantised_and_f32_models_are_compiled_with_the_same_options(tmp_path):
    given = arguments.parse(["lowp", "--target=x86-64-v3", "--rnncc=--verify-each", "--case=resnet18"])
    options = ["--target=x86-64-v3", "--machine=native", "--verify-each"]
    assert run.sources_of(given.cases[0], tmp_path / "m.json", given) == {
        "module.so": (tmp_path / "quantised.onnx", options), "f32.so": (tmp_path / "m.json", options)}


# Models


SMALL = [Case(cases.Case("LSTM", 8, T=5, B=3), True), Case(cases.Case("LSTM", 8, T=1), True), case_named("gru_8_t5"),
         case_named("encoder_t3_b1"), case_named("encoder_t3_b1_dynamic"), case_named("squeezenet")]
OPERATORS = {"recurrent": {"DynamicQuantizeLSTM"}, "image": {"QuantizeLinear", "DequantizeLinear"}}


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_modules_and_onnx_runtime_are_as_near_to_f32_as_the_page_asks(case, tmp_path, rnncc):
    model = lowp_job.write_model(case, tmp_path, [])
    if case.quantised:
        operators = {node.op_type for node in onnx.load(tmp_path / "quantised.onnx").graph.node}
        assert operators >= OPERATORS.get(case.kind, {"DynamicQuantizeLinear" if case.dynamic else "QuantizeLinear"})
    for name, (source, options) in lowp_job.modules(case, tmp_path, model, [], "avx2").items():
        done = rnncc(source, "-o", tmp_path / name, *options)
        assert done.returncode == 0, done.stderr
    job = lowp_job.LowpJob(case, tmp_path)
    runners = {(who, 1): contestants.CONTESTANTS[who]().open(job, 1) for who in case.contestants if "openvino" not in who and lowp_job.takes_part(who, "avx2")}
    errors = measure.check(job, job.reference(), runners)
    assert errors["f32"] < lowp_job.F32_BOUND and all(lowp_job.F32_BOUND < errors[name] <= job.bound for name in errors
                                                      if name == "rnncc" or name in WEIGHTS)
    for runner in runners.values():
        runner.close()
    found = lowp_job.facts(case, tmp_path, "avx2")
    assert found["module_bytes"].keys() == {"rnncc", "f32", *(name for name in WEIGHTS if name in errors)} and found["bound"] == job.bound


def test_a_quantised_model_is_made_once_and_again_if_its_model_changes(tmp_path):
    case = SMALL[0]
    lowp_job.write_base(case, tmp_path)
    first = lowp_models.quantise(case, tmp_path, {}).stat().st_mtime_ns
    assert lowp_models.quantise(case, tmp_path, {}).stat().st_mtime_ns == first
    lowp_job.write_base(Case(cases.Case("LSTM", 12, T=5, B=3), True), tmp_path)
    assert lowp_models.quantise(case, tmp_path, {}).stat().st_mtime_ns > first


def test_what_follows_the_last_product_stays_in_floats():
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], "conv"), helper.make_node("Relu", ["a"], ["b"], "relu"),
             helper.make_node("MatMul", ["b", "v"], ["c"], "matmul"), helper.make_node("Exp", ["c"], ["d"], "exp"),
             helper.make_node("Sigmoid", ["b"], ["e"], "sigmoid")]
    model = helper.make_model(helper.make_graph(nodes, "g", [], []))
    assert sorted(lowp_models.tail(model)) == ["exp", "sigmoid"]


# Errors


@pytest.mark.parametrize("change, wanted", [(lambda y: y, 0), (lambda y: y * 1.01, 0.01), (lambda y: -y, 2),
                                            (lambda y: y * np.nan, math.inf)], ids=["same", "scaled", "negated", "nan"])
def test_the_error_is_a_part_of_the_output(change, wanted):
    expected = {"y": np.random.default_rng(1).standard_normal((2, 50)), "z": np.ones(3)}
    outputs = {name: change(values) for name, values in expected.items()}
    assert lowp_job.error(SMALL[0], outputs, expected) == pytest.approx(wanted)


def test_detections_may_change_places_but_not_scores():
    rows = np.zeros((1, 3, 6))
    rows[0, :, 1], rows[0, :, 0] = (0.9, 0.8, 0.7), (1, 2, 3)
    swapped, lower = rows.copy(), rows.copy()
    swapped[0, :2, 0], lower[0, 0, 1] = (2, 1), 0.5
    case = case_named("ssd_resnet50")
    assert lowp_job.error(case, {"d": swapped}, {"d": rows}) == 0 < 0.1 < lowp_job.error(case, {"d": lower}, {"d": rows})


def test_only_our_own_error_is_judged(tmp_path):
    """Without VNNI, sums of peers' products may saturate."""
    lowp_job.write_model(SMALL[1], tmp_path, [])
    job = lowp_job.LowpJob(SMALL[1], tmp_path)
    assert job.bound_of("rnncc") == job.bound == lowp_job.COARSE and job.bound_of("f32") == lowp_job.F32_BOUND
    assert job.bound_of("onnxruntime_int8") == job.bound_of("openvino_bf16") == 1


# Limits


def work_of(nodes, inputs, constants, output):
    """nodes: of a graph whose values have these shapes."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, output)],
        [helper.make_tensor(name, kind, np.shape(array), np.ravel(array)) for name, (kind, array) in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


SCALES = {"s": (TensorProto.FLOAT, 0.5), "z": (TensorProto.UINT8, 3), "z0": (TensorProto.INT8, 0)}


def test_the_work_of_a_convolution_is_its_multiply_adds_and_a_byte_of_each_element(tmp_path):
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
             helper.make_node("DequantizeLinear", ["w", "s", "z0"], ["v"]), helper.make_node("Conv", ["d", "v"], ["y"])]
    weights = {"w": (TensorProto.INT8, np.zeros((8, 3, 2, 2), np.int8))}
    model = work_of(nodes, {"x": (TensorProto.FLOAT, [1, 3, 5, 5])}, SCALES | weights, [1, 8, 4, 4])
    onnx.save(model, tmp_path / "m.onnx")
    assert lowp_limits.of_model(tmp_path / "m.onnx") == [[8 * 16 * 12, 96, 75, 128, True, 1]]


def test_a_product_of_floats_counts_four_bytes_of_each_element(tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("MatMul", ["a", "x"], ["y"])]
    weights = {"w": (TensorProto.FLOAT, np.zeros((5, 7), np.float32))}
    model = work_of(nodes, {"x": (TensorProto.FLOAT, [7, 5])}, weights, [7, 5])
    onnx.save(model, tmp_path / "m.onnx")
    assert lowp_limits.of_model(tmp_path / "m.onnx") == [[7 * 7 * 5, 140, 140, 196, False, 1],
                                                         [7 * 5 * 7, 0, 336, 140, False, 1]]


READ = [{"bytes": 1 << log, "forward": 10.0, "alternating": 8.0} for log in (10, 30)]
CORE = {"threads": 2, "gflops": 100.0, "int8_gops": 400.0, "read": READ}


def test_a_limit_is_the_longer_of_computing_and_moving_of_each_product():
    """Two cores: 4e11 multiply-adds of int8 a second, 2e10 bytes."""
    computed, moved = [4e8, 2e6, 0, 0, True, 1], [4e6, 2e8, 1e6, 4e6, True, 3]
    assert lowp_limits.seconds(CORE, [computed]) == pytest.approx([1e-3, 1e-4, 0, 1e-3])
    assert lowp_limits.seconds(CORE, [moved]) == pytest.approx([3e-5, 3e-2, 6e-4, 3e-2])
    assert lowp_limits.seconds(CORE, [computed, moved])[-1] == pytest.approx(31e-3)
    assert lowp_limits.seconds(CORE, [[4e8, 0, 0, 0, False, 1]])[-1] == pytest.approx(4e-3)


def test_a_recurrent_layer_reads_a_byte_of_each_recurrent_weight_in_every_step():
    inputs, step = lowp_limits.recurrent(cases.Case("LSTM", 64, T=7, B=2))
    assert inputs == [7 * 2 * 4 * 64 * 64, 4 * 64 * 64, 4 * 7 * 2 * 64, 4 * 7 * 2 * 256, True, 1]
    assert step == [2 * 4 * 64 * 64, 4 * 64 * 64, 0, 0, True, 7]


# The machine


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_the_peak_of_8_bit_products_is_above_that_of_floats(isa):
    """By instructions: 16 of two, or 64 where there is VNNI, to 8 or 16; an addition beside the former takes a turn."""
    need_isa(isa)
    library = machine.speeds()
    assert library.speed_dot_products(isa.encode(), 1) > 0.5 * library.speed_multiply_add(isa.encode(), 1)
    assert library.speed_dot_products(b"nothing", 1) == 0


def test_matrices_in_registers_are_faster_still():
    """1,024 products a cycle, to 128 by VNNI."""
    library = machine.speeds()
    matrices = library.speed_matrix_products(1)
    assert (matrices > 4 * library.speed_dot_products(b"avx512", 1)) if machine.has_flag("amx_int8") else matrices == 0


AVX_VNNI = r"""
int asks(unsigned seven, unsigned one) { unsigned char found; unsigned a = seven, b, c = one, d;
  __asm__("cpuid\n testb $0x10, %%al\n setne %4" : "+a"(a), "=b"(b), "+c"(c), "=d"(d), "=r"(found)); return found; }
int other(unsigned zero) { unsigned char found; __asm__("movb $0x10, %%al\n testb $0x10, %%al\n setne %0" : "=r"(found) : : "eax");
  return found + (int)zero; }
"""


def test_a_copied_library_finds_no_avx_vnni(tmp_path):
    need_isa("avx2")
    (tmp_path / "asks.c").write_text(AVX_VNNI)
    subprocess.run(["clang-19", "-O2", "-shared", "-fPIC", tmp_path / "asks.c", "-o", tmp_path / "asks.so"], check=True)
    isas.copy_library(tmp_path / "asks.so", tmp_path / "copy.so", 0x07)
    original, library = (ctypes.CDLL(str(tmp_path / name)) for name in ("asks.so", "copy.so"))
    assert (library.asks(7, 1), library.other(0)) == (0, 1)
    assert original.asks(7, 1) == ("avx_vnni" in Path("/proc/cpuinfo").read_text().split())


def test_onnx_runtime_asks_for_avx_vnni():
    """Else it could not be held."""
    library = contestants.package_file("onnxruntime", "capi/libonnxruntime.so.*")
    assert isas.AVX_VNNI.search(library.read_bytes())


# Reports


def contestant(milliseconds, **more):
    return {"median_seconds": milliseconds * 1e-3, "threads": 2, "error": 1e-2, "version": "1.0",
            "turn_medians": [milliseconds * 1e-3] * 3, **more}


def result(name, work, **milliseconds):
    return {"case": name, "bound": 0.1, "work": work, "file_bytes": {"model.onnx": 4 << 20, "quantised.onnx": 1 << 20},
            "module_bytes": {"rnncc": 1 << 20, "f32": 5 << 20},
            "contestants": {who: contestant(value) for who, value in milliseconds.items()}}


RESULTS = {
    "date": "today", "command": "tools/bench lowp",
    "machine": {"cpu": "CPU", "cpus": 2, "caches": ["L2 1M"], "system": "Linux", "isa": "avx512", "cores": [CORE]},
    "cases": [result("resnet50", [[2e9, 2e6, 0, 0, True, 1]], rnncc=8.0, f32=16.0, onnxruntime_int8=10.0, openvino_int8=9.0),
              result("lstm_1024", [[4e8, 0, 0, 0, True, 1]], rnncc=4.0, f32=9.0, onnxruntime_int8=8.0)]}


def rows(results, name):
    return [line.strip("| ").split(" | ")[1:] for line in lowp_report.page(results).splitlines() if line.startswith(f"| {name}")]


def test_a_case_is_judged_by_the_peer_or_the_module_that_its_goals_name():
    found = rows(RESULTS, "ResNet-50")
    assert found[0] == ["8.00 (2)", "16.00 (2)", "10.00 (2)", "9.00 (2)", "0.89", "0.50"]
    assert found[1:3] == [["OpenVINO int8", "0.889", "0.889", "0.85", "no"], ["rnncc f32", "0.500", "0.500", "0.45", "no"]]
    assert rows(RESULTS, "LSTM")[1:3] == [["ONNX Runtime int8", "0.500", "0.500", "0.60", "yes"],
                                          ["rnncc f32", "0.444", "0.444", "0.45", "yes"]]
    assert "ratios to the best peer is 0.889; at most 0.75: not met" in lowp_report.page(RESULTS)


def test_without_vnni_all_images_are_judged_together_and_each_by_our_own_f32():
    results = copy.deepcopy(RESULTS)
    results["machine"]["isa"] = "avx2"
    assert rows(results, "ResNet-50")[1] == ["rnncc f32", "0.500", "0.500", "0.80", "yes"]
    assert "0.889; at most 1.00: met" in lowp_report.page(results)


def test_limits_errors_and_sizes_are_shown():
    """2e9 multiply-adds at 4e11 a second."""
    found = rows(RESULTS, "ResNet-50")
    assert found[3] == ["2000.0", "100%", "5.00", "0.100", "0.0000", "5.00", "8.00", "62%", "0.56"]
    assert found[4] == ["40.0"] * 4 + ["20.0"] and found[5] == ["1.00", "5.00", "4.00", "1.00"]


def test_a_machine_whose_peak_is_not_known_has_no_limits():
    results = copy.deepcopy(RESULTS)
    results["machine"]["cores"][0]["int8_gops"] = 0
    assert "is not known" in lowp_report.page(results) and len(rows(results, "ResNet-50")) == 5


def test_a_goal_whose_contestant_took_no_part_is_left_out():
    results = copy.deepcopy(RESULTS)
    del results["cases"][1]["contestants"]["onnxruntime_int8"]
    assert [row[0] for row in rows(results, "LSTM")][1:2] == ["rnncc f32"]


def test_results_are_written_for_their_instruction_set(tmp_path):
    lowp_report.write(RESULTS, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "LOWP_RESULTS.avx512.md", "lowp.avx512.svg", "lowp_results.avx512.json"]
