# SPDX-License-Identifier: MIT
"""Random small models of operators that rnncc expands, and of a few along an axis that are compared in the same way:
EXPANDED[name](rng) -> (Model, feeds)."""
import numpy

from graphs.op_models import broadcast_pair, one_op, some_axes, some_shape, whole
from support.model_builder import Model, random_array

EXPANDED = {}


def expanded(name):
    def add(build):
        EXPANDED[name] = build
        return build
    return add


@expanded("Mean")
def mean(rng):
    shapes = [*broadcast_pair(rng)] if rng.random() < 0.7 else [some_shape(rng)] * int(rng.integers(1, 5))
    return one_op("Mean", [random_array(rng, "f32", shape) for shape in shapes])


@expanded("MeanVarianceNormalization")
def mean_variance(rng):
    """At least two elements along the axes: the deviation of one is 0, and quotients by it are only rounding."""
    shape = tuple(extent + 1 for extent in some_shape(rng, 4, 5))
    axes = [int(axis) for axis in some_axes(rng, 4)] if rng.random() < 0.7 else None
    return one_op("MeanVarianceNormalization", [random_array(rng, "f32", shape)], axes=axes)


@expanded("CumSum")
def cumsum(rng):
    shape = some_shape(rng, int(rng.integers(1, 5)))
    x = random_array(rng, str(rng.choice(["i32", "i64"])), shape) if rng.random() < 0.5 else whole(rng, shape)
    return one_op("CumSum", [x, numpy.array(rng.integers(-len(shape), len(shape)))], constants=(1,),
                  exclusive=int(rng.integers(0, 2)), reverse=int(rng.integers(0, 2)))


@expanded("Det")
def determinant(rng):
    order = int(rng.integers(1, 7))
    return one_op("Det", [rng.uniform(-1, 1, (*some_shape(rng, int(rng.integers(0, 3)), 3), order, order)).astype("f")])


@expanded("Hardmax")
def hardmax(rng):
    """Few different numbers, because of equal maxima the first counts."""
    shape = some_shape(rng, int(rng.integers(1, 5)), 9)
    return one_op("Hardmax", [whole(rng, shape, 0, 3)], axis=int(rng.integers(-len(shape), len(shape))))


# Results that depend on no run-time input are multiplied by one.

def scaled(rng, model, values, shape):
    x = random_array(rng, "f32", shape)
    model.output(model.node("Mul", [model.input("x", "f32", shape), values]))
    return model, {"x": x}


def add_window(op):
    @expanded(op)
    def build(rng):
        model, size = Model(), int(rng.integers(2, 300))
        window = model.node(op, [model.constant(numpy.array(size))], periodic=int(rng.integers(0, 2)))
        return scaled(rng, model, window, (size,))


for window_name in ("HannWindow", "HammingWindow", "BlackmanWindow"):
    add_window(window_name)


@expanded("MelWeightMatrix")
def mel_weights(rng):
    model, filters, length = Model(), int(rng.integers(1, 60)), int(rng.integers(16, 700))
    rate = int(rng.integers(4000, 48000))
    operands = [numpy.array(filters), numpy.array(length), numpy.array(rate),
                numpy.array(rng.uniform(0, rate / 8), "f"), numpy.array(rng.uniform(rate / 4, rate / 2), "f")]
    weights = model.node("MelWeightMatrix", [model.constant(operand) for operand in operands])
    return scaled(rng, model, weights, (length // 2 + 1, filters))
