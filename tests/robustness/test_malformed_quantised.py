# SPDX-License-Identifier: MIT
"""Each malformed quantised model of malformed_quantised.py is refused with its exit code, and all that is said of it is what
stands there, at the node, in JSON and in ONNX; all else that such models say is compiled."""
import pytest
from malformed_quantised import BAD, BAD_IN_ONNX, CONTRIB, GOOD
from onnx import helper

from support.model_builder import Model, type_name
from support.refusal import refused


def model_of(op, arrays, attributes):
    """The first array is the input, the others are constants."""
    model, names = Model(), []
    for k, value in enumerate(arrays):
        if value is None:
            names.append("")
        else:
            names.append(model.constant(value, f"x{k}") if k else model.input("x0", type_name(value), value.shape))
    while not names[-1]:
        names.pop()
    model.output(model.node(op, names, **attributes))
    return model


def written(folder, node, form):
    model = model_of(*node)
    if form == "json":
        return model.write(folder)
    proto = model.onnx()
    if node[0] in CONTRIB:
        proto.graph.node[0].domain = "com.microsoft"
        proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def place(path, node, form):
    if form == "onnx":
        return f"{node[0]}_0"
    text = path.read_text()
    return f"nodes[0]: byte {text.rindex('{', 0, text.index('op'))}"


CASES = [(form, *row) for row in BAD for form in ("json", "onnx")] + [("onnx", *row) for row in BAD_IN_ONNX]


@pytest.mark.parametrize("form, node, code, line", [(form, *rest) for form, _, *rest in CASES], ids=[f"{case[1]}-{case[0]}" for case in CASES])
def test_a_malformed_quantised_model_is_refused_at_its_node(rnncc, tmp_path, form, node, code, line):
    path = written(tmp_path, node, form)
    assert refused(rnncc, tmp_path, path, code) == f"{path}: {place(path, node, form)}: error: {line}\n"


@pytest.mark.parametrize("form", ["json", "onnx"])
@pytest.mark.parametrize("name", GOOD)
def test_what_is_possible_is_compiled(rnncc, tmp_path, name, form):
    done = rnncc(written(tmp_path, GOOD[name], form), "-o", tmp_path / "m.so")
    assert done.returncode == 0, done.stderr
