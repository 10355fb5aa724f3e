# SPDX-License-Identifier: MIT
"""A network that listens to streams, in pieces of any length, and what it says of each by itself."""
import numpy

from support.model_builder import Model

MOST, UNITS, FEATURES, STEPS = 8, 5, 3, 30


def listener(name="listener", batch=True, units=UNITS):
    """y[T, 1, B, H] of x[T, B, 3], with the states h0 and c0; without a batch, B is 1 and the states have no slots."""
    rng, model = numpy.random.default_rng(1), Model(name)
    model.dim("T", 1, 5, 40)
    count, axis = ("B", {"batch_axis": 1}) if batch else (1, {})
    if batch:
        model.dim("B", 1, 2, MOST)
    x = model.input("x", "f32", ["T", count, FEATURES])
    h, c = (model.state(f"{s}0", f"{s}N", "f32", [1, count, units], **axis) for s in "hc")
    w, r = (model.constant(rng.standard_normal((1, 4 * units, n)).astype("f4")) for n in (FEATURES, units))
    model.output(model.node("LSTM", [x, w, r, None, None, h, c], ["y", "hN", "cN"], hidden_size=units)[0])
    return model


def sound(stream):
    return numpy.random.default_rng(stream).standard_normal((STEPS, FEATURES)).astype("f4")


def expected(module, stream):
    """What the network says of a whole stream that it hears alone: [T, H]."""
    with module.context() as context:
        return context(sound(stream)[:, None])[:, 0, 0]


def close(found, due):
    """Of sums of 8 products and functions of them, in f32."""
    return found.shape == due.shape and numpy.allclose(found, due, rtol=0, atol=1e-6)
