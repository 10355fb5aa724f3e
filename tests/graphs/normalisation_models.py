# SPDX-License-Identifier: MIT
"""Random small models of one normalisation each: NORMALISATIONS[name](rng) -> (Model, feeds)."""
import numpy

from graphs.op_models import one_op, some_shape

NORMALISATIONS = {}


def case(name):
    def add(build):
        NORMALISATIONS[name] = build
        return build
    return add


def uniform(rng, shape, low=-2, high=2):
    return rng.uniform(low, high, shape).astype(numpy.float32)


def rows_shape(rng):
    """Few axes, the last of which fills some vectors."""
    return (*some_shape(rng, int(rng.integers(0, 4)), 4), int(rng.integers(1, 80)))


@case("LayerNormalization")
def layer_norm(rng):
    shape = rows_shape(rng)
    axis = int(rng.integers(0, len(shape)))
    parameters = [uniform(rng, shape[axis:]) for _ in range(int(rng.integers(1, 3)))]
    outputs = 3 if rng.random() < 0.5 else 1
    x = uniform(rng, shape) + numpy.float32(rng.choice([0, 5]))
    return one_op("LayerNormalization", [x, *parameters], constants=(1, 2) if rng.random() < 0.5 else (),
                  outputs=outputs, axis=axis - len(shape) if rng.random() < 0.5 else axis,
                  epsilon=float(rng.choice([1e-5, 0.1])))


@case("RMSNormalization")
def rms_norm(rng):
    shape = rows_shape(rng)
    axis = int(rng.integers(0, len(shape)))
    return one_op("RMSNormalization", [uniform(rng, shape), uniform(rng, shape[axis:])], axis=axis)


def channels_shape(rng, channels):
    return (int(rng.integers(1, 4)), channels, *some_shape(rng, int(rng.integers(1, 4)), 9))


@case("InstanceNormalization")
def instance_norm(rng):
    channels = int(rng.integers(1, 6))
    return one_op("InstanceNormalization", [uniform(rng, channels_shape(rng, channels)), uniform(rng, channels),
                                            uniform(rng, channels)], epsilon=float(rng.choice([1e-5, 0.1])))


@case("GroupNormalization")
def group_norm(rng):
    groups = int(rng.integers(1, 4))
    channels = groups * int(rng.integers(1, 5))
    return one_op("GroupNormalization", [uniform(rng, channels_shape(rng, channels)), uniform(rng, channels),
                                         uniform(rng, channels)], constants=(1, 2), num_groups=groups)


@case("LRN")
def lrn(rng):
    shape = (int(rng.integers(1, 3)), *some_shape(rng, 1, 20), *some_shape(rng, 2, 9))
    return one_op("LRN", [uniform(rng, shape, -9, 9)], size=1 + 2 * int(rng.integers(0, 4)),
                  alpha=float(rng.choice([1e-4, 0.5])), bias=float(rng.choice([1.0, 2.0])),
                  beta=float(rng.choice([0.75, 0.5, 1.0, 0.6])))


@case("LpNormalization")
def lp_norm(rng):
    shape = rows_shape(rng)
    x = uniform(rng, shape)
    x[0] *= int(rng.integers(0, 2))  # a group of zeros, perhaps
    return one_op("LpNormalization", [x], axis=int(rng.integers(-len(shape), len(shape))), p=int(rng.integers(1, 3)))
