# SPDX-License-Identifier: MIT
"""tools/bench predict: what it reads of rnncc's predictions, which slices count, and its page."""
import json
import subprocess
import sys

import pytest
from conftest import ROOT
from support.bench import assert_refused, listed

sys.path.insert(0, str(ROOT / "tools"))

from benchmarks import cases, predict, predict_page, predict_run  # noqa: E402
from benchmarks.predict import Pair  # noqa: E402

RECURRENT = """\
layer 1 of 2, n0: LSTM, T=100 B=1 I=256 H=256, forward, number 1 of a stack of 2
  predicted for 2 cores of 117 GFLOP/s, 32 KB of L1, 1024 KB of L2, 32 MB of L3; split X_i (samples) x X_j (units) x X_k (depth)
  input    P      split   L3->L2 MB  hide block    input us   products    cells    waits   total us
  ahead    1    1x  1x1    1261.158  no       0     3240.12   19309.61    84.16     0.00   22633.89
* ahead    2    1x  2x1    1261.568  no       0     3240.12    9163.08    42.08    12.16      10.50
  ahead    2    1x  2x1    1261.568  yes      0     3240.12   10181.60    42.08     1.22       9.00
layer 2 of 2, n1: LSTM, T=100 B=1 I=256 H=256, forward, number 2 of a stack of 2
* ahead    2    1x  2x1    1261.568  yes      0     3240.12   10181.60    42.08     1.22      11.50
"""
STACK = RECURRENT + """\
stack of 2 layers from n0 on
                           total us
* layer by layer              22.00
  wavefront, chunk=5          30.00
"""
CONVOLUTIONS = """\
one: 0.13 MFLOP: conv1, conv5
    predicted us  schedule
*           8.00  direct,oc=2,px=4
           10.00  direct,oc=1,px=4
  chosen: direct,oc=2,px=4: the least predicted time
two: 12.50 MFLOP: conv2
    predicted us  schedule
           10.00  winograd,tile=4
*          11.00  direct,oc=2,px=14
  chosen: direct,oc=2,px=14: measured, 12.0 us
"""


def test_a_recurrent_network_takes_what_its_chosen_candidates_do():
    pair = predict.recurrent("case", RECURRENT, RECURRENT.replace("10.50", "8.50"), 33.0)
    assert (pair.predicted, pair.calibrated, pair.kind) == (22, 20, "recurrent")
    assert pair.schedule == "ahead 2 1x  2x1 no 0 ahead 2 1x  2x1 yes 0"
    assert (pair.ratio(False), pair.ratio(True)) == (1.5, pytest.approx(1.65))


def test_a_calibrated_prediction_is_of_the_same_schedule():
    other = RECURRENT.replace("* ahead    2    1x  2x1    1261.568  no ", "  ahead    2    1x  2x1    1261.568  no ")
    assert predict.recurrent("case", RECURRENT, other, 33.0).calibrated == 22
    without = "\n".join(line for line in RECURRENT.splitlines() if "10.50" not in line)
    assert predict.recurrent("case", RECURRENT, without, 33.0).calibrated is None


def test_a_stack_takes_its_own_time():
    assert predict.recurrent("case", STACK.replace("22.00", "25.00"), None, 50.0).predicted == 25
    wavefront = STACK.replace("* layer by", "  layer by").replace("  wavefront", "* wavefront")
    assert predict.recurrent("case", wavefront, None, 50.0).predicted == 30


def test_the_output_of_rnncc_is_read(rnncc):
    done = rnncc("inspect", ROOT / "models" / "digits_rnn.json", "--explain=rnn", "-v")
    found, chosen = predict.candidates(done.stdout)
    assert chosen and all(found[key] > 0 for key in chosen)
    done = rnncc("inspect", ROOT / "models" / "digits_cnn.json", "--explain=conv", "-v")
    schedules = predict.chosen_schedules(done.stdout)
    times = {node: 7.0 for _, nodes in schedules.values() for node in nodes}
    pairs = predict.convolutions("digits", done.stdout, done.stdout, times)
    assert len(pairs) == len(schedules) == 2 and all(pair.predicted == pair.calibrated > 0 for pair in pairs)


def test_a_convolution_takes_the_median_of_its_nodes():
    pairs = predict.convolutions("net", CONVOLUTIONS, None, {"conv1": 7.0, "conv5": 9.0, "conv9": 1.0})
    assert pairs == [Pair("net", "one", "direct,oc=2,px=4", 8.0, 8.0, None)] and pairs[0].kind == "direct"


BEST = predict.Best(100, 190, 140)


def slices(*found, meeting_ns=140, gbps=190):
    return [{"gflops": gflops, "us": us, "gbps": gbps, "meeting_ns": meeting_ns, "kernels": [["k_conv_pad", "a"], ["k_conv_plain", "a"], ["k_pool", "b"]],
             "kernel_us": [us, 10 * us, 5.0]} for gflops, us in found]


def test_slices_of_slow_cores_do_not_count():
    assert predict.measured_run(slices((100, 5.0), (96, 5.2), (60, 1.0)), BEST) == 5.1
    assert predict.measured_run(slices((60, 9.0), (70, 8.0)), BEST) == 8, "the fastest, if all were disturbed"
    assert predict.measured_nodes(slices((100, 2.0), (60, 9.0)), BEST) == {"a": 22}


def test_slices_of_cores_that_are_apart_do_not_count():
    both = slices((100, 5.0)) + slices((100, 4.9), meeting_ns=560)
    assert predict.Best.of(both) == BEST and predict.measured_run(both, BEST) == 5


def test_slices_of_cores_that_another_reads_with_do_not_count():
    both = slices((100, 5.0)) + slices((100, 4.9), gbps=150)
    assert predict.Best.of(both) == BEST and predict.measured_run(both, BEST) == 5


def test_two_threads_of_one_core_meet_sooner_than_cores_can():
    both = slices((100, 5.0)) + slices((52, 4.0), meeting_ns=28)
    assert predict.Best.of(both) == BEST and predict.measured_run(both, BEST) == 5


def test_each_round_takes_one_slice_of_every_case(monkeypatch):
    order, given = [], predict_run.parse(["lstm_64", "gru_64", "--slices=3"])
    monkeypatch.setattr(predict_run, "measured", lambda case, given: order.append(case["kind"]) or len(order))
    found = {name: {"kind": name, "slices": []} for name in given.names}
    predict_run.measure_all(found, given)
    assert order == 3 * ["lstm_64", "gru_64"] and found["gru_64"]["slices"] == [2, 4, 6]


def test_slices_slower_than_the_fastest_do_not_count():
    assert predict.measured_run(slices((100, 5.0), (100, 5.2), (100, 7.0)), BEST) == 5.1


def pairs(*ratios):
    return [Pair("net", f"work{k}", "direct,oc=2", 100 * ratio, 100.0, 50.0) for k, ratio in enumerate(ratios)]


def test_errors_are_those_of_the_ratios():
    found = predict.errors(pairs(0.5, 1.14, 0.88, 2.0))
    assert (found.count, found.near, found.quantiles[0], found.quantiles[-1]) == (4, 0.5, 0.5, 2)
    assert found.bias == pytest.approx((0.5 * 1.14 * 0.88 * 2) ** 0.25)
    assert predict.errors(pairs(0.5, 1.0), calibrated=True).near == 0.5
    assert predict.errors([], False) is None
    assert [pair.name for pair in predict.far(pairs(1.0, 1.2, 0.5, 1.16))] == ["work2", "work1", "work3"]


def test_the_page_has_both_kinds_with_and_without_calibration():
    recurrent = Pair("lstm_64", "lstm_64", "ahead 2", 55.0, 50.0, None)
    page = predict_page.page([recurrent, *pairs(1.0, 3.0)], "by hand")
    assert "| recurrent | 1 | 100% | 1.10 |" in page and "| direct, calibrated | 2 | 0% |" in page
    assert "| lstm_64 | `ahead 2` | 55.0 | 50.0 | 1.10 | - | - |" in page and "`work1`" in page and "`work0`" not in page


def test_cases_are_chosen_by_name():
    assert listed("predict", "lstm_64*", "vgg16") == ["lstm_64", "lstm_64_b10", "vgg16"]
    assert_refused("predict", "lenet", "--list", told="lenet")
    assert {case.name for case in cases.CASES} < set(predict_run.DISTINCT) < set(listed("predict"))


def test_a_slice_of_a_module_is_measured(rnncc, root, tmp_path):
    module = tmp_path / "m.so"
    assert rnncc(root / "models" / "digits_cnn.json", "-o", module).returncode == 0
    settings = {"module": str(module), "threads": 1, "isa": "plain", "profile": True, "seconds": 0.001}
    done = subprocess.run([sys.executable, "-m", "benchmarks.predict_measure", json.dumps(settings)], text=True,
                          capture_output=True, cwd=ROOT / "tools", env={"PYTHONPATH": f"{ROOT}/tools:{ROOT}/tests"})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert min(found["gflops"], found["gbps"], found["us"]) > 0 and found["meeting_ns"] == 0
    nodes = predict.measured_nodes([found], predict.Best.of([found]))
    assert len(nodes) == 2 and min(nodes.values()) > 0
