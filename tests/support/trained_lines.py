# SPDX-License-Identifier: MIT
"""The smallest networks that are trained, for tests of the bindings: y = w x + b, of x [8], where w and b are 0."""
import numpy

from support.model_builder import Model


def line(model):
    w, b = (model.constant(numpy.zeros(1, numpy.float32), name) for name in "wb")
    return model.node("Add", [model.node("Mul", [model.input("x", "f32", [8]), w]), b])


def line_alone():
    model = Model("line")
    model.output(model.node("Identity", [line(model)], ["y"]))
    return model


def line_to_learn():
    model = Model()
    error = model.node("Sub", [line(model), model.input("t", "f32", [8])])
    model.output(model.node("ReduceMean", [model.node("Mul", [error, error])], ["loss"], keepdims=0))
    return model
