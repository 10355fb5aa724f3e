# SPDX-License-Identifier: MIT
"""Extents that only the data tells: what a module returns is what ONNX Runtime does, at any number of threads, and
nothing at all is a result like others."""
import numpy
import pytest

from support.flow import same_at_all_threads
from support.model_builder import Model, random_array

DENSITIES = [0.0, 0.02, 0.5, 1.0]


def sparse(rng, dtype, shape, density):
    array = random_array(rng, dtype, shape)
    return numpy.where(rng.random(shape) < density, numpy.where(array == 0, 1, array), 0).astype(array.dtype)


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("dtype, shape", [("f32", (5, 7, 3)), ("bool", (300,)), ("f16", (3, 50)), ("i64", (2, 1, 9, 4)), ("u8", (33, 5))])
def test_nonzero_finds_every_place(compile, tmp_path, dtype, shape, density):
    rng = numpy.random.default_rng([len(shape), int(100 * density)])
    model = Model()
    model.output(model.node("NonZero", [model.input("x", dtype, shape)]))
    same_at_all_threads(compile, model, tmp_path, [{"x": sparse(rng, dtype, shape, density)}])


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("short", [False, True])
def test_compress_keeps_what_the_condition_says(compile, tmp_path, axis, short):
    rng = numpy.random.default_rng(0 if axis is None else axis + 5)
    shape = (6, 5, 4)
    length = (120 if axis is None else shape[axis]) - short
    model = Model()
    x, condition = model.input("x", "f32", shape), model.input("c", "bool", [length])
    model.output(model.node("Compress", [x, condition], axis=axis))
    feeds = [{"x": random_array(rng, "f32", shape), "c": rng.random(length) < density} for density in DENSITIES]
    same_at_all_threads(compile, model, tmp_path, feeds)


def filtered():
    """Rows of x[T,4] whose sum is positive, and what becomes of them: the chain has two measured extents."""
    model = Model()
    x = model.input("x", "f32", [model.dim("T", 0, 6, 40), 4])
    w = model.constant(numpy.arange(12, dtype=numpy.float32).reshape(4, 3))
    zero, axis = model.constant(numpy.float32(0)), model.constant(numpy.array([1]))
    positive = model.node("Greater", [model.node("ReduceSum", [x, axis], keepdims=0), zero])
    rows = model.node("Compress", [x, positive], axis=0)
    product = model.node("Relu", [model.node("MatMul", [rows, w])])
    places = model.node("NonZero", [product])
    flat = model.node("Reshape", [product, model.constant(numpy.array([-1]))])
    model.output(rows, product, places, model.node("Shape", [places]),
                 model.node("Concat", [product, product], axis=0),
                 model.node("ReduceSum", [flat], keepdims=0),
                 model.node("Transpose", [places], perm=[1, 0]), model.node("Softmax", [product], axis=1))
    return model


def test_what_follows_runs_at_the_measured_extent(compile, tmp_path):
    rng = numpy.random.default_rng(3)
    feeds = [{"x": rng.integers(-3, 4, (T, 4)).astype(numpy.float32)} for T in (1, 6, 40, 3, 0)]
    feeds.append({"x": numpy.full((5, 4), -1, numpy.float32)})
    same_at_all_threads(compile, filtered(), tmp_path, feeds, tolerance=2.0**-20)


def test_constants_are_counted_when_compiled(compile, tmp_path):
    model = Model()
    x = model.input("x", "f32", [4, 3])
    condition = model.constant(numpy.array([True, False, True, True]))
    kept = model.node("Compress", [x, condition], axis=0)
    model.output(kept, model.node("NonZero", [model.constant(numpy.eye(3, dtype=numpy.float32))]),
                 model.node("Reshape", [kept, model.constant(numpy.array([9]))]))
    x = numpy.arange(12, dtype=numpy.float32).reshape(4, 3)
    same_at_all_threads(compile, model, tmp_path, [{"x": x}])


EMPTY = {
    "Add": lambda m, x: m.node("Add", [x, m.constant(numpy.ones((1, 3), numpy.float32))]),
    "Concat": lambda m, x: m.node("Concat", [x, m.constant(numpy.ones((2, 3), numpy.float32)), x], axis=0),
    "MatMul of no depth": lambda m, x: m.node("MatMul", [m.node("Transpose", [x], perm=[1, 0]), x]),
    "MatMul of no rows": lambda m, x: m.node("MatMul", [x, m.constant(numpy.ones((3, 2), numpy.float32))]),
    "ReduceSum": lambda m, x: m.node("ReduceSum", [x, m.constant(numpy.array([0]))], keepdims=0),
    "ReduceProd": lambda m, x: m.node("ReduceProd", [x, m.constant(numpy.array([0]))], keepdims=0),
    "ReduceSumSquare": lambda m, x: m.node("ReduceSumSquare", [x], keepdims=0),
    "Transpose": lambda m, x: m.node("Transpose", [x], perm=[1, 0]),
    "Softmax": lambda m, x: m.node("Softmax", [x]),
    "Slice": lambda m, x: m.node("Slice", [x, m.constant(numpy.array([0])), m.constant(numpy.array([2]))]),
    "Gather": lambda m, x: m.node("Gather", [x, m.constant(numpy.array([2, 0]))], axis=1),
    "Flatten": lambda m, x: m.node("Flatten", [x]),
}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("static", [False, True])
def test_nothing_is_computed_of_nothing(compile, tmp_path, name, static):
    model = Model()
    x = model.input("x", "f32", [0 if static else model.dim("N", 0, 3, 5), 3])
    model.output(EMPTY[name](model, x))
    feeds = [{"x": numpy.arange(3 * n, dtype=numpy.float32).reshape(n, 3)} for n in ([0] if static else [0, 1, 5])]
    same_at_all_threads(compile, model, tmp_path, feeds, threads=(1, 3), tolerance=2.0**-20)
