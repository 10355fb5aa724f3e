# SPDX-License-Identifier: MIT
"""Random small models of ops that move elements by index, or make them from shapes: CASES as in op_models."""
import numpy

from graphs.op_models import any_array, one_op, some_shape
from support.model_builder import random_array

CASES = {}
REDUCTIONS = ("none", "add", "mul", "min", "max")


def case(name):
    def add(build):
        CASES[name] = build
        return build
    return add


def whole_array(rng, dtype, shape):
    """Values whose sums and products f32 holds exactly."""
    return numpy.trunc(random_array(rng, dtype, shape, -3, 4)).astype(random_array(rng, dtype, ()).dtype)


def index_array(rng, shape, length):
    return rng.integers(-length, length, shape).astype(rng.choice([numpy.int32, numpy.int64]))


def constant_or_not(rng):
    return (1,) if rng.random() < 0.3 else ()


@case("GatherElements")
def gather_elements(rng):
    shape = some_shape(rng, int(rng.integers(1, 5)))
    axis = int(rng.integers(0, len(shape)))
    wanted = [int(rng.integers(1, 9 if k == axis else extent + 1)) for k, extent in enumerate(shape)]
    return one_op("GatherElements", [any_array(rng, shape), index_array(rng, wanted, shape[axis])],
                  constants=constant_or_not(rng), axis=axis - len(shape) if rng.random() < 0.5 else axis)


def index_tuples(rng, extents, shape):
    """[*shape, len(extents)]: entry k is within extents[k]."""
    tuples = [rng.integers(-extent, extent, shape) for extent in extents]
    return numpy.stack(tuples, axis=-1).astype(numpy.int64)


@case("GatherND")
def gather_nd(rng):
    shape = some_shape(rng, int(rng.integers(1, 5)))
    batch = int(rng.integers(0, len(shape)))
    depth = int(rng.integers(1, len(shape) - batch + 1))
    between = some_shape(rng, int(rng.integers(0, 2)), 4)
    indices = index_tuples(rng, shape[batch:batch + depth], (*shape[:batch], *between))
    return one_op("GatherND", [any_array(rng, shape), indices], constants=constant_or_not(rng), batch_dims=batch)


def add_scatter(reduction):
    @case(f"ScatterElements {reduction}")
    def elements(rng):
        shape = some_shape(rng, int(rng.integers(1, 4)))
        axis = int(rng.integers(0, len(shape)))
        wanted = [int(rng.integers(1, extent + 1)) for extent in shape]
        dtype = str(rng.choice(["f32", "i32", "i64"]))
        index = index_array(rng, wanted, shape[axis])
        if reduction == "none":  # the result of two updates of one place is not defined
            rows = [rng.permutation(shape[axis])[:wanted[axis]] for _ in range(index.size // wanted[axis])]
            rest = wanted[:axis] + wanted[axis + 1:]
            index = numpy.moveaxis(numpy.array(rows).reshape(*rest, wanted[axis]), -1, axis).astype(index.dtype)
        return one_op("ScatterElements", [whole_array(rng, dtype, shape), index, whole_array(rng, dtype, wanted)],
                      constants=constant_or_not(rng), axis=axis, reduction=reduction)

    @case(f"ScatterND {reduction}")
    def tuples(rng):
        shape = some_shape(rng, int(rng.integers(1, 5)))
        depth = int(rng.integers(1, len(shape) + 1))
        places = int(numpy.prod(shape[:depth]))
        n = int(rng.integers(1, places + 1))
        drawn = rng.permutation(places)[:n] if reduction == "none" else rng.integers(0, places, n)
        indices = numpy.stack(numpy.unravel_index(drawn, shape[:depth]), axis=-1).astype(numpy.int64)
        dtype = str(rng.choice(["f32", "i32", "i64"]))
        return one_op("ScatterND", [whole_array(rng, dtype, shape), indices,
                                    whole_array(rng, dtype, (n, *shape[depth:]))],
                      constants=constant_or_not(rng), reduction=reduction)


for kind in REDUCTIONS:
    add_scatter(kind)


@case("OneHot")
def one_hot(rng):
    shape, depth = some_shape(rng, int(rng.integers(1, 4)), 5), int(rng.integers(1, 9))
    dtype = rng.choice([numpy.int64, numpy.float32])
    values = random_array(rng, str(rng.choice(["f32", "i64"])), (2,))
    return one_op("OneHot", [rng.integers(-depth - 2, depth + 2, shape).astype(dtype),
                             numpy.array(depth, rng.choice([numpy.int64, numpy.float32])), values],
                  constants=(1,), axis=int(rng.integers(-len(shape) - 1, len(shape) + 1)))


def add_top_k(dtype):
    @case(f"TopK {dtype}")
    def build(rng):
        shape = some_shape(rng, int(rng.integers(1, 4)), 12)
        axis = int(rng.integers(0, len(shape)))
        k = numpy.array([rng.integers(1, shape[axis] + 1)], numpy.int64)
        x = random_array(rng, dtype, shape, -4, 5)
        if rng.random() < 0.5:
            x = numpy.trunc(x).astype(x.dtype)  # ties
        return one_op("TopK", [x, k], constants=(1,), outputs=2, axis=axis, largest=int(rng.integers(0, 2)))


for op_dtype in ("f32", "i32", "i64"):
    add_top_k(op_dtype)


@case("ReverseSequence")
def reverse_sequence(rng):
    shape, time = some_shape(rng, int(rng.integers(2, 5))), int(rng.integers(0, 2))
    lengths = rng.integers(0, shape[time] + 1, shape[1 - time])
    return one_op("ReverseSequence", [any_array(rng, shape), lengths], constants=constant_or_not(rng), time_axis=time,
                  batch_axis=1 - time)


@case("Trilu")
def trilu(rng):
    k = numpy.array(rng.integers(-9, 10), numpy.int64) if rng.random() < 0.8 else None
    x = random_array(rng, str(rng.choice(["f32", "i64", "bool"])), some_shape(rng, int(rng.integers(2, 5))))
    return one_op("Trilu", [x, k], constants=(1,), upper=int(rng.integers(0, 2)))


@case("Tile")
def tile(rng):
    shape = some_shape(rng, int(rng.integers(1, 5)), 5)
    return one_op("Tile", [any_array(rng, shape), rng.integers(1, 4, len(shape))], constants=(1,))


@case("DepthToSpace")
def depth_to_space(rng):
    block = int(rng.integers(1, 4))
    n, c, h, w = some_shape(rng, 4, 5)
    x = random_array(rng, "f32", (n, c * block * block, h, w))
    return one_op("DepthToSpace", [x], blocksize=block, mode=str(rng.choice(["DCR", "CRD"])))


@case("SpaceToDepth")
def space_to_depth(rng):
    block = int(rng.integers(1, 4))
    n, c, h, w = some_shape(rng, 4, 5)
    return one_op("SpaceToDepth", [random_array(rng, "f32", (n, c, h * block, w * block))], blocksize=block)


@case("EyeLike")
def eye_like(rng):
    x = random_array(rng, str(rng.choice(["f32", "i32", "i64"])), some_shape(rng, 2, 9))
    return one_op("EyeLike", [x], k=int(rng.integers(-9, 10)))


@case("Size")
def size(rng):
    return one_op("Size", [any_array(rng, some_shape(rng))])
