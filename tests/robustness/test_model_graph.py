# SPDX-License-Identifier: MIT
"""Models whose nodes do not make a graph."""
import json
import os
import subprocess

import pytest

from support.amount import long_tests
from support.refusal import accepted, refused, small_model, write


def with_nodes(*nodes, **fields):
    return {**small_model(), "nodes": list(nodes), **fields}


def node(op, inputs, outputs, **fields):
    return {"op": op, "inputs": inputs, "outputs": outputs, **fields}


@pytest.mark.parametrize("nodes, code, texts", [
    ([node("Add", ["x", "y"], ["y"], name="loop")], 2, ["nodes[0]", '"loop" reads its own output']),
    ([node("Add", ["x", "b"], ["a"], name="one"), node("Relu", ["a"], ["b"], name="two"), node("Relu", ["b"], ["y"])], 2,
     ["cycle", '"one"', '"two"']),
    ([node("Relu", ["s"], ["y"])], 2, ["nodes[0].inputs[0]", 'nothing produces the tensor "s"']),
    ([node("Relu", ["x"], ["why"])], 2, ["outputs[0]", 'nothing produces the tensor "y"']),
    ([node("Relu", ["x"], ["score"]), node("Relu", ["socre"], ["y"])], 2, ['did you mean "score"?']),
    ([node("Relu", ["x"], ["y"]), node("Tanh", ["x"], ["y"])], 2, ["nodes[1].outputs[0]", "nodes[0].outputs[0]"]),
    ([node("Relu", ["x"], ["x"])], 2, ["nodes[0].outputs[0]", '"x" is already declared at inputs[0].name']),
    ([node("Relu", ["x"], ["c"])], 2, ["nodes[0].outputs[0]", '"c" is already declared at constants.c']),
    ([node("Split", ["x"], ["y", "y"], attributes={"axis": 1})], 2, ["nodes[0].outputs[1]", "already declared"]),
    ([node("Foo", ["x"], ["y"])], 3, ["nodes[0].op", '"Foo"']),
    ([node("Lstm", ["x"], ["y"])], 3, ["nodes[0].op", '"LSTM"']),
    ([node("If", ["x"], ["y"])], 2, ["nodes[0]", "If needs the attribute `then_branch`, a graph"]),
    ([node("Foo", ["x"], ["s"]), node("Bar", ["s"], ["y"])], 3, ["nodes[0].op", "nodes[1].op"]),
    ([node("Gather", ["x"], ["s"]), node("Pow", ["s"], ["y"])], 2,
     ["nodes[0]", "Gather has exactly 2 inputs, found 1", "nodes[1]", "Pow has exactly 2 inputs, found 1"]),
    ([node("Relu", ["x"], ["y"], attributes={"alpha": 1})], 3, ["nodes[0].attributes.alpha", "Relu"]),
    ([node("Softmax", ["x"], ["y"], attributes={"axes": 1})], 3, ["nodes[0].attributes.axes", "axis"]),
    ([node("Softmax", ["x"], ["y"], attributes={"axis": 1.5})], 2, ["nodes[0].attributes.axis", "integer"]),
    ([node("Softmax", ["x"], ["y"], attributes={"axis": "1"})], 2, ["nodes[0].attributes.axis", "integer"]),
    ([node("Softmax", ["x"], ["y"], attributes={"axis": None})], 2, ["nodes[0].attributes.axis", "integer"]),
    ([node("Softmax", ["x"], ["y"], attributes={"axis": True})], 2, ["nodes[0].attributes.axis", "integer"]),
    ([node("Softmax", ["x"], ["y"], attributes={"axis": 2**63})], 2, ["nodes[0].attributes.axis", "found 9223372036854775808"]),
    ([node("Gelu", ["x"], ["y"], attributes={"approximate": "exact"})], 2, ["attributes.approximate", "none|tanh"]),
    ([node("Concat", ["x", "x"], ["y"])], 2, ["nodes[0]", "Concat needs the attribute `axis`"]),
    ([node("Add", ["x"], ["y"])], 2, ["nodes[0]", "Add has exactly 2 inputs, found 1"]),
    ([node("Add", ["x", ""], ["y"])], 2, ["nodes[0]", "absent"]),
    ([node("Relu", ["x"], ["y", "z"])], 2, ["nodes[0]", "outputs, found 2"]),
    ([node("Relu", ["x"], [])], 2, ["nodes[0]", "outputs, found 0"]),
    ([node("Relu", ["x"], ["y"], lengths="x")], 2, ["nodes[0].lengths", "RNN, GRU and LSTM"]),
    ([node("Relu", ["x"], ["y"], gate_order="iofc")], 2, ["nodes[0].gate_order", "LSTM and GRU"]),
])
def test_nodes_that_make_no_graph_are_refused(rnncc, tmp_path, nodes, code, texts):
    refused(rnncc, tmp_path, with_nodes(*nodes), code, "model.json: ", *texts)


def test_an_input_declared_twice_is_refused(rnncc, tmp_path):
    model = small_model()
    model["inputs"] *= 2
    refused(rnncc, tmp_path, model, 2, "inputs[1].name", "already declared at inputs[0].name")


def test_an_empty_tensor_name_is_refused(rnncc, tmp_path):
    model = small_model()
    model["inputs"][0]["name"] = ""
    refused(rnncc, tmp_path, model, 2, "inputs[0].name", "the name is empty")


@pytest.mark.parametrize("fields, texts", [
    ({"output": "nowhere"}, ["states[0].output", "nothing produces"]),
    ({"shape": ["T", 2, 4]}, ["states[0].shape", "axis 0 is a named dim"]),
    ({"batch_axis": 3}, ["states[0].batch_axis", "0 to 2"]),
    ({"input": "x"}, ["states[0].input", "already declared"]),
    ({"batch-axis": 1}, ["states[0]", 'did you mean "batch_axis"?']),
])
def test_a_state_that_cannot_be_carried_is_refused(rnncc, tmp_path, fields, texts):
    model = small_model()
    model["states"] = [{"input": "h", "output": "s", "dtype": "f32", "shape": [1, 2, 4], "batch_axis": 1, **fields}]
    refused(rnncc, tmp_path, model, 2, *texts)


def test_nodes_may_stand_in_any_order(rnncc, tmp_path):
    model = small_model()
    model["nodes"].reverse()
    assert [entry["name"] for entry in accepted(rnncc, tmp_path, model)["nodes"]] == ["add", "relu"]


def test_sorted_nodes_keep_their_order(rnncc, tmp_path):
    nodes = [node("Relu", ["x"], [f"a{i}"], name=f"n{i}") for i in range(20)]
    nodes.append(node("Sum", [f"a{i}" for i in reversed(range(20))], ["y"], name="last"))
    written = accepted(rnncc, tmp_path, with_nodes(*nodes))["nodes"]
    assert [entry["name"] for entry in written] == [entry["name"] for entry in nodes]


DEEP = 1_000_000 if long_tests() else 300_000  # a stack of 8 MiB has no 28 bytes for each


@pytest.mark.parametrize("n, reverse", [pytest.param(DEEP, True, marks=pytest.mark.unsanitized), (10_000, False)])
def test_a_long_chain_of_nodes_loads_without_recursion(rnncc, tmp_path, n, reverse):
    """Reversed, the search for an order goes as deep as the chain is long."""
    lines = ['{"op":"Relu","inputs":["t%d"],"outputs":["t%d"]}' % (i, i + 1) for i in range(n)]
    model = small_model()
    model["inputs"][0]["name"], model["outputs"], model["nodes"] = "t0", [f"t{n}"], "NODES"
    text = json.dumps(model).replace('"NODES"', "[" + ",".join(reversed(lines) if reverse else lines) + "]")
    path = write(tmp_path, text)
    done = rnncc(path, "--emit=graph", "-o", tmp_path / "out.json", timeout=300)
    assert done.returncode == 0, done.stderr


def test_of_very_many_errors_the_first_are_shown(rnncc, tmp_path):
    nodes = [node("NoSuchOp", ["x"], [f"y{i}" if i else "y"]) for i in range(20000)]
    done = rnncc(write(tmp_path, json.dumps(with_nodes(*nodes))), "--emit=graph", "-o", tmp_path / "out.json")
    told = done.stderr.splitlines()
    assert done.returncode == 3 and len(told) == 101 and all(": error: " in line for line in told[:100])
    assert told[-1] == "rnncc: note: 20000 errors; the first 100 are shown"


def test_each_message_is_one_write(rnncc, tmp_path):
    """So that the lines of programs that share a log stay whole. A pipe of packets keeps writes apart."""
    nodes = [node("NoSuchOp", ["x"], [f"y{i}" if i else "y"]) for i in range(50)]
    reader, writer = os.pipe2(os.O_DIRECT)
    with subprocess.Popen([*rnncc.prefix, write(tmp_path, with_nodes(*nodes)), "-o", tmp_path / "m.so"], stderr=writer) as done:
        os.close(writer)
        packets = list(iter(lambda: os.read(reader, 1 << 16), b""))
    os.close(reader)
    assert done.returncode == 3 and len(packets) == 50
    assert all(packet.count(b"\n") == 1 and packet.endswith(b"\n") for packet in packets)


def test_a_long_cycle_is_named_in_short(rnncc, tmp_path):
    n = 50_000
    model = with_nodes(*(node("Relu", [f"t{i}"], [f"t{(i + 1) % n}"]) for i in range(n)), outputs=["t0"])
    said = refused(rnncc, tmp_path, model, 2, "cycle", f"({n} nodes)")
    assert len(said) < 2000


def gru_model(**fields):
    model = small_model()
    model["inputs"].append({"name": "n", "dtype": "i32", "shape": [1]})
    model["inputs"][0]["shape"] = ["T", 1, 2]
    shapes = {"W": [1, 6, 2], "R": [1, 6, 2], "B": [1, 12]}
    sizes = {"W": 12, "R": 12, "B": 12}
    model["constants"] = {name: {"dtype": "f32", "shape": shape, "data": [0] * sizes[name]}
                          for name, shape in shapes.items()}
    model["nodes"] = [node("GRU", ["x", "W", "R", "B"], ["y"], attributes={"hidden_size": 2}, **fields)]
    return model


@pytest.mark.parametrize("order", ["", "zr", "zrhh", "zzr", "iofc", "ZRH", "zrg"])
def test_a_gate_order_that_is_no_permutation_is_refused(rnncc, tmp_path, order):
    refused(rnncc, tmp_path, gru_model(gate_order=order), 2, "nodes[0].gate_order", '"zrh"')


def test_a_gate_order_of_computed_weights_is_refused(rnncc, tmp_path):
    model = gru_model(gate_order="rzn")
    model["nodes"].append(node("Relu", ["W"], ["W2"]))
    model["nodes"][0]["inputs"][1] = "W2"
    refused(rnncc, tmp_path, model, 3, "nodes[0].gate_order", "W is computed")


def test_lengths_given_twice_are_refused(rnncc, tmp_path):
    model = gru_model(lengths="n")
    model["nodes"][0]["inputs"].append("n")
    refused(rnncc, tmp_path, model, 2, "nodes[0].lengths", "one of the two")


def test_lengths_are_the_input_sequence_lens(rnncc, tmp_path):
    assert accepted(rnncc, tmp_path, gru_model(lengths="n"))["nodes"][0]["inputs"] == ["x", "W", "R", "B", "n"]
