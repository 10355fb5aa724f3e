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


def test_an_input_declared_twice_is_refused(rnncc, tmp_path):
    model = small_model()
    model["inputs"] *= 2
    refused(rnncc, tmp_path, model, 2, "inputs[1].name", "already declared at inputs[0].name")


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
