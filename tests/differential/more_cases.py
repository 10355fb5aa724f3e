# SPDX-License-Identifier: MIT
"""Random models of one operator each for those that no other table of cases has: MORE[name](rng) -> (Model, feeds)."""
import numpy

from graphs.op_models import one_op, some_shape, uniform
from graphs.test_deform_conv import random_node

MORE = {}


def case(build):
    MORE[build.__name__] = build
    return build


@case
def dft(rng):
    shape = (*some_shape(rng, int(rng.integers(1, 3)), 4), int(rng.choice([1, 2, 5, 8, 12, 16, 17, 30, 64])), int(rng.integers(1, 3)))
    inverse = int(rng.integers(0, 2)) if shape[-1] == 2 else 0
    onesided = int(rng.integers(0, 2)) if not inverse and shape[-1] == 1 else 0
    return one_op("DFT", [uniform(rng, *shape), None, numpy.array(len(shape) - 2)], constants=(2,), inverse=inverse, onesided=onesided)


@case
def stft(rng):
    frame, step = int(rng.choice([8, 12, 16, 30])), int(rng.integers(3, 9))
    signal = uniform(rng, int(rng.integers(1, 3)), frame + int(rng.integers(0, 60)), 1)
    window = rng.uniform(0, 1, frame).astype(numpy.float32) if rng.random() < 0.6 else None
    length = None if window is not None and rng.random() < 0.5 else numpy.array(frame)
    if window is None and length is None:
        length = numpy.array(frame)
    return one_op("STFT", [signal, numpy.array(step), window, length], constants=(1, 2, 3), onesided=int(rng.integers(0, 2)))


@case
def deform_conv(rng):
    arrays, attributes = random_node(rng, planes=((3, 9), (3, 9)))
    names = ("x", "w", "offset", "bias", "mask")
    return one_op("DeformConv", [arrays.get(name) for name in names], constants=(1, 3), **attributes)


@case
def suppression(rng):
    """Corners and scores that are multiples of a power of two: overlaps are compared without rounding."""
    boxes, classes, images = int(rng.integers(1, 18)), int(rng.integers(1, 4)), int(rng.integers(1, 3))
    corners = rng.integers(0, 12, (images, boxes, 2))
    area = numpy.concatenate([corners, corners + rng.integers(1, 8, (images, boxes, 2))], axis=2).astype(numpy.float32)
    scores = (rng.permuted(numpy.tile(numpy.arange(1, boxes + 1), (images, classes, 1)), axis=2) / 32).astype(numpy.float32)
    limits = [numpy.array([int(rng.integers(0, boxes + 1))]), numpy.float32([0.3]), numpy.float32([0.1])]
    return one_op("NonMaxSuppression", [area, scores, *limits], constants=(2, 3, 4))


@case
def bias_add(rng):
    n, length, channels = some_shape(rng, 3, 9)
    return one_op("BiasAdd", [uniform(rng, n, length, channels), uniform(rng, channels), uniform(rng, n, length, channels)])


@case
def bias_split_gelu(rng):
    n, length, half = some_shape(rng, 3, 9)
    return one_op("BiasSplitGelu", [uniform(rng, n, length, 2 * half), uniform(rng, 2 * half)])


@case
def bias_softmax(rng):
    rows, length = some_shape(rng, 2, 17)
    return one_op("BiasSoftmax", [uniform(rng, 3, rows, length), uniform(rng, rows, length)], axis=2, is_inner_broadcast=0)


@case
def simplified_norm(rng):
    rows, length = some_shape(rng, 2, 17)
    return one_op("SimplifiedLayerNormalization", [uniform(rng, rows, length), uniform(rng, length)], axis=-1)
