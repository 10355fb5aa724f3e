# SPDX-License-Identifier: MIT
"""Random small models of one window op each, mostly over three spatial axes: VOLUMES[name](rng) -> (Model, feeds).
Integers make sums exact."""
import numpy

from graphs.op_models import one_op, some_shape, whole, window
from support.convolutional import random_convolution

VOLUMES = {}
ROUNDED = set()  # cases whose results are rounded


def case(name, exact=True):
    def add(build):
        VOLUMES[name] = build
        if not exact:
            ROUNDED.add(name)
        return build
    return add


@case("Conv")
def conv(rng):
    spatial = 3
    extents, kernel, attributes = window(rng, spatial, 5)
    groups = int(rng.choice([1, 1, 2]))
    channels, kernels = groups * int(rng.integers(1, 4)), groups * int(rng.integers(1, 10))
    x = whole(rng, (int(rng.integers(1, 3)), channels, *extents))
    bias = whole(rng, (kernels,)) if rng.random() < 0.5 else None
    return one_op("Conv", [x, whole(rng, (kernels, channels // groups, *kernel)), bias],
                  constants=(1, 2) if rng.random() < 0.8 else (), group=groups, **attributes)


@case("Conv and what follows")
def conv_and_more(rng):
    return random_convolution(rng, 3)


@case("ConvTranspose")
def conv_transpose(rng):
    spatial = int(rng.choice([1, 2, 3, 3]))
    kernel, strides, dilations = ([int(k) for k in rng.integers(1, most, spatial)] for most in (4, 4, 3))
    extents = some_shape(rng, spatial, 5)
    full = [(e - 1) * s + (k - 1) * d + 1 for e, s, k, d in zip(extents, strides, kernel, dilations)]
    attributes = {"strides": strides, "dilations": dilations}
    if rng.random() < 0.5:
        attributes["output_shape"] = [int(rng.integers(max(1, f - 2), f + s)) for f, s in zip(full, strides)]
    groups, channels = int(rng.choice([1, 2])), int(rng.integers(1, 4))
    x = whole(rng, (2, groups * channels, *extents))
    weights = whole(rng, (groups * channels, int(rng.integers(1, 9)), *kernel))
    return one_op("ConvTranspose", [x, weights], constants=(1,), group=groups, **attributes)


def pooled(rng, op, spatial, dtype=numpy.float32, **more):
    extents, kernel, attributes = window(rng, spatial, 5)
    if "auto_pad" not in attributes:
        attributes["ceil_mode"] = int(rng.integers(0, 2))
    low = 0 if dtype == numpy.uint8 else -50
    return one_op(op, [rng.integers(low, 50, (*some_shape(rng, 2, 3), *extents)).astype(dtype)], kernel_shape=kernel,
                  **attributes, **more)


@case("MaxPool")
def max_pool(rng):
    return pooled(rng, "MaxPool", 3)


@case("MaxPool of integers")
def max_pool_of_integers(rng):
    return pooled(rng, "MaxPool", int(rng.integers(1, 4)), rng.choice([numpy.int8, numpy.uint8]))


@case("MaxPool with indices")
def max_pool_with_indices(rng):
    return pooled(rng, "MaxPool", int(rng.integers(1, 4)), rng.choice([numpy.float32, numpy.uint8]), outputs=2,
                  storage_order=int(rng.integers(0, 2)))


@case("AveragePool", exact=False)
def average_pool(rng):
    return pooled(rng, "AveragePool", 3, count_include_pad=int(rng.integers(0, 2)))


@case("LpPool", exact=False)
def lp_pool(rng):
    return pooled(rng, "LpPool", int(rng.integers(1, 4)), p=int(rng.integers(1, 4)))


@case("GlobalLpPool", exact=False)
def global_lp_pool(rng):
    model, feeds = one_op("GlobalLpPool", [whole(rng, some_shape(rng, int(rng.integers(3, 6)), 7))],
                          p=int(rng.integers(1, 4)))
    model.opset = 21
    return model, feeds


@case("GlobalMaxPool")
def global_max_pool(rng):
    return one_op("GlobalMaxPool", [whole(rng, some_shape(rng, 5, 6))])


@case("GlobalAveragePool", exact=False)
def global_average_pool(rng):
    return one_op("GlobalAveragePool", [whole(rng, some_shape(rng, 5, 6))])


@case("BatchNormalization", exact=False)
def batch_norm(rng):
    shape = some_shape(rng, 5, 6)
    scale, bias, mean = (rng.uniform(-2, 2, shape[1]).astype(numpy.float32) for _ in range(3))
    variance = rng.uniform(0.1, 3, shape[1]).astype(numpy.float32)
    return one_op("BatchNormalization", [whole(rng, shape), scale, bias, mean, variance])


@case("MaxUnpool")
def max_unpool(rng):
    """On the choice of a MaxPool with windows that do not overlap."""
    spatial = int(rng.integers(1, 4))
    kernel = [int(k) for k in rng.integers(1, 4, spatial)]
    pooled_shape = some_shape(rng, spatial, 4)
    whole_shape = [e * k for e, k in zip(pooled_shape, kernel)]
    images = some_shape(rng, 2, 3)
    indices = numpy.zeros((*images, *pooled_shape), numpy.int64)
    for at in numpy.ndindex(*indices.shape):
        place = [o * k + int(rng.integers(0, k)) for o, k in zip(at[2:], kernel)]
        indices[at] = numpy.ravel_multi_index((*at[:2], *place), (*images, *whole_shape))
    return one_op("MaxUnpool", [whole(rng, indices.shape), indices], kernel_shape=kernel, strides=kernel)
