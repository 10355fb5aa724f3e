# SPDX-License-Identifier: MIT
"""ONNX files that are cut, long, or oddly named, and what follows from errors. Each single mistake is in malformed_onnx.py."""
import re
import subprocess

import numpy
import pytest
from malformed_onnx import small
from onnx import helper

from support.onnx_files import BOOL, F32, I64, model_of, tensor_info, write
from support.refusal import refused

SAFE_NAMES = ['x;system("id");//', "*/", '"', "%n%s", "??/", "int", "\x1b[31m", "n" * 1000000, "-o", "$(id)", "a\nb"]


@pytest.mark.parametrize("length", range(0, len(small().SerializeToString()), 3))
def test_a_file_cut_short_is_refused(rnncc, tmp_path, length):
    refused(rnncc, tmp_path, write(tmp_path, small().SerializeToString()[:length]), 2, "model.onnx")


AT_ONCE = 50  # operators in a file: 100 errors are shown


def readers(op, bad):
    """Nodes whose older form needs the rank of their input, one of them in a body."""
    then = helper.make_graph([helper.make_node("Softmax", [bad], [f"t_{op}"])], "then", [], [tensor_info(f"t_{op}", F32, [3])])
    other = helper.make_graph([helper.make_node("Relu", ["x"], [f"e_{op}"])], "else", [], [tensor_info(f"e_{op}", F32, [3])])
    return [helper.make_node("Pow", [bad, "x"], [f"p_{op}"], "reader"), helper.make_node("Softmax", [bad], [f"s_{op}"], "reader"),
            helper.make_node("If", ["go"], [f"i_{op}"], "reader", then_branch=then, else_branch=other)]


def test_nothing_is_inferred_from_a_node_with_an_error(rnncc, root, tmp_path):
    """Each operator without its last input."""
    rows = subprocess.run(["clang-19", "-E", "-P", f"-I{root}/compiler", "-x", "c", "-"], capture_output=True, text=True,
                          check=True, input='#define OP(name, least, ...) ROW name least\n#include "ir/ops.def"\n').stdout
    needed = {op: int(count) for op, count in re.findall(r"^ROW (\w+) ([1-9]\d*)$", rows, re.MULTILINE)}
    said = ""
    for start in range(0, len(needed), AT_ONCE):
        ops = list(needed)[start:start + AT_ONCE]
        nodes = []
        for op in ops:
            nodes += [helper.make_node(op, ["x"] * (needed[op] - 1), [f"bad_{op}"], f"bad {op}"), *readers(op, f"bad_{op}")]
        model = model_of(nodes, {"x": (F32, [3]), "go": (BOOL, [])}, {f"p_{ops[0]}": (F32, None)}, opset=12)
        said += refused(rnncc, tmp_path, write(tmp_path, model), 2)
    assert "reader" not in said and len(needed) > 100
    assert [op for op in needed if f"bad {op}: " not in said] == []


def chain(length):
    names = ["x", *(f"t{i}" for i in range(length - 1)), "y"]
    nodes = [helper.make_node("Relu", [a], [b]) for a, b in zip(names, names[1:])]
    return model_of(nodes, {"x": (F32, [2])}, {"y": (F32, [2])})


def test_a_long_chain_costs_no_stack(rnncc, tmp_path):
    done = rnncc(write(tmp_path, chain(200000)), "--emit=graph", "-o", tmp_path / "out.json", timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", SAFE_NAMES, ids=range(len(SAFE_NAMES)))
def test_names_are_only_names(rnncc, tmp_path, name):
    model = model_of([helper.make_node("Relu", [name], ["y"], name)], {name: (F32, [2])}, {"y": (F32, [2])})
    done = rnncc(write(tmp_path, model), "-o", tmp_path / "m.so")
    assert done.returncode == 0, done.stderr


def test_to_the_end_survives(rnncc, tmp_path):
    ends = {"s": numpy.array([1], numpy.int64), "e": numpy.array([2**63 - 1], numpy.int64)}
    model = model_of([helper.make_node("Slice", ["x", "s", "e"], ["y"])], {"x": (I64, [5])}, {"y": (I64, [4])}, ends)
    done = rnncc(write(tmp_path, model), "--emit=graph", "-o", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    assert numpy.int64(2**63 - 1).tobytes() in (tmp_path / "out.safetensors").read_bytes()
