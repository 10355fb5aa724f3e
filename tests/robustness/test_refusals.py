# SPDX-License-Identifier: MIT
"""Everything that is refused is told by one run: each thing once, and nothing that only follows from another."""
import random
import re

import numpy
import pytest
from onnx import helper

from support.onnx_files import F32, I64, model_of, tensor_info, write
from support.refusal import refused, small_model

X = {"x": (F32, ("T", 4)), "n": (I64, ("T",))}


def body(name, nodes, outputs, inputs=()):
    return helper.make_graph(nodes, name, list(inputs), [tensor_info(output, F32, None) for output in outputs])


def carried(*names):
    """The inputs of a Loop's body."""
    return [tensor_info("i", I64, ()), tensor_info("go", 9, ()), *(tensor_info(name, F32, None) for name in names)]


def loop(name, trip, nodes, **kinds):
    graph = body("body", [helper.make_node("Identity", ["go"], ["on"]), *nodes], ["on", "h2"], carried("h"))
    return helper.make_node("Loop", [trip, "", "x"], [name + "_out"], name, body=graph)


def branches(name, nodes):
    other = body("other", [helper.make_node("Identity", ["x"], ["same"])], ["same"])
    return helper.make_node("If", ["truth"], [name + "_out"], name, then_branch=body("then", nodes, ["made"]),
                            else_branch=other)


# What is refused: the nodes, whose last writes `NAME_out`, and the code.
REFUSALS = {
    "operator": (lambda name: [helper.make_node("Foo" + name, ["x"], [name + "_out"], name)], 3),
    "domain": (lambda name: [helper.make_node("Bar", ["x"], [name + "_out"], name, domain="of." + name)], 3),
    "attribute": (lambda name: [helper.make_node("Relu", ["x"], [name + "_out"], name, **{"for_" + name: 1})], 3),
    "type": (lambda name: [helper.make_node("Softmax", ["n"], [name + "_out"], name)], 3),
    "unknown_extent": (lambda name: [helper.make_node("Expand", ["x", "n"], [name + "_out"], name)], 3),
    "shapes": (lambda name: [helper.make_node("Add", ["x", "seven"], [name + "_out"], name)], 2),
    "arity": (lambda name: [helper.make_node("MatMul", ["x"], [name + "_out"], name)], 2),
    "cycle": (lambda name: [helper.make_node("Exp", [name + "_out"], [name + "_out"], name)], 2),
    "cycle_in_a_body": (lambda name: [loop("l_" + name, "three", [helper.make_node("Exp", ["u"], ["u"], name),
                                                                  helper.make_node("Relu", ["h"], ["h2"])]),
                                      helper.make_node("Relu", [f"l_{name}_out"], [name + "_out"])], 2),
    "in_a_branch": (lambda name: [branches("if_" + name, [helper.make_node("MatMul", ["x", "seven"], ["made"], name)]),
                                  helper.make_node("Relu", [f"if_{name}_out"], [name + "_out"])], 2),
    "in_an_unrolled_loop": (lambda name: [loop("l_" + name, "three", [helper.make_node("Foo" + name, ["h"], ["h2"], name)]),
                                          helper.make_node("Relu", [f"l_{name}_out"], [name + "_out"])], 3),
    "in_a_copied_body": (lambda name: [loop("l_" + name, "three", [helper.make_node("Add", ["h", "seven"], ["h2"], name)]),
                                       helper.make_node("Relu", [f"l_{name}_out"], [name + "_out"])], 2),
    "in_a_loop": (lambda name: [loop("l_" + name, "trips", [helper.make_node("Add", ["h", "seven"], ["h2"], name)]),
                                helper.make_node("Relu", [f"l_{name}_out"], [name + "_out"])], 2),
    "in_a_loop_that_grows": (lambda name: [loop("l_" + name, "forty", [
        helper.make_node("Add", ["x", "seven"], ["unused"], name), helper.make_node("Concat", ["h", "x"], ["h2"], axis=1)]),
        helper.make_node("Relu", [f"l_{name}_out"], [name + "_out"])], 2),
}


# What reads only what was refused; of each an error of its own would follow.
def followers(kind, name, rng):
    out, after = name + "_out", name + "_after"
    if kind == "domain":  # it may have made a sequence
        return [helper.make_node("SequenceAt", [out, "three"], [after], after)]
    return rng.choice([
        [helper.make_node("Softmax", [out], [after], after)],
        [helper.make_node("MatMul", [out, "seven"], [after], after)],
        [helper.make_node("Reshape", ["x", out], [after], after)],
        [helper.make_node("LSTM", ["x", out, out], [after], after)],  # its hidden size is that of its weights
        [helper.make_node("SplitToSequence", [out], [after], after)],
        [helper.make_node("Loop", [out, "", out], [after], after, body=body(
            "body", [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Relu", ["h"], ["h2"])], ["on", "h2"],
            carried("h")))],
        [helper.make_node("If", [out], [after], after, then_branch=body("a", [helper.make_node("Relu", [out], ["b"])], ["b"]),
                          else_branch=body("c", [helper.make_node("Relu", ["x"], ["d"])], ["d"]))],
        [helper.make_node("Scan", [out, "x"], [after, after + "2"], after, num_scan_inputs=1, scan_input_axes=[1], body=body(
            "body", [helper.make_node("Add", ["s", "e"], ["s2"])], ["s2", "s2"],
            [tensor_info("s", F32, None), tensor_info("e", F32, None)]))],
    ])


def planted(kinds, seed):
    """A model that has each of these refusals, each with a follower, in random order."""
    rng = random.Random(seed)
    groups = []
    for k, kind in enumerate(kinds):
        name = f"planted{k}"
        groups.append(REFUSALS[kind][0](name) + followers(kind, name, rng))
    groups.append([helper.make_node("ReduceSum", ["n"], ["trips"], "sum", keepdims=0)])
    groups.append([helper.make_node("Greater", ["trips", "three"], ["truth"], "greater")])
    rng.shuffle(groups)
    nodes = [node for group in groups for node in group]
    outputs = {f"planted{k}_after": (F32, None) for k in range(len(kinds))}
    constants = {"seven": numpy.ones((7,), numpy.float32), "three": numpy.array(3), "forty": numpy.array(40)}
    return model_of(nodes, X, outputs, constants)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kinds", [[kind] for kind in REFUSALS] + [list(REFUSALS) * 2], ids=lambda kinds: kinds[0] if
                         len(kinds) == 1 else "all")
def test_each_refusal_is_told_once_and_nothing_that_follows(rnncc, tmp_path, kinds, seed):
    code = 2 if 2 in [REFUSALS[kind][1] for kind in kinds] else 3
    text = refused(rnncc, tmp_path, write(tmp_path, planted(kinds, seed)), code)
    errors = [line for line in text.splitlines() if " error: " in line]
    for k, kind in enumerate(kinds):
        assert sum(re.search(rf"planted{k}\b", line) is not None for line in errors) == 1, (kind, text)
    assert len(errors) == len(kinds), text
    assert "_after" not in text


def test_json_models_tell_all_at_once_too(rnncc, tmp_path):
    def node(op, inputs, output, **fields):
        return {"op": op, "name": output, "inputs": inputs, "outputs": [output], **fields}

    branch = {"nodes": [node("Foo", ["x"], "p6"), node("Add", ["x", "five"], "p7"), node("Relu", ["p6"], "z")], "outputs": ["z"]}
    circle = {"nodes": [node("Exp", ["u"], "u"), node("Relu", ["x"], "z")], "outputs": ["z"]}
    model = small_model()
    model["inputs"] += [{"name": "bad", "dtype": "complex64", "shape": [1]}, {"name": "truth", "dtype": "bool", "shape": []}]
    model["constants"]["five"] = {"dtype": "f32", "shape": [5], "data": [0] * 5}
    model["nodes"] += [
        node("Foo", ["x"], "p0"), node("Relu", ["x"], "p1", attributes={"alpha": 1}), node("Add", ["x", "five"], "p2"),
        node("MatMul", ["p0", "five"], "after"), node("MatMul", ["x"], "p3"), node("Concat", ["p1", "p2"], "after2", attributes={"axis": 9}),
        node("Add", ["bad", "five"], "after3"), node("Softmax", ["x"], "p4", attributes={"axis": 7}), node("LSTM", ["x"], "p5"),
        node("If", ["truth"], "after4", attributes={"then_branch": branch, "else_branch": branch}),
        node("If", ["truth"], "after5", attributes={"then_branch": circle, "else_branch": circle})]
    said = refused(rnncc, tmp_path, model, 2)
    places = [line.split(": ")[1] for line in said.splitlines()]
    then, other = (f"nodes[11].attributes.{name}_branch" for name in ("then", "else"))
    assert sorted(places) == sorted([
        "inputs[1].dtype", "nodes[2].op", "nodes[3].attributes.alpha", "nodes[4]", "nodes[6]", "nodes[9]", "nodes[10]", "nodes[10]",
        then + ".nodes[0].op", then + ".nodes[1]", other + ".nodes[0].op", other + ".nodes[1]",
        *(f"nodes[12].attributes.{name}_branch.nodes[0]" for name in ("then", "else"))]), said
