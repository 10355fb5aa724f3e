# SPDX-License-Identifier: MIT
"""How many files know of a thing: so many must be changed to add another of its kind.

    an operator that others can express     2    a row, a formula
    an operator with a kernel of its own    6    a row, the rule, the reference, the family, the template, the list of sources
    a pass, over the graph or the program   3    the file, the list of steps, the list of sources
    an element type                         4    a row, the ABI's enum, the schema, the operators that name it
    an instruction set                      4    the vocabulary, simd.h, the CPU's bits, a target

Each is counted by an example whose names occur in no other context."""
import re

import pytest
from conftest import ROOT

ROOMS = ("compiler", "models", "runtime", "templates", "tools")
SUFFIXES = (".c", ".h", ".def", ".build", ".json")


def files_that_say(pattern):
    """Files that are built and shipped. Comments count, because they would have to be changed, too; figures that a
    benchmark wrote do not."""
    said = re.compile(pattern)
    paths = (path for room in ROOMS for path in (ROOT / room).rglob("*")
             if path.suffix in SUFFIXES and "results" not in path.name)
    return {str(path.relative_to(ROOT)) for path in paths if said.search(path.read_text(errors="replace"))}


@pytest.mark.parametrize("operator, pattern, files", [
    ("HammingWindow", r"\bHammingWindow\b|OP_HammingWindow|expand_hamming\b", {"compiler/ir/ops.def", "compiler/expand/windows.c"}),
    ("Det", r"\bDet\b|OP_Det\b|\w+_determinant\b|\bdeterminant\b",
     {"compiler/ir/ops.def", "compiler/shapes/shape_linear.c", "compiler/reference/ref_linear.c",
      "compiler/kernels/matmul/family_determinant.c", "templates/determinant.c", "compiler/meson.build"}),
], ids=["expressed by others", "with a kernel of its own"])
def test_an_operator_is_known_to_few_files(operator, pattern, files):
    assert files_that_say(pattern) == files, operator


@pytest.mark.parametrize("name, file", [("strides_first", "passes/strides_first.c"), ("skip_empty", "program/skip_empty.c")])
def test_a_pass_is_known_to_few_files(name, file):
    assert files_that_say(rf"\b{name}\b") == {"compiler/passes.def", "compiler/meson.build", f"compiler/{file}"}


def test_an_element_type_is_known_to_few_files():
    assert files_that_say(r"RNNCC_I16\b|\bi16\b|\bI16\b") == {
        "runtime/dtypes.def", "runtime/rnncc.h", "models/schema.json", "compiler/ir/ops.def"}


@pytest.mark.parametrize("isa", ["avx2", "sse42", "rvv256", "sve256"])
def test_an_instruction_set_is_known_to_few_files(isa):
    own = {"templates/simd/int8.h", f"templates/simd/int8_{isa}.h"} if isa in ("avx2", "sse42") else set()
    assert files_that_say(rf"(?i)\b{isa}\b|_{isa}(_H)?\b") == own | {
        f"templates/simd/{isa}.h", "templates/simd/simd.h", "runtime/cpu.def", "compiler/machine/targets.def"}


def test_an_operator_is_compared_by_its_kind():
    """Names are for front ends, which look them up once, and for messages."""
    assert files_that_say(r"str\w*cmp\([^;]*op->name|op_find\(\"") == set()
