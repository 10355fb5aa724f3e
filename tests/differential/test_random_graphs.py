# SPDX-License-Identifier: MIT
"""Random graphs of all operators compute what they should, compiled: compared with the reference interpreter, and that
with ONNX Runtime, on every instruction set, however schedules are forced, with the same bits on any number of threads.
A graph that fails shrinks to a small one, which the failure shows with the command that repeats it."""
import os
import re
import subprocess
import sys

import numpy
import pytest

from conftest import ROOT
from differential import plans, report
from differential.check import Checker, Finding, differences, side_by_side
from differential.grow import DUE, random_case
from differential.shrink import shrunk
from support.amount import long_tests
from support.emitted import run_by
from support.machine import need_target
from support.op_rows import op_rows

SEED = 1
GRAPHS = 50  # that are compiled together
GROUPS = 80 if long_tests() else 40
OPTIMISED = set(range(0, GROUPS, 5)) if long_tests() else {15}  # of short graphs, for the widest vectors
FOREIGN = {"aarch64-linux-gnu": 3 if long_tests() else 1, "riscv64-linux-gnu+rvv128": 1 if long_tests() else 0}
# Each draw is another one in each run, so a second run is not the first: tests/graphs/test_random.py. What the loops of
# LinearAttention compute: tests/graphs/test_attention.py.
# Of training: tests/graphs/test_gradients.py. A search whose body is a network: tests/graphs/test_beam_search.py.
# What checks that extents are equal: tests/graphs/test_expect_extent.py; numbers of --bound: test_bounded_values.py.
# Labels that must be classes: tests/graphs/test_ctc.py, test_cross_entropy.py.
LEFT_OUT = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "LinearAttention",
            "BeamSearch", "CTCLoss", "CTCLikelihood", "CrossEntropy", "ExpectExtent", "ExpectBetween",
            "ConvIntegerToFloat"}
TRAINED = ("Training", "Gradient")  # ends of names


def group_of(number, size=GRAPHS, seed=SEED, **how):
    return [random_case(seed, number * size + k, prefix=f"g{k}_", **how) for k in range(size)]


@pytest.mark.parametrize("number", range(GROUPS))
def test_random_graphs_compute_what_they_should(tmp_path, number):
    plan = plans.plan(number)
    need_target(f"--target={plan.target}")
    checker = Checker(tmp_path, optimised=number in OPTIMISED, threads=plan.threads)
    found = checker.check(group_of(number, **plan.of_graphs), *plan.words)
    assert not found, "\n".join(report.told(finding, checker, report.command(SEED, number, GRAPHS)) for finding in found[:1])
    # ONNX Runtime lacks many operators of its newest opsets: of some groups half have one.
    assert checker.counts["compiled"] >= 0.9 * GRAPHS and checker.counts["by the peer"] >= 0.2 * GRAPHS, checker.counts


@pytest.mark.parametrize("target, number", [(target, number) for target, count in FOREIGN.items() for number in range(count)])
def test_random_graphs_on_other_architectures(rnnrun_of, tmp_path, target, number):
    """One run of each, on two threads."""
    checker = Checker(tmp_path, optimised="riscv" in target)
    cases = group_of(1000 + number, 40, most_steps=12 if long_tests() else 3)
    known = [(case, expected[0]) for case in cases if (expected := checker.expected(case)) and not isinstance(expected, Finding)]
    assert len(known) >= 0.9 * len(cases)
    got = got_on(target, rnnrun_of(target), checker, known)
    ran = [(case, expected) for case, expected in known if got.keys() >= case.errors.keys()]
    assert len(ran) >= 0.9 * len(cases)
    for case, expected in ran:
        assert not differences(got, expected, case.errors), case.seed


# qemu-riscv64 7.2 ends where VFCVT.RTZ is the first floating-point instruction of a block: in large kernels that are not
# optimised, and in some that are.
EMULATOR_ENDS = "decode_save_opc"


def got_on(target, rnnrun, checker, known):
    """name -> the output of a module of all graphs; where its emulator cannot run it, of the halves, and of a single graph's
    module that is not optimised."""
    module = checker.folder / "module.so"
    done = checker.compile(side_by_side([case for case, _ in known]).write(checker.folder), module, (f"--target={target}", plans.EXACT))
    assert done.returncode == 0, done.stderr
    feeds = {name: array for case, _ in known for name, array in case.feeds[0].items()}
    due = {name: expected[name] for case, expected in known for name in case.errors}
    try:
        return run_by(rnnrun, module, feeds, due, checker.folder)
    except AssertionError as ended:
        if EMULATOR_ENDS not in str(ended):
            raise
    half = len(known) // 2
    if half:
        return got_on(target, rnnrun, checker, known[:half]) | got_on(target, rnnrun, checker, known[half:])
    return got_on(target, rnnrun, Checker(checker.folder), known) if checker.optimised else {}


def test_every_operator_occurs():
    """In the graphs that are made by default, but for those of which no two runs can be compared."""
    used = set().union(*(random_case(SEED, number).graph.used for number in range(len(DUE))))
    assert not used & LEFT_OUT
    missing = {op for op in op_rows(ROOT) if not op.endswith(TRAINED)} - used - LEFT_OUT
    assert not missing, "add a maker, see tests/differential/elementwise.py"


def test_a_graph_is_the_same_for_the_same_seed(tmp_path):
    def written(folder):
        folder.mkdir()
        return [random_case(SEED, k).model.write(folder).read_text() for k in range(20)]
    assert written(tmp_path / "a") == written(tmp_path / "b")


class Mistaken(Checker):
    """Its compiler takes the larger for the smaller."""

    def compile(self, model, module, options):
        model.write_text(re.sub(r'"op": "Min"', '"op": "Max"', model.read_text()))
        return super().compile(model, module, options)


def test_a_wrong_kernel_is_found_and_shrinks_to_one_node(tmp_path):
    checker = Mistaken(tmp_path)
    number = DUE.index("Min")
    found = checker.check([random_case(SEED, number + k * len(DUE), prefix=f"g{k}_", most_steps=3) for k in range(4)], plans.EXACT)
    assert found and found[0].against == "reference"
    small = shrunk(found[0], checker).case
    assert [node["op"] for node in small.model.nodes] == ["Min"]
    assert max(array.size for array in small.feeds[0].values()) <= 4
    said = report.told(found[0], checker, report.command(SEED, 0, GRAPHS))
    assert "= Min(" in said and "tools/fuzz --differential" in said


def test_an_internal_error_shrinks_to_its_node(tmp_path):
    class Refusing(Checker):
        def compile(self, model, module, options):
            done = super().compile(model, module, options)
            if '"op": "Trilu"' in model.read_text():
                done.returncode, done.stderr = 70, "rnncc: internal error: n7 (Trilu)"
            return done

    checker = Refusing(tmp_path)
    cases = [random_case(SEED, DUE.index(op), prefix=f"g{k}_", most_steps=3) for k, op in enumerate(("Abs", "Trilu", "Max"))]
    found = checker.check(cases, plans.EXACT)
    assert [finding.case.seed for finding in found] == [cases[1].seed] and found[0].against == "compiler"
    assert [node["op"] for node in shrunk(found[0], checker).case.model.nodes] == ["Trilu"]


@pytest.mark.parametrize("got, bound, same", [([1, 2], (0, 0), True), ([1, 2.001], (0, 0), False), ([1, 2.001], (0.01, 0), True),
                                              ([1, numpy.nan], (1, 1), False), ([numpy.inf, 2], (1, 1), False), ([1, 2.1], (0, 0.1), True)])
def test_bounds_are_absolute_or_relative_to_the_largest(got, bound, same):
    expected = {"y": numpy.array([1, 2], numpy.float32)}
    assert (differences({"y": numpy.array(got, numpy.float32)}, expected, {"y": bound}) is None) == same


def test_the_fuzzer_names_a_group_that_this_cpu_cannot_run():
    done = subprocess.run([sys.executable, ROOT / "tests" / "differential" / "fuzz.py", "--group=0", "--seed=1"], capture_output=True, text=True,
                          env=os.environ | {"RNNCC_CPU_WITHOUT": "avx512"})
    assert done.returncode == 5 and "tools/fuzz: group 0 is for x86-64-v4: this CPU has no AVX-512\n" in done.stderr
