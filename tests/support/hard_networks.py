# SPDX-License-Identifier: MIT
"""Networks of the kinds that run most differently, for tests of what the runtime bears: recurrent layers, convolutions, and
control flow that data decide."""
import numpy

from support.bodies import Body
from support.model_builder import Model


def recurrent():
    """Two layers, side by side on one input of run-time length."""
    model, draw = Model("recurrent"), numpy.random.default_rng(1).standard_normal
    x = model.input("x", "f32", [model.dim("T", 1, 12, 40), 2, 24])
    for op, gates in (("LSTM", 4), ("GRU", 3)):
        weights = [model.constant(draw((1, gates * 40, columns)).astype(numpy.float32) / 8) for columns in (24, 40)]
        model.output(*model.node(op, [x, *weights], 2, hidden_size=40))
    return model, {"x": draw((12, 2, 24)).astype(numpy.float32)}


def convolutional():
    model, draw = Model("convolutional"), numpy.random.default_rng(3).standard_normal
    x, channels = model.input("x", "f32", [2, 3, 24, 24]), 3
    for filters in (24, 40):
        w = model.constant(draw((filters, channels, 3, 3)).astype(numpy.float32) / 8)
        x, channels = model.node("Relu", [model.node("Conv", [x, w], pads=[1, 1, 1, 1])]), filters
    model.output(model.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2]), model.node("GlobalAveragePool", [x]))
    return model, {"x": draw((2, 3, 24, 24)).astype(numpy.float32)}


def control():
    """A Loop whose count the data say, in which an If chooses."""
    model, draw = Model("control"), numpy.random.default_rng(2).standard_normal
    x, n, c = model.input("x", "f32", [20, 48]), model.input("n", "i64", []), model.input("c", "bool", [])
    w = model.constant(draw((48, 48)).astype(numpy.float32) / 8)
    body, branches = Body(model, number="i64", condition="bool", carried="f32"), [Body(model), Body(model)]
    for branch, op in zip(branches, ("Tanh", "Sigmoid")):
        branch.output(branch.node(op, [branch.node("MatMul", [body.inputs[2], w])]))
    body.output(body.inputs[1], body.node("If", [c], then_branch=branches[0], else_branch=branches[1]))
    model.output(model.node("Loop", [model.node("Add", [n, n]), None, x], body=body))
    return model, {"x": draw((20, 48)).astype(numpy.float32), "n": numpy.array(2), "c": numpy.array(True)}
