# SPDX-License-Identifier: MIT
"""Makers of nodes that move elements, of any type, and of those along axes: reductions, sums, sorting."""
import math

import numpy

from differential.elementwise import FUNCTION_ERROR, INTEGERS, joined, makes, type_most
from differential.graph import EXACT, USUAL_MOST, Unsuitable


def like(value, shape):
    """What a result is of which each element is one of the value."""
    return value.dtype, tuple(shape), value.most, value.step, value.error


def any_value(graph, rank=1, suits=lambda value: True):
    """Of at least that rank."""
    return graph.pick(lambda v: v.rank >= rank and suits(v), lambda: graph.fresh("f32", max(rank, graph.integer(1, 4))))


def axis_of(graph, value, suits=lambda extent: True):
    axes = [axis for axis, extent in enumerate(value.shape) if suits(extent)]
    if not axes:
        raise Unsuitable
    return graph.draw(axes)


def either(graph, axis, rank):
    """The axis from the front or from the back."""
    return axis - rank if graph.chance(0.4) else axis


def changed(shape, axis, extent):
    return (*shape[:axis], extent, *shape[axis + 1:])


@makes("Concat")
def concat(graph, op):
    a = any_value(graph)
    axis = axis_of(graph, a)
    def fits(v):
        return v.dtype == a.dtype and v.rank == a.rank and changed(v.shape, axis, 0) == changed(a.shape, axis, 0)
    parts = [a] + [graph.pick(fits, recent=0.3) for _ in range(graph.integer(0, 2))]
    if a.dtype in ("f32", "i32", "i64") and all(isinstance(e, int) for e in a.shape) and graph.chance(0.5):
        parts.append(graph.whole(changed(a.shape, axis, graph.extent(9)), USUAL_MOST, a.dtype))
    graph.rng.shuffle(parts)
    extents = [p.shape[axis] for p in parts]
    least, most = sum(map(graph.least, extents)), sum(map(graph.largest, extents))
    extent = graph.derived("+".join(sorted(map(str, extents))), least, most) if len(parts) > 1 else extents[0]
    graph.add(op, parts, (a.dtype, changed(a.shape, axis, extent), max(p.most for p in parts), min(p.step for p in parts),
                          max(p.error for p in parts)), axis=either(graph, axis, a.rank))


@makes("Split")
def split(graph, op):
    a = any_value(graph)
    axis = axis_of(graph, a, lambda e: isinstance(e, int) and e > 1)
    extent = a.shape[axis]
    n = graph.integer(2, min(4, extent))
    if graph.chance(0.5):
        cuts = sorted(int(c) for c in graph.rng.choice(numpy.arange(1, extent), n - 1, replace=False))
        sizes = [high - low for low, high in zip([0, *cuts], [*cuts, extent])]
        inputs, attributes = [a, graph.indices(*sizes)], {}
    else:
        each = -(-extent // n)
        sizes = [each] * (n - 1) + [extent - each * (n - 1)]
        if sizes[-1] <= 0:
            raise Unsuitable
        inputs, attributes = [a], {"num_outputs": n}
    graph.add(op, inputs, *(like(a, changed(a.shape, axis, size)) for size in sizes), axis=either(graph, axis, a.rank), **attributes)


@makes("Slice")
def slices(graph, op):
    a = any_value(graph)
    axis = axis_of(graph, a, lambda e: isinstance(e, int) and e > 0)
    extent, step = a.shape[axis], graph.draw((1, 1, 1, 2, 3, -1, -2))
    start = graph.integer(0, extent - 1)
    end = graph.integer(start + 1, extent) if step > 0 else graph.integer(-1, start - 1) if start else -1
    count = -(-(end - start) // step)
    stop = end if step > 0 and end < extent else 2**63 - 1 if step > 0 else -extent - 1 if end < 0 else end
    graph.add(op, [a, *(graph.indices(n) for n in (start, stop, either(graph, axis, a.rank), step))],
              like(a, changed(a.shape, axis, count)))


@makes("Transpose")
def transpose(graph, op):
    a = any_value(graph, 2)
    perm = [int(axis) for axis in graph.rng.permutation(a.rank)]
    graph.add(op, [a], like(a, [a.shape[axis] for axis in perm]), perm=perm)


@makes("Pad")
def pad(graph, op):
    a = any_value(graph, 1, lambda v: v.fixed and graph.elements(v.shape) < 2000 and (not graph.peer or v.dtype in
                  ("f32", "f64", "i32", "i64", "u8", "i8", "bool")))
    mode = graph.draw(("constant", "constant", "edge", "reflect", "wrap"))
    if mode != "constant" and a.dtype == "bool" and graph.peer:
        raise Unsuitable
    room = [0 if mode in ("edge", "wrap") and e == 0 else e - 1 if mode == "reflect" else 7 if mode == "wrap" else 3 for e in a.shape]
    pads = [graph.integer(0, max(0, min(r, 7))) if graph.chance(0.6) else 0 for r in room * 2]
    if mode == "constant" and graph.chance(0.2):
        axis = axis_of(graph, a, lambda e: e > 2)
        pads[axis] = -1
    shape = [e + pads[k] + pads[k + a.rank] for k, e in enumerate(a.shape)]
    value = graph.scalar(graph.integer(0, 2), a.dtype) if mode == "constant" and a.dtype in (*EXACT, *INTEGERS) and graph.chance(0.5) else None
    graph.add(op, [a, graph.indices(*pads), value], (a.dtype, tuple(shape), max(a.most, 2), min(a.step, 1.0), a.error), mode=mode)


@makes("Expand")
def expand(graph, op):
    a = graph.pick(lambda v: v.fixed and graph.elements(v.shape) < 500, lambda: graph.fresh("f32"))
    shape = [graph.draw((2, 3, 5)) if e == 1 else e for e in a.shape]
    shape = [graph.draw((1, 2))] * graph.integer(0, 1) + shape
    graph.add(op, [a, graph.indices(*shape)], like(a, joined(a.shape, shape)))


@makes("Tile")
def tile(graph, op):
    a = any_value(graph, 1, lambda v: v.fixed and graph.elements(v.shape) < 700)
    repeats = [graph.draw((1, 1, 2, 3)) for _ in a.shape]
    if math.prod(repeats) > 8:
        raise Unsuitable
    graph.add(op, [a, graph.indices(*repeats)], like(a, [e * r for e, r in zip(a.shape, repeats)]))


@makes("Gather")
def gather(graph, op):
    a = any_value(graph)
    axis = axis_of(graph, a, lambda e: isinstance(e, int) and 0 < e < 100)
    extent = a.shape[axis]
    shape = graph.shape(graph.integer(0, 2), 7)
    if graph.chance(0.5) or graph.elements(changed(a.shape, axis, 1)) * math.prod(shape) > 20000:
        index = graph.constant(graph.rng.integers(-extent, extent, shape[:1]))
    else:
        index = graph.input(graph.draw(("i64", "i32")), shape, extent - 1, low=-extent)
    graph.add(op, [a, index], like(a, (*a.shape[:axis], *index.shape, *a.shape[axis + 1:])), axis=either(graph, axis, a.rank))


@makes("GatherElements")
def gather_elements(graph, op):
    a = any_value(graph, 1, lambda v: v.fixed and min(v.shape) > 0)
    axis = axis_of(graph, a)
    shape = changed([graph.integer(1, e) for e in a.shape], axis, graph.extent(9))
    index = graph.input("i64", shape, a.shape[axis] - 1, low=-a.shape[axis])
    graph.add(op, [a, index], like(a, shape), axis=axis)


@makes("OneHot")
def one_hot(graph, op):
    depth = graph.integer(2, 9)
    index = graph.input("i64", graph.shape(graph.integer(1, 3), 9), depth - 1, low=-depth)
    values = graph.constant(numpy.array([-1, 3], numpy.float32))
    graph.add(op, [index, graph.scalar(depth, "i64"), values], ("f32", (*index.shape, depth), 3.0), axis=-1)


@makes("Reshape", "Flatten")
def reshape(graph, op):
    """Any order of factors of the number of elements; or two axes become one, and others stay, named ones too."""
    a = any_value(graph, 2, lambda v: graph.never_empty(v))
    if op == "Flatten":
        axis = graph.integer(0, a.rank)
        parts = [joined_extent(graph, a.shape[:axis]), joined_extent(graph, a.shape[axis:])]
        return graph.add(op, [a], like(a, parts), axis=axis)
    if a.fixed and graph.chance(0.5):
        count, shape = math.prod(a.shape), []
        for _ in range(graph.integer(0, 3)):
            shape.append(graph.draw([d for d in (1, 2, 3, 4, 5, 8, 16) if count % d == 0]))
            count //= shape[-1]
        shape.insert(graph.integer(0, len(shape)), count)
        told = [-1 if k == 0 and graph.chance(0.5) else e for k, e in enumerate(shape)]
        return graph.add(op, [a, graph.indices(*told)], like(a, shape))
    axis = graph.integer(0, a.rank - 2)
    shape = (*a.shape[:axis], joined_extent(graph, a.shape[axis:axis + 2]), *a.shape[axis + 2:])
    if any(isinstance(e, str) for e in shape[axis + 1:]):
        raise Unsuitable
    graph.add(op, [a, graph.indices(*([0] * axis), -1, *shape[axis + 1:])], like(a, shape))


def joined_extent(graph, extents):
    return graph.derived("*".join(sorted(map(str, extents))), math.prod(map(graph.least, extents)), math.prod(map(graph.largest, extents)))


@makes("Unsqueeze")
def unsqueeze(graph, op):
    a = graph.pick(lambda v: v.rank < 5)
    axis = graph.integer(0, a.rank)
    graph.add(op, [a, graph.indices(axis)], like(a, (*a.shape[:axis], 1, *a.shape[axis:])))


@makes("Squeeze")
def squeeze(graph, op):
    a = any_value(graph, 1, lambda v: 1 in v.shape)
    axis = axis_of(graph, a, lambda e: e == 1)
    graph.add(op, [a, graph.indices(either(graph, axis, a.rank))], like(a, (*a.shape[:axis], *a.shape[axis + 1:])))


@makes("DepthToSpace", "SpaceToDepth")
def blocks(graph, op):
    def fits(v):
        if v.rank != 4 or not all(isinstance(e, int) for e in v.shape[1:]) or graph.peer and v.dtype not in ("f32", "f64"):
            return False
        return v.shape[1] % 4 == 0 if op == "DepthToSpace" else v.shape[2] % 2 == v.shape[3] % 2 == 0
    shape = (2, 4 * graph.integer(1, 5), 3, 5) if op == "DepthToSpace" else (2, graph.integer(1, 5), 4, 6)
    a = graph.pick(fits, lambda: graph.input("f32", shape))
    n, c, h, w = a.shape
    attributes = {"mode": graph.draw(("DCR", "CRD"))} if op == "DepthToSpace" else {}
    graph.add(op, [a], like(a, (n, c // 4, 2 * h, 2 * w) if op == "DepthToSpace" else (n, 4 * c, h // 2, w // 2)), blocksize=2, **attributes)


@makes("ReverseSequence")
def reverse(graph, op):
    a = any_value(graph, 2, lambda v: isinstance(v.shape[0], int) and v.shape[0] > 0 and isinstance(v.shape[1], int))
    lengths = graph.input("i64", a.shape[1:2], a.shape[0], low=1)
    graph.add(op, [a, lengths], like(a, a.shape), time_axis=0, batch_axis=1)


@makes("Trilu")
def trilu(graph, op):
    a = any_value(graph, 2, lambda v: v.dtype in ("f32", "f64", "i64"))
    graph.add(op, [a, graph.scalar(graph.integer(-2, 3), "i64")], like(a, a.shape), upper=graph.integer(0, 1))


@makes("ScatterElements", "ScatterND")
def scatter(graph, op):
    a = any_value(graph, 1, lambda v: v.fixed and v.dtype in ("f32", "i64", "i32") and v.exact and v.step and 0 < min(v.shape))
    if op == "ScatterND":
        rows = graph.integer(1, a.shape[0])
        index = graph.constant(graph.rng.permutation(a.shape[0])[:rows].reshape(rows, 1))
        updates = graph.input(a.dtype, (rows, *a.shape[1:]))
    else:
        axis = axis_of(graph, a)
        n = graph.integer(1, a.shape[axis])
        shape = changed([graph.integer(1, e) for e in a.shape], axis, n)
        places = graph.rng.permutation(a.shape[axis])[:n].reshape([n if k == axis else 1 for k in range(a.rank)])
        index, updates = graph.constant(numpy.broadcast_to(places, shape).copy()), graph.input(a.dtype, shape)
    how = graph.draw(("none", "add", "max", "min")) if a.dtype == "f32" else "none"
    attributes = {"axis": axis} if op == "ScatterElements" else {}
    most = a.most + updates.most
    if a.real and most / a.step > EXACT["f32"]:
        raise Unsuitable
    graph.add(op, [a, index, updates], (a.dtype, a.shape, most, min(a.step, 1.0), 0.0), reduction=how, **attributes)


@makes("Shape", "Size")
def extents(graph, op):
    a = graph.pick()
    attributes = {"start": graph.integer(-1, a.rank - 1)} if op == "Shape" and a.rank else {}
    n = len(a.shape[attributes.get("start", 0):])
    most = max([1, *map(graph.largest, a.shape)]) if op == "Shape" else max(1, graph.elements(a.shape))
    made = graph.add(op, [a], ("i64", (n,) if op == "Shape" else (), float(most)), **attributes)
    if graph.chance(0.7):
        graph.add("Cast", [made], ("f32", made.shape, made.most), to="f32")


@makes("Constant", "ConstantOfShape", "EyeLike", "Range")
def made_of_nothing(graph, op):
    if op == "Constant":
        return graph.add(op, [], ("f32", (), 2.0), value_float=float(graph.integer(-2, 2)))
    if op == "ConstantOfShape":
        shape = graph.shape(graph.integer(1, 3), 9)
        return graph.add(op, [graph.indices(*shape)], ("f32", shape, 0.0))
    if op == "EyeLike":
        a = any_value(graph, 2, lambda v: v.rank == 2 and v.dtype in ("f32", "i64", "i32"))
        return graph.add(op, [a], ("f32", a.shape, 1.0), k=graph.integer(-2, 2), dtype=None if a.dtype == "f32" else "f32")
    start, count, step = graph.integer(-3, 3), graph.extent(), graph.draw((1, 2, -1))
    graph.add(op, [graph.scalar(n, "i64") for n in (start, start + count * step, step)], ("i64", (count,), 3.0 + 2 * count))


@makes("BitCast")
def bit_cast(graph, op):
    if graph.peer:
        raise Unsuitable
    a = graph.pick(lambda v: v.dtype in ("i32", "u32", "i64", "u64", "u8", "i8", "u16", "i16"), lambda: graph.fresh("i32"))
    to = ("u" if a.dtype[0] == "i" else "i") + a.dtype[1:]
    graph.add(op, [a], (to, a.shape, type_most(to)), to=to)


# ---- along axes ----

SUMS = {"ReduceSum": 1, "ReduceMean": 1, "ReduceSumSquare": 2, "ReduceL1": 1, "ReduceL2": 2, "ReduceLogSum": 1, "ReduceLogSumExp": 1}


def reduced(graph, a, axes, keep):
    return tuple(1 if k in axes else e for k, e in enumerate(a.shape) if keep or k not in axes)


@makes(*SUMS)
def sums(graph, op):
    integer = op in ("ReduceSum", "ReduceSumSquare", "ReduceL1")
    a = graph.pick(lambda v: v.rank and graph.never_empty(v) and (v.dtype in ("f32", "f64") or integer and v.dtype in
                   (("i32",) if graph.peer and op != "ReduceSum" else ("i32", "i64"))), lambda: graph.number(rank=graph.integer(1, 4)))
    a = graph.within(a, {"ReduceLogSumExp": 8, "ReduceSumSquare": 64, "ReduceL2": 64}.get(op))
    if op == "ReduceLogSum":
        a = graph.add("Abs", [a], (a.dtype, a.shape, a.most, a.step, a.error))
        a = graph.settle("Add", [a, graph.scalar(1, a.dtype)], a.shape, a.most + 1, a.step, a.error, a.dtype)
    axes = sorted({axis_of(graph, a) for _ in range(graph.integer(1, a.rank))})
    keep, terms = graph.integer(0, 1), graph.elements([a.shape[axis] for axis in axes])
    shape, most, step = reduced(graph, a, axes, keep), a.most ** SUMS[op], a.step ** SUMS[op]
    each = a.error * (1 if SUMS[op] == 1 else 2 * a.most + a.error)
    told = [graph.indices(*(either(graph, axis, a.rank) for axis in axes))] if len(axes) < a.rank or graph.chance(0.5) else [None]
    def add(*result):
        return graph.add(op, [a, *told], (a.dtype, shape, *result), keepdims=keep)
    if a.dtype in INTEGERS:
        if most * terms > type_most(a.dtype):
            raise Unsuitable
        return add(most * terms)
    if op in ("ReduceSum", "ReduceSumSquare", "ReduceL1") and step and not each and most * terms / step <= EXACT[a.dtype]:
        return add(most * terms, step, 0.0)
    rounding = most * terms * terms * 2.0**-22
    if op == "ReduceMean":
        return add(most, 0.0, each + rounding / terms)
    if op == "ReduceL2":  # the root is steepest near 0: |sqrt x - sqrt y| <= sqrt |x - y|
        return add(math.sqrt(most * terms), 0.0, math.sqrt(each * terms + rounding) + FUNCTION_ERROR * max(1, math.sqrt(most * terms)))
    if op == "ReduceLogSum":  # of a sum of at least 1
        return add(most * terms, 0.0, each * terms + rounding + 2 * FUNCTION_ERROR * max(1, math.log(most * terms)))
    if op == "ReduceLogSumExp":
        return add(most + math.log(terms), 0.0, each + FUNCTION_ERROR * (terms + most + 8))
    return add(most * terms, 0.0, each * terms + rounding)


@makes("ReduceMax", "ReduceMin")
def extremes(graph, op):
    types = ("f32", "f64", "i32", "i64", "u8", "i8") + (() if graph.peer else INTEGERS)
    a = any_value(graph, 1, lambda v: v.dtype in types and graph.never_empty(v))
    axes = sorted({axis_of(graph, a) for _ in range(graph.integer(1, a.rank))})
    keep = graph.integer(0, 1)
    graph.add(op, [a, graph.indices(*axes)], like(a, reduced(graph, a, axes, keep)), keepdims=keep)


@makes("ReduceProd")
def product(graph, op):
    a = graph.within(graph.pick(lambda v: v.rank and graph.never_empty(v) and v.dtype == "f32" and v.exact, lambda: graph.number(rank=2)), 2, 1.0)
    axis = axis_of(graph, a, lambda e: graph.largest(e) <= 17)
    graph.add(op, [a, graph.indices(axis)], ("f32", reduced(graph, a, [axis], 1), 2.0 ** graph.largest(a.shape[axis])))


@makes("ArgMax", "ArgMin")
def places(graph, op):
    a = any_value(graph, 1, lambda v: v.dtype in ("f32", "i32", "u8", "f64") and v.exact and graph.never_empty(v))
    axis, keep = axis_of(graph, a), graph.integer(0, 1)
    graph.add(op, [a], ("i64", reduced(graph, a, [axis], keep), float(graph.largest(a.shape[axis]))), axis=either(graph, axis, a.rank),
              keepdims=keep, select_last_index=graph.integer(0, 1))


@makes("Softmax", "LogSoftmax", "Hardmax")
def softmax(graph, op):
    a = graph.within(graph.number(lambda v: v.rank and graph.never_empty(v) and (v.exact or op != "Hardmax")), 16)
    axis = axis_of(graph, a, lambda e: isinstance(e, int) or op != "Hardmax")
    n = graph.largest(a.shape[axis])
    if op == "Hardmax":
        return graph.add(op, [a], ("f32", a.shape, 1.0), axis=axis)
    most = 1.0 if op == "Softmax" else 2 * a.most + math.log(max(1, n))
    graph.add(op, [a], ("f32", a.shape, most, 0.0, 2 * a.error + (n + 16) * FUNCTION_ERROR), axis=either(graph, axis, a.rank))


@makes("CumSum", "CumProd")
def running(graph, op):
    if graph.peer and op == "CumProd":
        raise Unsuitable
    a = graph.number(lambda v: v.rank and v.exact and v.step == 1)
    if op == "CumProd":
        a = graph.within(a, 2, 1.0)
    axis = axis_of(graph, a, lambda e: op == "CumSum" or graph.largest(e) <= 17)
    most = a.most * graph.largest(a.shape[axis]) if op == "CumSum" else 2.0 ** graph.largest(a.shape[axis])
    if most > EXACT["f32"]:
        raise Unsuitable
    graph.add(op, [a, graph.scalar(either(graph, axis, a.rank), "i64")], ("f32", a.shape, max(1.0, most)), exclusive=graph.integer(0, 1),
              reverse=graph.integer(0, 1))


@makes("TopK")
def top(graph, op):
    a = any_value(graph, 1, lambda v: v.dtype in ("f32", "i64", "i32") and v.exact)
    axis = axis_of(graph, a, lambda e: isinstance(e, int) and e > 0)
    k = graph.integer(1, a.shape[axis])
    shape = changed(a.shape, axis, k)
    graph.add(op, [a, graph.indices(k)], like(a, shape), ("i64", shape, float(a.shape[axis])), axis=either(graph, axis, a.rank),
              largest=graph.integer(0, 1))


@makes("NonZero", "Compress", "Unique")
def selected(graph, op):
    """As long as the data says: what comes of it is an output, and its extent is read by Shape alone."""
    a = any_value(graph, 1, lambda v: v.fixed and v.exact and v.dtype in ("f32", "i64", "i32", "bool") and graph.elements(v.shape) < 500)
    if graph.depth:
        raise Unsuitable
    if op == "NonZero":
        count = graph.derived(f"nonzero({a.name}) {next(graph.numbers)}", 0, graph.elements(a.shape))
        return graph.add(op, [a], ("i64", (a.rank, count), float(max(a.shape))))
    if op == "Unique":
        if a.dtype == "bool" or graph.peer and a.dtype == "i32":
            raise Unsuitable
        count = graph.derived(f"unique({a.name}) {next(graph.numbers)}", 0, graph.elements(a.shape))
        return graph.add(op, [a], (a.dtype, (count,), a.most, a.step))
    axis = axis_of(graph, a)
    truth = graph.input("bool", (a.shape[axis],), 1.0)
    count = graph.derived(f"selected({truth.name}) {next(graph.numbers)}", 0, a.shape[axis])
    graph.add(op, [a, truth], like(a, changed(a.shape, axis, count)), axis=axis)


@makes("Einsum")
def einsum(graph, op):
    a = graph.number(lambda v: v.rank == 2 and v.fixed and v.exact, rank=2)
    b = graph.whole((a.shape[1], graph.extent(17)))
    equation, shape = graph.draw((("ij,jk->ik", (a.shape[0], b.shape[1])), ("ij,jk->ki", (b.shape[1], a.shape[0])), ("ij,jk->k", b.shape[1:])))
    terms = a.shape[1] * (a.shape[0] if equation.endswith(">k") else 1)
    graph.settle(op, [a, b], shape, a.most * b.most * terms, a.step, a.error * b.most * terms, equation=equation)
