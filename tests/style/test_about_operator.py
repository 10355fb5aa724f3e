# SPDX-License-Identifier: MIT
"""`tools/test --op NAME` finds the tests of every operator, and few others."""
import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from conftest import ROOT
from support.about_operator import about, is_named, snake

OPERATORS = dict.fromkeys(re.findall(r"^\| `(\w+)` \|", (ROOT / "tools" / "docs" / "operators.md").read_text(), re.MULTILINE))
NODES = Path(onnx.__file__).parent / "backend" / "test" / "case" / "node"


@pytest.fixture(scope="module")
def cases():
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests", "--ignore=tests/pytorch",
               "--ignore=tests/distributed"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300).stdout.splitlines()
    return [(ROOT / line.partition("::")[0], line) for line in lines if "::" in line]


def test_each_operator_has_a_test(cases):
    """Or is in ONNX's conformance suite, which is asked first: it has most of them, and is one text."""
    suite = "\n".join(file.read_text() for file in NODES.rglob("*.py"))
    lacking = [op for op in OPERATORS if f'"{op}"' not in suite and not about(cases, op)]
    assert lacking == []


def test_few_tests_are_about_an_operator(cases):
    assert 0 < len(about(cases, "Resize")) < len(cases) / 20
    assert {path.name for path, _ in about(cases, "DeformConv")} == {"test_deform_conv.py"}
    assert about(cases, "NoSuchOperator") == []


@pytest.mark.parametrize("op, name, whether", [
    ("Softmax", "tests/a/test_b.py::test_c[Softmax-1]", True), ("Softmax", "tests/a/test_b.py::test_c[LogSoftmax-1]", False),
    ("ReduceMean", "tests/a/test_b.py::test_reduce_means_are_right", True), ("Add", "tests/a/test_b.py::test_padding", False),
    ("LSTM", "tests/a/test_lstm.py::test_c", True), ("Einsum", "tests/a/test_b.py::test_c[a sum]", False)])
def test_a_case_is_named_after_the_operator_as_a_word(op, name, whether):
    assert is_named(name, op) == whether


def test_names_in_functions_have_underscores():
    assert [snake(op) for op in ("LSTM", "ReduceMean", "QLinearConv", "DFT")] == ["lstm", "reduce_mean", "q_linear_conv", "dft"]
