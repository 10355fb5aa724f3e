# SPDX-License-Identifier: MIT
"""Loops in loops, as deep as a model may have them: what a gradient flows through is found in each body as often as it has
values to mark, not as often as all loops around it turn together."""
import numpy

from support.bodies import Body
from support.model_builder import Model

DEPTH, CARRIED = 15, 4  # a model in JSON is nested 64 deep at most


def nested():
    """Of each loop the last tensor that it carries is the next loop's result, and hands its marks on in four turns."""
    model = Model()
    x, n = model.input("x", "f32", [2]), model.input("n", "i64", [])
    weight = model.constant(numpy.ones(2, numpy.float32), "w")
    turns = model.node("Min", [n, model.constant(numpy.array(20))])

    def level(depth, outer):
        body = Body(model, i="i64", c="bool", **{f"y{k}": "f32" for k in range(CARRIED)})
        carried = body.inputs[2:]
        last = level(depth - 1, body) if depth > 1 else body.node("Mul", [carried[-1], weight])
        body.output(body.inputs[1], *[body.node("Identity", [value]) for value in carried[1:]], last)
        return outer.node("Loop", [turns, None, *[x] * CARRIED], CARRIED, body=body)[0]

    model.output(model.node("ReduceSum", [level(DEPTH, model)], keepdims=0))
    return model


def test_deep_loops_are_differentiated(rnncc, tmp_path):
    done = rnncc(nested().write(tmp_path), "--train", "--verify-each", "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
