# SPDX-License-Identifier: MIT
"""Of a sweep some cases run by default, chosen by what they are: support/sweeps.py. Of a file clang optimises a case."""
import itertools
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest
from conftest import ROOT, to_optimise
from support.sweeps import FEW, SHARE, chosen, parameters

TARGETS = ("x86-64-v4", "x86-64-v3", "x86-64", "aarch64-linux-gnu", "riscv64-linux-gnu")
SWEEP = "tests/kernels/test_blocked_windows.py::test_transposed_convolutions_equal_onnx_runtime"


def crossed(**values):
    return [dict(zip(values, row)) for row in itertools.product(*values.values())]


def ran(name, cases):
    return [cases[place] for place in sorted(chosen(name, cases))]


@pytest.mark.parametrize("count", range(FEW + 1))
def test_of_few_cases_all_run(count):
    assert chosen("f", [{"case": str(k)} for k in range(count)]) == set(range(count))


@pytest.mark.parametrize("count", [4, 9, 40, 361])
def test_a_share_runs_from_the_whole_of_a_list(count):
    places = chosen("f", [{"case": str(k)} for k in range(count)])
    assert len(places) == max(FEW, -(-count // SHARE))
    assert all(any(k <= place <= k + SHARE for place in places) for k in range(0, count - SHARE, SHARE))


def test_values_that_recur_run_each():
    cases = crossed(op=[f"Op{k}" for k in range(50)], seed="01", form="abc")
    some = ran("f", cases)
    assert len(some) == len(cases) / SHARE
    assert all({case[name] for case in some} == {case[name] for case in cases} for name in ("op", "seed", "form"))


def test_values_that_recur_run_each_though_they_are_more_than_the_share():
    cases = crossed(op=[f"Op{k}" for k in range(50)], seed="01")
    assert {case["op"] for case in ran("f", cases)} == {case["op"] for case in cases}
    assert {case["seed"] for case in ran("f", cases)} == {"0", "1"}


def test_values_without_text_recur_where_they_are_the_same():
    """Functions, classes, types, lists, files; pytest gives each case a number of its own."""
    def case(number, **values):
        return SimpleNamespace(callspec=SimpleNamespace(params=values, indices=dict.fromkeys(values, number)))

    values = [abs, lambda x: x, lambda x: -x, int, numpy.int8, numpy.dtype("u1"), [1], [1], Path("a"), Path("b")]
    pairs = list(itertools.product(values, "012"))
    cases = [parameters(case(number, value=value, seed=seed)) for number, (value, seed) in enumerate(pairs)]
    assert len({one["value"] for one in cases}) == len(values)
    some = chosen("f", cases)
    assert len(some) == len(cases) / SHARE and {cases[place]["value"] for place in some} == {one["value"] for one in cases}


def test_a_test_runs_on_its_first_target_and_every_second_of_the_others():
    cases = crossed(target=TARGETS, case="0123456789")
    seen = [{case["target"] for case in ran(f"test_{k}", cases)} for k in range(20)]
    assert set(map(frozenset, seen)) == {frozenset(TARGETS[:1] + TARGETS[1::2]), frozenset(TARGETS[:1] + TARGETS[2::2])}


def collected(*words):
    """As by default, however this test runs."""
    settings = {"RNNCC_LONG_TESTS", "RNNCC_QUICK_TESTS", "RNNCC_PROFILES"}
    environment = {name: value for name, value in os.environ.items() if name not in settings}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_the_choice_is_the_sweeps_own():
    """Whatever else is collected; --long has all cases, and those that are named run."""
    every, some = collected(SWEEP, "--long"), collected(SWEEP)
    assert len(every) > len(some) >= FEW and set(some) < set(every)
    assert [line for line in collected(SWEEP.partition("::")[0]) if line.startswith(SWEEP)] == some
    word = some[1].partition("[")[2].rstrip("]").split("-")[0]
    assert collected(SWEEP, "-k", word) == [line for line in some if word in line.partition("[")[2]]
    assert collected(*every) == every


def test_of_a_table_all_cases_run():
    table = "tests/graphs/test_expanded_onnx.py::test_expanded_op_agrees_with_onnx_runtime"
    assert collected(table) == collected(table, "--long") != []


def test_clang_optimises_the_first_case_of_a_file_or_of_the_test_that_is_marked():
    def case(file, name, *fixtures, marked=None):
        return SimpleNamespace(path=file, nodeid=f"{file}::{name}", fixturenames=fixtures, get_closest_marker={"optimised_here": marked}.get)

    items = [case("a", "f"), case("a", "g", "compile"), case("a", "h", "compile"), case("b", "f", "compile"),
             case("b", "g", "compile", marked=True), case("b", "h", "compile", marked=True), case("c", "f", marked=True)]
    assert to_optimise(items) == {"a::g", "b::g"}
