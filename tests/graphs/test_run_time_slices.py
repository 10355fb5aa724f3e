# SPDX-License-Identifier: MIT
"""A Slice whose bounds only the run knows: a module and the reference return what ONNX Runtime does, for bounds before,
among and behind the elements, and in the body of a loop."""
import numpy
import pytest

from support.bodies import Body
from support.flow import assert_same, same_at_all_threads
from support.model_builder import Model, random_array

LARGEST = numpy.iinfo(numpy.int64).max
BOUNDS = [-LARGEST - 1, -8, -7, -1, 0, 4, 7, 8, 2**31 - 1, LARGEST]


def same_as_onnxruntime(compile, reference, model, folder, feeds, **named):
    """ONNX Runtime, the module with several numbers of threads, and some of it the reference."""
    same_at_all_threads(compile, model, folder, feeds, **named)
    path = model.write(folder)
    for feed in feeds[::5]:
        got, expected = reference.run(model, path, feed), model.onnx_run(feed)
        for name in model.outputs:
            assert_same(name, got[name], expected[name], 2.0**-20)


def bounds(*numbers, dtype=numpy.int64):
    limits = numpy.iinfo(dtype)
    return numpy.array([min(max(number, limits.min), limits.max) for number in numbers], dtype)


@pytest.mark.parametrize("dtype, index, step", [("f32", "i64", 1), ("i64", "i32", -1), ("f16", "i64", 5),
                                                ("bool", "i64", -3), ("f32", "i64", -LARGEST - 1)])
def test_bounds_are_read_in_the_run(compile, reference, tmp_path, step, dtype, index):
    model = Model()
    x = model.input("x", dtype, [3, model.dim("T", 1, 4, 7), 2])
    start, end = model.input("start", index, [1]), model.input("end", index, [1])
    numpy_index = numpy.int64 if index == "i64" else numpy.int32
    constants = [model.constant(bounds(number, dtype=numpy_index)) for number in (1, step)]
    model.output(model.node("Slice", [x, start, end, *constants]))
    rng = numpy.random.default_rng(1)
    feeds = [{"x": random_array(rng, dtype, (3, T, 2)), "start": bounds(start, dtype=numpy_index),
              "end": bounds(end, dtype=numpy_index)}
             for start in BOUNDS for end in BOUNDS for T in ([1, 7] if start == 0 else [7])]
    same_as_onnxruntime(compile, reference, model, tmp_path, feeds, threads=(1, 3))


@pytest.mark.parametrize("step", [-1, -3, 2])
def test_of_nothing_a_slice_is_nothing(compile, reference, tmp_path, step):
    """Forwards and backwards, in several ways: of an input's tail, of a constant, and of what a run finds."""
    model = Model()
    model.dim("T", 1, 3, 6)
    x, one, end = model.input("x", "f32", ["T", 2]), model.constant(bounds(1)), model.constant(bounds(LARGEST))
    found = model.node("Transpose", [model.node("NonZero", [x])])
    for data in (model.node("Slice", [x, one, end]), found, model.constant(numpy.zeros((0, 2), numpy.float32))):
        for first, last in ((-1, -LARGEST - 1), (5, -9), (0, LARGEST)):
            limits = [model.constant(bounds(number)) for number in (first, last, 0, step)]
            model.output(model.node("Slice", [data, *limits]))
    feeds = [{"x": numpy.arange(2 * T, dtype=numpy.float32).reshape(T, 2) * scale} for T in (1, 2, 6) for scale in (1, 0)]
    same_as_onnxruntime(compile, reference, model, tmp_path, feeds, threads=(1, 3))


def test_some_bounds_are_constants_and_several_axes_are_sliced(compile, reference, tmp_path):
    model = Model()
    x, start = model.input("x", "f32", [5, 6, 4]), model.input("start", "i64", [2])
    ends = model.constant(numpy.array([-1, LARGEST]))
    model.output(model.node("Slice", [x, start, ends, model.constant(numpy.array([-1, 0]))]),
                 model.node("Slice", [x, model.constant(numpy.array([2, 1])), start]))
    rng = numpy.random.default_rng(2)
    feeds = [{"x": random_array(rng, "f32", (5, 6, 4)), "start": rng.integers(-7, 8, 2)} for _ in range(12)]
    same_as_onnxruntime(compile, reference, model, tmp_path, feeds)


def test_a_sign_that_only_the_run_knows(compile, reference, tmp_path):
    """x[T - 3:]: from the end if there are fewer than 3 elements."""
    model = Model()
    x = model.input("x", "f32", [model.dim("T", 1, 4, 7)])
    first = model.node("Sub", [model.node("Shape", [x]), model.constant(numpy.array([3]))])
    model.output(model.node("Slice", [x, first, model.constant(numpy.array([LARGEST]))]))
    feeds = [{"x": numpy.arange(T, dtype=numpy.float32)} for T in range(1, 8)]
    same_as_onnxruntime(compile, reference, model, tmp_path, feeds)


def test_slices_by_the_same_bounds_are_as_long_as_each_other(rnncc, compile, reference, tmp_path):
    """Nothing is left for a run to check."""
    model = Model()
    T = model.dim("T", 1, 4, 9)
    x, w = model.input("x", "f32", [T, 3]), model.input("w", "f32", [T, 1])
    bounds = [model.input("start", "i64", [1]), model.input("end", "i64", [1]), model.constant(numpy.array([0]))]
    model.output(model.node("Mul", [model.node("Slice", [value, *bounds]) for value in (x, w)]))
    rng = numpy.random.default_rng(3)
    feeds = [{"x": random_array(rng, "f32", (9, 3)), "w": random_array(rng, "f32", (9, 1)), "start": bounds[:1],
              "end": bounds[1:]} for bounds in rng.integers(-9, 10, (12, 2))]
    same_as_onnxruntime(compile, reference, model, tmp_path, feeds)
    assert "each run checks" not in rnncc(model.write(tmp_path), "-o", tmp_path / "m.so").stderr


@pytest.mark.parametrize("reduction", ["ReduceSum", "ReduceMean", "ReduceMax"])
def test_bags_of_rows_are_reduced_in_a_loop(compile, tmp_path, reduction):
    """A bag is what is between two offsets; of none the sum and the mean are 0, and the maximum is -infinity."""
    model = Model()
    rows, B, N = 20, model.dim("B", 1, 4, 30), model.dim("N", 1, 9, 50)
    table = model.constant(random_array(numpy.random.default_rng(4), "f32", (rows, 5)))
    ids, offsets = model.input("ids", "i64", [N]), model.input("offsets", "i64", [B])
    axis, one = model.constant(numpy.array([0])), model.constant(numpy.array(1))
    every = model.node("Concat", [offsets, model.node("Shape", [ids])], axis=0)
    body = Body(model, i="i64", c="bool")
    places = [body.inputs[0], body.node("Add", [body.inputs[0], one])]
    bounds = [body.node("Unsqueeze", [body.node("Gather", [every, place], axis=0), axis]) for place in places]
    taken = body.node("Gather", [table, body.node("Slice", [ids, *bounds, axis])], axis=0)
    body.output(body.node("Cast", [model.constant(numpy.array(True))], to="bool"),
                body.node(reduction, [taken, axis], keepdims=0))
    bags = model.node("Loop", [model.node("Size", [offsets]), None], body=body)
    as_many = model.node("Cast", [model.node("Unsqueeze", [offsets, one])], to="f32")
    model.output(bags, model.node("Concat", [bags, as_many], axis=1))
    rng = numpy.random.default_rng(5)
    feeds = []
    for b, n in [(1, 1), (4, 9), (30, 50), (17, 3)]:
        offsets = numpy.sort(rng.integers(0, n + 1, b))
        offsets[0] = 0
        feeds.append({"ids": rng.integers(0, rows, n), "offsets": offsets})
    same_at_all_threads(compile, model, tmp_path, feeds, tolerance=0 if reduction == "ReduceMax" else 2.0**-20)
