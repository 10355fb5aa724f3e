# SPDX-License-Identifier: MIT
"""tools/bench model except its measurements: what it computes from predictions and records."""
import json
import random
import sys

import numpy
import pytest
from conftest import ROOT
from support.bench import assert_refused, listed

sys.path.insert(0, str(ROOT / "tools"))

from benchmarks import cost_model, cost_model_page, cost_model_run  # noqa: E402
from benchmarks.cost_model import Workload, network_behind, parse_explained, read_measured, spearman, summarise  # noqa: E402

EXPLAINED = """\
n1c16k32_in16_bias: 0.13 MFLOP: conv1, conv5
    predicted us  schedule
*           0.80  direct,oc=2,px=4
            0.90  direct,oc=1,px=4
             ...  70 in all: -v lists them
  chosen: direct,oc=2,px=4: the least predicted time
n1c32k32_in16: 12.50 MFLOP: conv2
    predicted us  schedule
           10.00  winograd,tile=4
*          11.00  direct,oc=2,px=14
  chosen: direct,oc=2,px=14: --conv says so
"""


def record(workload, schedule, us, **members):
    return json.dumps({"family": "conv", "workload": workload, "target": "x86-64-v4", "schedule": schedule,
                       "median_us": us, "kernels": "a", "cores": 2, "l1": 1, "l2": 2, "l3": 3, **members})


def test_explained_convolutions_are_read_with_their_nodes_and_predictions():
    one, two = parse_explained(EXPLAINED)
    assert (one.name, one.nodes) == ("n1c16k32_in16_bias", 2)
    assert list(one.predicted.items()) == [("direct,oc=2,px=4", 0.8), ("direct,oc=1,px=4", 0.9)]
    assert (two.nodes, two.predicted) == (1, {"winograd,tile=4": 10, "direct,oc=2,px=14": 11})


def test_the_output_of_rnncc_is_read(rnncc):
    done = rnncc("inspect", ROOT / "models" / "digits_cnn.json", "--explain=conv", "-v")
    workloads = parse_explained(done.stdout)
    assert [w.nodes for w in workloads] == [1, 1]
    assert all(len(w.predicted) > 3 and min(w.predicted.values()) > 0 for w in workloads)


def test_records_are_times_of_one_machine_and_of_what_worked():
    lines = [record("w", "of another cache", 1, l2=4), record("w", "fast", 3, kernels="b"),
             record("w", "slow", 9, status="ok"), record("w", "fast", 2, status="best"), record("w", "broken", 1, status="ok"),
             record("w", "broken", 0, status="crashed"), record("w", "of another target", 5, target="x86-64"),
             record("v", "a", 7), "no record", "{}", "[1]", record("w", "recurrent", 4, family="recurrent")]
    assert read_measured(lines, "x86-64-v4") == {"w": {"fast": 2, "slow": 9}, "v": {"a": 7}}


def counted_ranks(values):
    """By definition: the number of smaller values, and the middle of the equal ones."""
    values = numpy.asarray(values)
    return [(values < v).sum() + ((values == v).sum() + 1) / 2 for v in values]


@pytest.mark.parametrize("seed", range(20))
def test_rank_correlation_is_the_correlation_of_ranks(seed):
    rng = random.Random(seed)
    pairs = [(rng.randrange(8), rng.randrange(8)) for _ in range(3 + seed)]
    sides = list(zip(*pairs))
    assert all(cost_model.ranks(side) == counted_ranks(side) for side in sides)
    if any(len(set(side)) == 1 for side in sides):
        assert spearman(pairs) is None
    else:
        assert spearman(pairs) == pytest.approx(numpy.corrcoef([counted_ranks(side) for side in sides])[0, 1])


def test_rank_correlation_knows_order_alone():
    assert spearman([(k, 2.0**k) for k in range(9)]) == pytest.approx(1)
    assert spearman([(k, -(k**3)) for k in range(9)]) == pytest.approx(-1)


def workload(measured, **members):
    return Workload("w", predicted={f"s{k}": k + 1.0 for k in range(5)}, measured=measured, **members)


def test_the_first_choice_is_compared_with_the_best_that_was_measured():
    w = workload({"s0": 20, "s2": 10, "s4": 30, "no longer a candidate": 1})
    assert (w.first, w.best, w.behind, w.first_is_measured) == ("s0", "s2", 2, True)
    unmeasured = workload({"s3": 20, "s2": 30})
    assert (unmeasured.first, unmeasured.best, unmeasured.first_is_measured) == ("s2", "s3", False)


def test_a_summary_weighs_workloads_alike_and_networks_weigh_time():
    good, bad = workload({f"s{k}": 10 * (k + 1) for k in range(5)}), workload({"s0": 400, "s1": 100}, nodes=3)
    found = summarise([good, bad, workload({})])
    assert (found.workloads, found.schedules, found.correlations) == (2, 7, [pytest.approx(1)])
    assert found.behind == pytest.approx(2) and found.within == 0.5
    assert network_behind([good, bad]) == pytest.approx((10 + 3 * 400) / (10 + 3 * 100))
    assert network_behind([workload({})]) is None


def test_the_page_has_rows_for_networks_with_and_without_times():
    known, unknown = workload({"s0": 20.0, "s2": 10.0}), Workload("unknown", predicted={"s0": 1.0})
    page = cost_model_page.page({"one": [known], "two": [unknown]}, "by hand")
    assert "1 distinct convolutions of 2 networks, 2 schedules" in page
    assert "| one | 1 | 2 | - | - | 2.000 | 2.000 |" in page and "| two | 0 | 0 | - | - | - | - |" in page
    assert "Nothing was measured." in cost_model_page.page({"two": [workload({})]}, "by hand")


def test_the_page_is_of_one_target_and_its_instruction_set(monkeypatch):
    monkeypatch.setattr(cost_model_run, "output_of", lambda *_: "target isa\nx86-64-v4 avx512 16 32\n"
                        "x86-64-v3 avx2 8 16 native\n")
    assert cost_model_run.target_and_isa("native") == cost_model_run.target_and_isa("x86-64-v3") == ["x86-64-v3", "avx2"]
    assert cost_model_run.target_and_isa("x86-64-v4") == ["x86-64-v4", "avx512"]
    with pytest.raises(cost_model_run.Missing, match="expected one of x86-64-v4, x86-64-v3, found z80"):
        cost_model_run.target_and_isa("z80")
    assert cost_model_run.about([], "x86-64-v3", "avx2").endswith("with AVX2, for `x86-64-v3`.")


def test_networks_are_chosen_by_name():
    assert listed("model", "resnet1*", "vgg16") == ["resnet18", "resnet101", "resnet152", "vgg16"]
    assert_refused("model", "lenet", "--list", told="lenet")
    networks = listed("model")
    assert len(networks) == len(set(networks)) >= 16
