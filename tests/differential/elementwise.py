# SPDX-License-Identifier: MIT
"""Makers of element-wise nodes: MAKERS[operator](graph, operator) adds one, on values that the graph has."""
import numpy

from differential.graph import EXACT, INTEGERS, USUAL_MOST, Unsuitable
from support.model_builder import TYPES

MAKERS = {}
# ONNX Runtime approximates functions with up to this error, relative to a result of 1 or more.
FUNCTION_ERROR = 2.0**-20
PEER_INTEGERS = ("i64", "i32")  # those for which ONNX Runtime has most of its kernels


def makes(*ops):
    def add(build):
        for op in ops:
            assert op not in MAKERS, op
            MAKERS[op] = build
        return build
    return add


def type_most(dtype):
    return float(numpy.iinfo(TYPES[dtype][0]).max)


def arithmetic(graph, dtype, floats=("f32", "f64")):
    return dtype in floats or dtype in (PEER_INTEGERS if graph.peer else INTEGERS)


def computed(graph, floats=("f32",), integers=True, suits=lambda value: True):
    """A value that arithmetic runs on."""
    def fits(value):
        return (value.dtype in floats or integers and arithmetic(graph, value.dtype, ())) and suits(value)
    return graph.pick(fits, graph.number)


# ---- one input ----

SAME = {"Abs": INTEGERS, "Neg": INTEGERS[:4], "Sign": INTEGERS, "Floor": (), "Ceil": (), "Round": (), "Relu": INTEGERS[:4]}
ROUND = ("Floor", "Ceil", "Round", "Sign")


@makes(*SAME)
def simple(graph, op):
    x = computed(graph, ("f32", "f64", "f16"), suits=lambda v: (v.exact or op not in ROUND)
                 and (v.real or v.dtype in SAME[op]))
    if op == "Relu" and graph.peer and x.dtype not in ("f32", "f64"):
        raise Unsuitable
    if op in ("Sign", "Neg") and graph.peer and x.dtype == "f16":
        raise Unsuitable
    most = 1.0 if op == "Sign" else x.most + (op in ROUND)
    graph.add(op, [x], (x.dtype, x.shape, most, 1.0 if op in ROUND else x.step, x.error))


# name: (attributes, steepness, how large a result is, whether it is computed of |x| + 1, and up to which |x|)
FUNCTIONS = {
    "Erf": ({}, 1.2, lambda m: 1, False, 16), "Exp": ({}, 60, lambda m: 60, False, 4),
    "Log": ({}, 1, lambda m: m + 1, True, 1e6), "Sqrt": ({}, 0.5, lambda m: m + 1, True, 1e6),
    "Reciprocal": ({}, 1, lambda m: 1, True, 1e6), "Sigmoid": ({}, 0.25, lambda m: 1, False, 64),
    "Tanh": ({}, 1, lambda m: 1, False, 64), "Elu": ({"alpha": 0.7}, 1, lambda m: m + 1, False, 64),
    "Selu": ({}, 1.8, lambda m: 1.1 * m + 1.8, False, 64), "Celu": ({"alpha": 1.5}, 1, lambda m: m + 1.5, False, 64),
    "Gelu": ({}, 1.2, lambda m: m, False, 64), "Mish": ({}, 1.2, lambda m: m, False, 64),
    "Softplus": ({}, 1, lambda m: m + 1, False, 64), "Softsign": ({}, 1, lambda m: 1, False, 1e6),
    "Swish": ({"alpha": 1.25}, 1.2, lambda m: m, False, 40), "HardSwish": ({}, 1.5, lambda m: m, False, 64),
    "HardSigmoid": ({"alpha": 0.3}, 0.3, lambda m: 1, False, 64), "Sin": ({}, 1, lambda m: 1, False, 64),
    "Cos": ({}, 1, lambda m: 1, False, 64), "Tan": ({}, 3.5, lambda m: 1.6, False, 1), "Atan": ({}, 1, lambda m: 2, False, 1e6),
    "Asin": ({}, 1.2, lambda m: 1, False, 0.5), "Acos": ({}, 1.2, lambda m: 3, False, 0.5),
    "Atanh": ({}, 1.4, lambda m: 1, False, 0.5), "Sinh": ({}, 30, lambda m: 30, False, 4),
    "Cosh": ({}, 30, lambda m: 30, False, 4), "Asinh": ({}, 1, lambda m: m + 1, False, 1e6),
    "Acosh": ({}, 60, lambda m: m + 2, True, 1e6),
}
BY_OTHERS = {"Swish"}  # which ONNX Runtime does not know in the models' opset
OF_DOUBLE = {"Exp", "Log", "Sigmoid", "Tanh", "Sqrt", "Reciprocal"}


@makes(*FUNCTIONS)
def function(graph, op):
    attributes, steep, most, positive, domain = FUNCTIONS[op]
    if graph.peer and op in BY_OTHERS:
        raise Unsuitable
    floats = ("f32", "f64") if op in OF_DOUBLE else ("f32",)
    x = graph.within(graph.pick(lambda v: v.dtype in floats, graph.number), domain)
    if positive:
        x = graph.add("Abs", [x], (x.dtype, x.shape, x.most, x.step, x.error))
        one = 2.0 if op == "Acosh" else 1.0
        x = graph.settle("Add", [x, graph.scalar(one, x.dtype)], x.shape, x.most + one, x.step, x.error, x.dtype)
    if op == "Gelu" and graph.chance(0.5):
        attributes = {"approximate": "tanh"}
    size = float(most(x.most))
    graph.add(op, [x], (x.dtype, x.shape, size, 0.0, steep * x.error + 2 * FUNCTION_ERROR * max(1, size)), **attributes)


@makes("LeakyRelu", "ThresholdedRelu", "Shrink")
def bent(graph, op):
    """Slopes and thresholds that are halves keep results exact."""
    x = graph.number(lambda v: v.exact or op == "LeakyRelu")
    attributes = {"LeakyRelu": {"alpha": 0.25}, "ThresholdedRelu": {"alpha": 0.5}, "Shrink": {"lambd": 1.5, "bias": 0.5}}[op]
    graph.settle(op, [x], x.shape, x.most + 0.5, x.step / 4, x.error, **attributes)


@makes("IsNaN", "IsInf")
def special(graph, op):
    x = computed(graph, ("f32", "f64"), integers=False)
    graph.add(op, [x], ("bool", x.shape, 1.0))


@makes("Not", "BitwiseNot")
def inverted(graph, op):
    def fits(value):
        return value.dtype == "bool" if op == "Not" else value.dtype in INTEGERS
    x = graph.pick(fits, lambda: graph.fresh("bool" if op == "Not" else "i32"))
    most = 1.0 if op == "Not" else type_most(x.dtype) if x.dtype[0] == "u" else x.most + 1
    graph.add(op, [x], (x.dtype, x.shape, most))


@makes("Clip")
def clip(graph, op):
    x = computed(graph, ("f32", "f64", "f16"))
    bounds = [graph.scalar(bound, x.dtype) if graph.chance(0.8) else None for bound in (graph.integer(0, 2), graph.integer(2, 9))]
    if x.dtype[0] != "u" and bounds[0] and graph.chance(0.7):
        bounds[0] = graph.scalar(-graph.integer(1, 8), x.dtype)
    graph.add(op, [x, *bounds], (x.dtype, x.shape, max(x.most, 9.0), x.step and min(x.step, 1.0), x.error))


@makes("Identity", "Dropout")
def same(graph, op):
    x = graph.pick(lambda v: op == "Identity" or v.dtype == "f32", graph.number)
    graph.add(op, [x], (x.dtype, x.shape, x.most, x.step, x.error))


# ---- types ----

# The largest of the integers that each type holds without gaps, and the bounds of what comes out of it.
WHOLE_IN = {"f64": 2**24, "f32": 2**24, "f16": 2**11, "bf16": 2**8, "i64": 2**31, "i32": 2**30, "i16": 2**15 - 1, "i8": 127,
            "u64": 2**31, "u32": 2**31, "u16": 2**16 - 1, "u8": 255, "bool": 1}
NARROW_WHOLE = {"f8e4m3fn": 16, "f8e4m3fnuz": 16, "f8e5m2": 8, "f8e5m2fnuz": 8, "f4e2m1": 4, "i4": 7, "u4": 15, "i2": 1, "u2": 3}


def converted(graph, value, to):
    """The value, of integers that the type holds, in the type."""
    room = {**WHOLE_IN, **NARROW_WHOLE}[to]
    x = graph.within(value, room, 1.0)
    if to[0] in "ub" and to != "bf16" and x.dtype[0] not in "ub" and to != "bool":
        x = graph.add("Abs", [x], (x.dtype, x.shape, x.most, x.step, 0.0))
    return graph.add("Cast", [x], (to, x.shape, 1.0 if to == "bool" else x.most, 1.0, 0.0), to=to)


@makes("Cast")
def cast(graph, op):
    """Of integers into any type, or of a narrow one into f32."""
    x = graph.pick(lambda v: v.exact and (v.dtype in WHOLE_IN or v.dtype in NARROW_WHOLE), graph.number)
    if x.dtype in NARROW_WHOLE:
        return graph.add(op, [x], ("f32", x.shape, x.most, 1.0), to="f32")
    types = [*WHOLE_IN] + ([] if graph.peer or x.dtype == "bool" else [*NARROW_WHOLE])
    if graph.peer:
        types.remove("bf16")
    return converted(graph, x, graph.draw(types))


@makes("CastLike")
def cast_like(graph, op):
    like = graph.pick(lambda v: v.dtype in WHOLE_IN)
    x = graph.pick(lambda v: v.exact and v.dtype in WHOLE_IN and v.dtype not in ("u64", "u32"), graph.number)
    x = graph.within(x, WHOLE_IN[like.dtype], 1.0)
    if like.dtype[0] == "u" and x.dtype[0] not in "ub":
        x = graph.add("Abs", [x], (x.dtype, x.shape, x.most, x.step, 0.0))
    graph.add(op, [x, like], (like.dtype, x.shape, 1.0 if like.dtype == "bool" else x.most, 1.0))


# ---- inputs that broadcast ----

def joined(a, b):
    """The shape that two broadcast to; None if they do not."""
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    if any(x != y and x != 1 and y != 1 for x, y in zip(a, b)):
        return None
    return tuple(y if x == 1 else x for x, y in zip(a, b))


def part_of(graph, shape):
    """Some of its axes 1, perhaps without the first ones."""
    part = [1 if graph.chance(0.3) else extent for extent in shape]
    return tuple(part[graph.integer(0, len(part)):] if graph.chance(0.4) else part)


def partner(graph, x, suits=lambda value: True, most=USUAL_MOST):
    """Another operand of the type: a value that is there, an input or a constant."""
    def fits(value):
        shape = joined(x.shape, value.shape)
        return value.dtype == x.dtype and value.name != x.name and suits(value) and shape and graph.elements(shape) < 20000
    kind = graph.rng.random()
    shape = part_of(graph, x.shape)
    if kind < 0.55:
        try:
            return graph.pick(fits, recent=0.3)
        except Unsuitable:
            pass
    if kind < 0.7 or not all(isinstance(extent, int) for extent in shape):
        return graph.input(x.dtype, shape, 1.0 if x.dtype == "bool" else most)
    return graph.whole(shape, most, x.dtype)


def two(graph, floats, suits=lambda value: True, integers=True):
    a = computed(graph, floats, integers, suits)
    b = partner(graph, a, suits)
    pair = (a, b) if graph.chance(0.5) else (b, a)
    return (*pair, joined(a.shape, b.shape))


@makes("Add", "Sub", "Mul", "Max", "Min")
def binary(graph, op):
    a, b, shape = two(graph, ("f32", "f64", "f16") if not graph.peer else ("f32", "f64"))
    if a.dtype in INTEGERS:
        most = max(a.most, b.most) if op in ("Max", "Min") else a.most * b.most if op == "Mul" else a.most + b.most
        if most > type_most(a.dtype) or op == "Sub" and a.dtype[0] == "u":
            if a.dtype not in ("i32", "u32", "i64", "u64", "u8", "i8"):
                raise Unsuitable
            most = type_most(a.dtype)  # it wraps around
        return graph.add(op, [a, b], (a.dtype, shape, most))
    if a.dtype != "f32" and not (a.exact and b.exact and a.step and b.step):
        raise Unsuitable
    if op == "Mul":
        error = a.error * b.most + b.error * a.most + a.error * b.error
        return graph.settle(op, [a, b], shape, a.most * b.most, a.step * b.step, error, a.dtype)
    step, error = min(a.step, b.step), a.error + b.error
    if op in ("Max", "Min"):
        return graph.add(op, [a, b], (a.dtype, shape, max(a.most, b.most), step, error))
    return graph.settle(op, [a, b], shape, a.most + b.most, step, error, a.dtype)


@makes("Sum", "Mean")
def variadic(graph, op):
    a = graph.number(lambda v: v.exact and v.step)
    more = [partner(graph, a, lambda v: v.exact and v.step) for _ in range(graph.integer(0, 2))]
    shape, most, step = a.shape, a.most, a.step
    for b in more:
        shape, most, step = joined(shape, b.shape), most + b.most, min(step, b.step)
        if not shape and shape != ():
            raise Unsuitable
    graph.settle(op, [a, *more], shape, most, 0.0 if op == "Mean" else step, 0.0)


@makes("Div")
def quotient(graph, op):
    """By powers of two, or by integers that are not zero."""
    a = computed(graph, ("f32",))
    shape = part_of(graph, a.shape)
    if a.dtype in INTEGERS:
        b = graph.add("Max", [graph.input(a.dtype, shape), graph.scalar(1, a.dtype)], (a.dtype, shape, USUAL_MOST))
        return graph.add(op, [a, b], (a.dtype, a.shape, a.most))
    if not all(isinstance(extent, int) for extent in shape):
        shape = ()
    if graph.chance(0.5):
        b = graph.constant((2.0 ** graph.rng.integers(-1, 2, shape)).astype(numpy.float32), 0.5)
        return graph.settle(op, [a, b], a.shape, 2 * a.most, a.step / 2, 2 * a.error)
    b = graph.constant((graph.rng.integers(1, 9, shape) * graph.draw((-1, 1))).astype(numpy.float32))
    return graph.settle(op, [a, b], a.shape, a.most, 0.0, a.error)


@makes("Mod")
def modulo(graph, op):
    a = computed(graph, ("f32",), suits=lambda v: v.exact and v.step)
    b = graph.whole((), 3, a.dtype) if not a.shape else graph.input(a.dtype, part_of(graph, a.shape))
    b = graph.add("Abs", [b], (a.dtype, b.shape, USUAL_MOST))
    b = graph.settle("Add", [b, graph.scalar(1, a.dtype)], b.shape, 5.0, 1.0, 0.0) if a.real else \
        graph.add("Add", [b, graph.scalar(1, a.dtype)], (a.dtype, b.shape, 5.0))
    graph.add(op, [a, b], (a.dtype, a.shape, 5.0, a.step, 0.0), fmod=1 if a.real else graph.integer(0, 1))


@makes("Pow")
def power(graph, op):
    a = computed(graph, ("f32",))
    if a.dtype in INTEGERS:
        a = graph.within(a, 8)
        if graph.peer and a.dtype not in ("i32", "i64"):
            raise Unsuitable
        return graph.add(op, [a, graph.scalar(graph.integer(0, 2), a.dtype)], (a.dtype, a.shape, 64.0))
    a = graph.within(a, 64)
    return graph.settle(op, [a, graph.scalar(2)], a.shape, a.most**2, a.step**2, 2 * a.most * a.error + a.error**2)


@makes("PRelu")
def prelu(graph, op):
    a = graph.number(lambda v: v.exact)
    shape = part_of(graph, a.shape)
    slope = graph.input("f32", shape) if not all(isinstance(e, int) for e in shape) else graph.whole(shape)
    graph.settle(op, [a, slope], a.shape, a.most * USUAL_MOST, a.step, 0.0)


@makes("And", "Or", "Xor")
def logical(graph, op):
    a = graph.pick(lambda v: v.dtype == "bool", lambda: graph.fresh("bool"))
    b = partner(graph, a)
    graph.add(op, [a, b], ("bool", joined(a.shape, b.shape), 1.0))


@makes("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")
def comparison(graph, op):
    a, b, shape = two(graph, ("f32", "f64"), lambda v: v.exact)
    graph.add(op, [a, b], ("bool", shape, 1.0))


@makes("BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
def bits(graph, op):
    unsigned = op == "BitShift"
    types = ("u32", "u64", "u8") if unsigned else INTEGERS
    a = graph.pick(lambda v: v.dtype in types, lambda: graph.fresh("u32" if unsigned else "i32"))
    b = partner(graph, a)
    attributes = {"direction": graph.draw(("LEFT", "RIGHT"))} if unsigned else {}
    if unsigned:
        b = graph.within(b, 5)
    graph.add(op, [a, b], (a.dtype, joined(a.shape, b.shape), type_most(a.dtype)), **attributes)


@makes("Where")
def where(graph, op):
    a = graph.pick(lambda v: v.dtype in ("f32", "i64", "i32", "u8") or not graph.peer and v.dtype in WHOLE_IN, graph.number)
    b = partner(graph, a) if a.dtype in WHOLE_IN and a.dtype != "bf16" else a
    shape = joined(a.shape, b.shape)
    truth = graph.pick(lambda v: v.dtype == "bool" and joined(v.shape, shape) == shape,
                       lambda: graph.input("bool", part_of(graph, shape), 1.0))
    graph.add(op, [truth, a, b], (a.dtype, shape, max(a.most, b.most), min(a.step, b.step), max(a.error, b.error)))


assert all(dtype in WHOLE_IN for dtype in EXACT)
