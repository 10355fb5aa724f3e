# SPDX-License-Identifier: MIT
"""What rnncc says, it says once: for several targets, for several networks, and for networks of one file."""
import json

import numpy
import onnx
import pytest
from onnx import helper

from support.model_builder import Model

TARGETS = "--target=x86-64-v3,x86-64-v2,x86-64"


def once(done, code=0):
    lines = done.stderr.splitlines()
    assert done.returncode == code and sorted(lines) == sorted(set(lines)), done.stderr
    return lines


@pytest.mark.parametrize("name", ["digits_rnn", "digits_cnn", "hyphenate"])
def test_the_shipped_models(rnncc, root, name):
    path = root / "models" / f"{name}.json"
    assert once(rnncc("inspect", path, TARGETS)) == once(rnncc("inspect", path, f"again={path}", TARGETS)) == []


def test_lines_that_are_no_records(rnncc, root, tmp_path):
    (tmp_path / "bad.jsonl").write_text("no record\n")
    models = [f"{name}={root}/models/{file}.json" for name, file in (("a", "digits_rnn"), ("b", "digits_cnn"), ("c", "digits_cnn"))]
    (line,) = once(rnncc("inspect", *models, TARGETS, "--schedules=bad.jsonl", cwd=tmp_path))
    assert line.startswith("bad.jsonl: warning: 1 line is not a record")


def newer(folder):
    """A file of an opset that rnncc does not know, with a dim that nothing bounds."""
    value = lambda name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["T", 4])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [value("x")], [value("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 99)])
    (folder / "newer.onnx").write_bytes(model.SerializeToString())
    return folder / "newer.onnx"


@pytest.mark.parametrize("networks", [["newer.onnx"], ["a=newer.onnx", "b=newer.onnx"]], ids=len)
def test_remarks_on_a_file(rnncc, tmp_path, networks):
    newer(tmp_path)
    lines = once(rnncc("inspect", *networks, TARGETS, cwd=tmp_path))
    assert [line for line in lines if "99" in line and "opset" in line] and len(lines) == 1 + len(networks)
    assert len([line for line in lines if "assumed:" in line]) == len(networks), "each has options of its own"


@pytest.mark.parametrize("networks", [["broken.json"], ["a=broken.json", "b=broken.json"]], ids=len)
def test_errors(rnncc, tmp_path, networks):
    model = Model("broken")
    x = model.input("x", "f32", [2, 3])
    for _ in range(3):
        model.output(model.node("MatMul", [x, model.constant(numpy.ones((4, 5), numpy.float32))]))
    model.write(tmp_path)
    assert len(once(rnncc("inspect", *networks, TARGETS, cwd=tmp_path), 2)) >= 3
    (tmp_path / "m.json").write_text(json.dumps({}))
    assert once(rnncc("inspect", *networks, TARGETS, "--machine=m.json", cwd=tmp_path), 2)
