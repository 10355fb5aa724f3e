# SPDX-License-Identifier: MIT
"""A small network of each kind, in one model: for tests of whole modules."""
import numpy

from support.merge import merged
from support.model_builder import Model


def values(rng, *shape):
    return rng.uniform(-1, 1, shape).astype(numpy.float32)


def convolutional(rng):
    """Channels that fill no vector of any target: 18 = 16 + 2."""
    model, feeds = Model(), {"x": values(rng, 2, 5, 9, 7)}
    x = model.input("x", "f32", [2, 5, 9, 7])
    x = model.node("Relu", [model.node("Conv", [x, model.constant(values(rng, 18, 5, 3, 3) / 8)], pads=[1, 1, 1, 1])])
    x = model.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = model.node("Conv", [x, model.constant(values(rng, 21, 18, 1, 1) / 4)])
    x = model.node("Flatten", [model.node("GlobalAveragePool", [x])])
    model.output(model.node("Softmax", [x], axis=1))
    return model, feeds


def recurrent(rng, op, gates, samples=3, **attributes):
    model, feeds = Model(), {"x": values(rng, 5, samples, 7)}
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    weights = [model.constant(values(rng, directions, gates * 11, columns) / 3) for columns in (7, 11)]
    x = model.node(op, [model.input("x", "f32", [5, samples, 7]), *weights], hidden_size=11, **attributes)
    model.output(x)
    return model, feeds


def networks():
    rng = numpy.random.default_rng(17)
    return merged([convolutional(rng), recurrent(rng, "LSTM", 4),
                   recurrent(rng, "GRU", 3, direction="bidirectional", linear_before_reset=1)])
