# SPDX-License-Identifier: MIT
"""Each malformed quantised model of malformed_quantised.py is refused with its exit code, and all that is said of it is what
stands there, at the node, in JSON and in ONNX; all else that such models say is compiled."""
import pytest
from malformed_quantised import BAD, BAD_IN_ONNX, CONTRIB, GOOD, ones, recurrent
from onnx import TensorProto, helper

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
    return written_onnx(folder, with_domain(model.onnx(), node[0]))


def with_domain(proto, op):
    if op in CONTRIB:
        proto.graph.node[0].domain = "com.microsoft"
        proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return proto


def written_onnx(folder, proto):
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def in_a_body(node):
    """The same in a Loop's body, where the type of the input is not known when the node is read."""
    proto, info = with_domain(model_of(*node).onnx(), node[0]), helper.make_tensor_value_info
    inner = proto.graph.node[0]
    inner.input[0], result = "s", inner.output[0]
    inputs = [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("s", TensorProto.FLOAT, None)]
    outputs = [info("d", TensorProto.BOOL, []), info("t", TensorProto.FLOAT, None), info(result, TensorProto.FLOAT, None)]
    kept = [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Identity", ["s"], ["t"])]
    loop = helper.make_node("Loop", ["trips", "", "x0"], ["last", "all"], body=helper.make_graph([*kept, inner], "body", inputs, outputs))
    del proto.graph.node[:], proto.graph.output[:]
    proto.graph.node.append(loop)
    proto.graph.output.append(helper.make_empty_tensor_value_info("all"))
    proto.graph.initializer.append(helper.make_tensor("trips", TensorProto.INT64, [], [2]))
    return proto


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


# Without what is said of the input.
IN_A_BODY = [row for row in BAD_IN_ONNX if "DynamicQuantizeLSTM" in row[3] and "input_size" not in row[3]] + [
    ("weights without directions", recurrent(w=ones(3, 16)), 2, "DynamicQuantizeLSTM: input 1 must have rank 3, found `x1` i8[3, 16]"),
    ("weights as an LSTM has them", recurrent(w=ones(1, 16, 3)), 2,
     "DynamicQuantizeLSTM: input 1 must be W, [directions, input_size, 4*hidden_size] = [1, 16, 16], found `x1` i8[1, 16, 3]"),
]


@pytest.mark.parametrize("node, code, line", [row[1:] for row in IN_A_BODY], ids=[row[0] for row in IN_A_BODY])
def test_weights_that_a_body_reads_are_refused_likewise(rnncc, tmp_path, node, code, line):
    said = refused(rnncc, tmp_path, written_onnx(tmp_path, in_a_body(node)), code)
    assert said.endswith(f": error: {line}\n") and said.count("\n") == 1


def test_zero_points_that_a_body_computes_are_refused(rnncc, tmp_path):
    proto = in_a_body(recurrent())
    body = proto.graph.node[0].attribute[0].g
    body.node[2].input[9] = "z"
    nodes = [helper.make_node("Identity", ["x9"], ["z"]), *body.node]
    del body.node[:]
    body.node.extend(nodes)
    refused(rnncc, tmp_path, written_onnx(tmp_path, proto), 3, "zero points of unknown rank of com.microsoft's DynamicQuantizeLSTM")


def test_weights_that_a_body_reads_are_taken(rnncc, tmp_path):
    done = rnncc(written_onnx(tmp_path, in_a_body(recurrent())), "--emit=graph", "-o", tmp_path / "graph.json")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("form", ["json", "onnx"])
@pytest.mark.parametrize("name", GOOD)
def test_what_is_possible_is_compiled(rnncc, tmp_path, name, form):
    done = rnncc(written(tmp_path, GOOD[name], form), "-o", tmp_path / "m.so")
    assert done.returncode == 0, done.stderr
