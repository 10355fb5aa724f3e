# SPDX-License-Identifier: MIT
"""Data-dependent extents: a module returns what ONNX Runtime does, with any number of threads; an empty result is a
result like others."""
import numpy
import pytest

from conftest import build_directory
from support.flow import same_at_all_threads
from support.model_builder import Model, random_array, type_name
from support.module import Module, ModuleError
from support.reference import Reference

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
def test_compress_keeps_elements_by_the_condition(compile, tmp_path, axis, short):
    rng = numpy.random.default_rng(0 if axis is None else axis + 5)
    shape = (6, 5, 4)
    length = (120 if axis is None else shape[axis]) - short
    model = Model()
    x, condition = model.input("x", "f32", shape), model.input("c", "bool", [length])
    model.output(model.node("Compress", [x, condition], axis=axis))
    feeds = [{"x": random_array(rng, "f32", shape), "c": rng.random(length) < density} for density in DENSITIES]
    same_at_all_threads(compile, model, tmp_path, feeds)


def filtered():
    """Rows of x[T,4] whose sum is positive, and nodes that read them: the chain has two data-dependent extents."""
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


def test_later_nodes_run_at_the_data_dependent_extent(compile, tmp_path):
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
    "GatherND": lambda m, x: m.node("GatherND", [x, m.node("Transpose", [m.node("NonZero", [x])], perm=[1, 0])]),
    "Flatten": lambda m, x: m.node("Flatten", [x]),
}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("static", [False, True])
def test_empty_operands_give_the_right_results(compile, tmp_path, name, static):
    model = Model()
    x = model.input("x", "f32", [0 if static else model.dim("N", 0, 3, 5), 3])
    model.output(EMPTY[name](model, x))
    feeds = [{"x": numpy.arange(3 * n, dtype=numpy.float32).reshape(n, 3)} for n in ([0] if static else [0, 1, 5])]
    same_at_all_threads(compile, model, tmp_path, feeds, threads=(1, 3), tolerance=2.0**-20)


@pytest.mark.parametrize("op", ["Gather", "GatherND"])
def test_an_index_into_nothing_is_an_error(compile, tmp_path, op):
    model = Model()
    model.output(model.node(op, [model.input("x", "f32", [model.dim("N", 0, 3, 5), 3]), model.input("i", "i64", [2, 1])]))
    with Module(compile(model.write(tmp_path))) as loaded, loaded.context(2) as context:
        for index, rows in ((4, 5), (4, 0), (-1, 0)):
            feeds = {"x": numpy.arange(3 * rows, dtype=numpy.float32).reshape(rows, 3), "i": numpy.array([[0], [index]])}
            if rows:
                (got,) = context.run(feeds).values()
                numpy.testing.assert_array_equal(got.reshape(2, 3), feeds["x"][[0, index]])
            else:
                with pytest.raises(ModuleError, match="value"):
                    context.run(feeds)


def boxes_and_scores(rng, batch, classes, n):
    """Opposite corners on a grid, in either order; scores, of which some are equal."""
    corners = rng.integers(0, 20, (batch, n, 4)).astype(numpy.float32)
    scores = rng.integers(0, 40, (batch, classes, n)).astype(numpy.float32) / 32
    return corners, scores


@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize("limit", [None, 4, "input"])
@pytest.mark.parametrize("least", [None, 0.5])
def test_suppression_takes_the_same_boxes(compile, tmp_path, centred, limit, least):
    rng = numpy.random.default_rng([centred, 7 if limit is None else 3, least is None])
    model = Model()
    B, n = model.dim("B", 1, 2, 3), 70
    boxes, scores = model.input("boxes", "f32", [B, n, 4]), model.input("scores", "f32", [B, 5, n])
    most = {None: None, "input": "most"}.get(limit) if limit != 4 else model.constant(numpy.array([4]))
    if limit == "input":
        model.input("most", "i64", [1])
    overlap = model.constant(numpy.array([0.3], numpy.float32))
    inputs = [boxes, scores, most, overlap, None if least is None else model.constant(numpy.array([least], numpy.float32))]
    model.output(model.node("NonMaxSuppression", inputs, center_point_box=centred))
    feeds = []
    for batch, count in [(1, 100), (3, 7), (2, 0)]:
        corners, values = boxes_and_scores(rng, batch, 5, n)
        feeds.append({"boxes": corners, "scores": values} | ({"most": numpy.array([count])} if limit == "input" else {}))
    same_at_all_threads(compile, model, tmp_path, feeds)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("in_order", [0, 1])
def test_unique_gives_values_places_and_counts(compile, tmp_path, axis, in_order):
    rng = numpy.random.default_rng([in_order, 0 if axis is None else axis + 5])
    model = Model()
    T = model.dim("T", 1, 5, 30)
    model.output(*model.node("Unique", [model.input("x", "f32", [T, 4, 2])], 4, axis=axis, sorted=in_order))
    feeds = [{"x": rng.integers(0, 2 + (axis is None) * 9, (rows, 4, 2)).astype(numpy.float32)} for rows in (1, 30, 7)]
    same_at_all_threads(compile, model, tmp_path, feeds, threads=(1, 3))


def one_node(op, arrays, outputs=1, **attributes):
    model, feeds = Model(), {f"x{k}": array for k, array in enumerate(arrays)}
    names = [model.input(name, type_name(numpy.asarray(array)), numpy.shape(array)) for name, array in feeds.items()]
    results = model.node(op, names, outputs, **attributes)
    model.output(*([results] if isinstance(results, str) else results))
    return model, feeds


def reference_cases(rng):
    corners, scores = boxes_and_scores(rng, 2, 3, 25)
    mask = rng.random(6) < 0.5
    yield one_node("NonZero", [sparse(rng, "i32", (4, 3, 5), 0.4)])
    yield one_node("Compress", [random_array(rng, "f32", (3, 6, 2)), mask], axis=1)
    yield one_node("Compress", [random_array(rng, "u8", (3, 6, 2)), mask])
    yield one_node("Unique", [rng.integers(0, 5, (4, 6))], 4)
    yield one_node("Unique", [rng.integers(0, 2, (9, 2, 2)).astype(numpy.float32)], 4, axis=0, sorted=0)
    yield one_node("NonMaxSuppression", [corners, scores, numpy.array(5), numpy.float32(0.25), numpy.float32(0.1)])


@pytest.mark.parametrize("seed", range(3))
def test_reference_finds_the_extents_that_onnx_runtime_does(tmp_path, seed):
    reference = Reference(build_directory() / "tests" / "support" / "reference_run")
    for model, feeds in reference_cases(numpy.random.default_rng(seed)):
        feeds = {name: numpy.asarray(array) for name, array in feeds.items()}
        expected, got = model.onnx_run(feeds), reference.run(model, model.write(tmp_path), feeds)
        for name in model.outputs:
            numpy.testing.assert_array_equal(got[name], expected[name])


@pytest.mark.parametrize("op", ["Slice", "Expand", "Pad"])
def test_a_count_of_which_only_an_extent_is_read_is_found(compile, tmp_path, op):
    model = Model("counted")
    x, mask = model.input("x", "f32", [8]), model.input("mask", "bool", [8])
    first, second = (model.constant(numpy.array([n])) for n in (1, 2))
    count = model.node("Slice", [model.node("Shape", [model.node("NonZero", [mask])]), first, second])
    zero = model.constant(numpy.array([0]))
    y = {"Slice": lambda: model.node("Slice", [x, zero, count]), "Expand": lambda: model.node("Expand", ["one", count]),
         "Pad": lambda: model.node("Pad", [x, model.node("Concat", [zero, count], axis=0)])}
    model.constant(numpy.float32(1), "one")
    model.output(model.node("Sub", [y[op](), "one"]), model.node("Neg", [x]))
    feeds = [{"x": numpy.arange(8, dtype=numpy.float32), "mask": numpy.arange(8) < n} for n in (3, 0, 8)]
    same_at_all_threads(compile, model, tmp_path, feeds, threads=(1, 3))
