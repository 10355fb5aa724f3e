# SPDX-License-Identifier: MIT
"""`--emit=dot`: the graph for Graphviz."""
import re

import numpy

from support.model_builder import Model

PLANE = "f32[N,16,6,40]"
IN = r"x\"\\??ü"
CONV, NORMALISED, CHAIN, PRODUCT = (r"Conv + Relu\n\"1\"\\?", r"BatchNormalization + Relu + Conv\nsecond", r"Neg + Exp\nneg",
                                    r"ReducedChain + Mul > ReduceSum\nproduct")
BLOCKED = rf"LayoutTransform\n{IN}"
ROW_MAJOR = [r"LayoutTransform\nv2_0", r"LayoutTransform\nv5_0"]
EDGES = {("h", r"Neg\nstate", "f32[1,4]"), (IN, BLOCKED, "f32[N,3,8,42]"), (BLOCKED, CONV, "f32[N,3,8,42]"),
         (CONV, NORMALISED, PLANE), (CONV, ROW_MAJOR[0], PLANE), (ROW_MAJOR[0], CHAIN, PLANE), (ROW_MAJOR[0], "v2_0", PLANE),
         (NORMALISED, ROW_MAJOR[1], PLANE), (ROW_MAJOR[1], "v5_0", PLANE), (CHAIN, PRODUCT, PLANE), (PRODUCT, "v8_0", "f32[N,16,6,1]")}


def network():
    """A name with what dot escapes, and one of each way in which nodes become part of others; a state."""
    model = Model("dot")
    ones = lambda *shape: model.constant(numpy.ones(shape, numpy.float32))

    def node(name, op, *inputs):
        made = model.node(op, inputs)
        model.nodes[-1]["name"] = name
        return made

    x = model.input('x"\\\n\x7fü', "f32", [model.dim("N", 1, 2, 4), 3, 8, 42])
    model.state("h", node("state", "Neg", "h"), "f32", [1, 4])
    y = node("relu", "Relu", node('"1"\\\t', "Conv", x, ones(16, 3, 3, 3)))
    normalised = node("relu_2", "Relu", node("norm", "BatchNormalization", y, *(ones(16) for _ in range(4))))
    z = node("second", "Conv", normalised, ones(16, 16, 1, 1))
    model.output(z, y, node("product", "MatMul", node("exp", "Exp", node("neg", "Neg", y)), ones(40, 1)))
    return model


def test_it_has_each_node_and_each_value_between_them(rnncc, tmp_path):
    done = rnncc(network().write(tmp_path), "--emit=dot", "--target=x86-64-v3", "-o", "-")
    assert done.returncode == 0, done.stderr
    head, *lines, end = done.stdout.splitlines()
    assert (head, end) == ("digraph model {", "}")
    labels = dict(re.findall(r'^  (\w+) \[(?:shape=ellipse, )?label="((?:[^"\\]|\\.)*)"\];$', done.stdout, re.MULTILINE))
    edges = re.findall(r'^  (\w+) -> (\w+) \[label="(.*)"\];$', done.stdout, re.MULTILINE)
    assert len(lines) == 2 + len(labels) + len(edges), "each line is one of these, or a default"
    round_ones = set(re.findall(r"^  (\w+) \[shape=ellipse", done.stdout, re.MULTILINE))
    assert round_ones == {name for name in labels if not name.startswith("n")}
    assert {(labels[a], labels[b], shape) for a, b, shape in edges} == EDGES and len(edges) == len(EDGES)
