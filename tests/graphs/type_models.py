# SPDX-License-Identifier: MIT
"""Ops on every element type, with values at its limits, each with NumPy's result. Integers wrap around, as C's unsigned
ones do."""
import numpy

from support.dtypes import NARROW, is_float
from support.model_builder import TYPES

UNSIGNED, SIGNED = ("u64", "u32", "u16", "u8"), ("i64", "i32", "i16", "i8")
INTEGERS = SIGNED + UNSIGNED
HALF_EDGES = [0, -0.0, 1, -1, 0.5, 1.5, 65504, -65504, 6e-8, 6.1e-5, -6e-8, 1 / 3, 2049, numpy.inf, -numpy.inf,
              numpy.nan]


def kind(dtype):
    return TYPES[dtype][0]


def edges(dtype):
    """Values around the limits of the type, and some within."""
    if is_float(dtype):
        return numpy.array(HALF_EDGES + ([1e300, -1e-300] if dtype == "f64" else []), kind(dtype))
    limits = numpy.iinfo(kind(dtype))
    values = [limits.min, limits.min + 1, 0, 1, 2, 3, 7, 100, limits.max // 2, limits.max // 2 + 1, limits.max - 1,
              limits.max]
    return numpy.array(values + ([-1, -2, -7, -100] if dtype in SIGNED else []), kind(dtype))


def pairs(dtype):
    values = edges(dtype)
    return [grid.copy() for grid in numpy.meshgrid(values, values)]


def shifted(a, b, left):
    width = a.dtype.itemsize * 8
    inside = numpy.where(b < width, b, 0).astype(a.dtype)
    return numpy.where(b < width, a << inside if left else a >> inside, 0).astype(a.dtype)


def truncated_quotient(a, b):
    if a.dtype.kind == "f":
        return a / b
    wide = [int(x) for x in a.ravel()], [int(x) for x in b.ravel()]
    quotients = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(*wide)]
    mask = (1 << 8 * a.dtype.itemsize) - 1
    return numpy.array([q & mask for q in quotients], f"u{a.dtype.itemsize}").view(a.dtype).reshape(a.shape)


UNARY = {"Abs": numpy.abs, "Neg": numpy.negative, "Sign": numpy.sign, "BitwiseNot": numpy.invert,
         "Relu": lambda x: numpy.where(x < 0, x.dtype.type(0), x), "Floor": numpy.floor, "Ceil": numpy.ceil,
         "Round": numpy.round, "Sqrt": numpy.sqrt, "Reciprocal": numpy.reciprocal}
UNARY_TYPES = {"Abs": INTEGERS + ("f64", "f16"), "Neg": SIGNED + ("f64", "f16"), "Sign": INTEGERS + ("f64", "f16"),
               "BitwiseNot": INTEGERS, "Relu": SIGNED + ("f64", "f16"), "Floor": ("f64", "f16"), "Ceil": ("f64", "f16"),
               "Round": ("f64", "f16"), "Sqrt": ("f64", "f16"), "Reciprocal": ("f64", "f16")}
BINARY = {"Add": numpy.add, "Sub": numpy.subtract, "Mul": numpy.multiply, "Max": numpy.maximum, "Min": numpy.minimum,
          "Less": numpy.less, "LessOrEqual": numpy.less_equal, "Greater": numpy.greater,
          "GreaterOrEqual": numpy.greater_equal, "Equal": numpy.equal, "Div": truncated_quotient}
BITWISE = {"BitwiseAnd": numpy.bitwise_and, "BitwiseOr": numpy.bitwise_or, "BitwiseXor": numpy.bitwise_xor}


def without_zero(op, right):
    divides = op in ("Div", "Mod") and right.dtype.kind != "f"
    return numpy.where(right == 0, right.dtype.type(3), right) if divides else right


def cases():
    """(op, inputs, attributes, expected result)"""
    for op, types in UNARY_TYPES.items():
        for dtype in types:
            x = edges(dtype)
            yield op, [x], {}, UNARY[op](x)
    for op, compute in (BINARY | BITWISE).items():
        for dtype in INTEGERS + (("f64", "f16") if op in BINARY else ()):
            a, b = pairs(dtype)
            b = without_zero(op, b)
            yield op, [a, b], {}, compute(a, b)
    for dtype in INTEGERS + ("f64", "f16"):
        a, b = pairs(dtype)
        b = without_zero("Mod", b)
        yield "Mod", [a, b], {"fmod": 1}, numpy.fmod(a, b)
        if dtype[0] != "f":
            yield "Mod", [a, b], {}, numpy.mod(a, b)
        bounds = [kind(dtype)(3), kind(dtype)(100)]
        yield "Clip", [a, *bounds], {}, numpy.where(numpy.isnan(a), a, numpy.clip(a, *bounds)).astype(kind(dtype))
    for dtype in UNSIGNED:
        a, b = pairs(dtype)
        for direction in ("LEFT", "RIGHT"):
            yield "BitShift", [a, b], {"direction": direction}, shifted(a, b, direction == "LEFT")
    yield from powers()


def powers():
    """The base's type is the result's."""
    bases = {"f64": [0.5, 2, -3, 10], "f32": [0.5, 2, -3, 10], "i64": [1, 2, -3, 10], "i32": [1, 2, -3, 10],
             "u8": [1, 2, 3, 5]}
    for base, values in bases.items():
        for exponent in ("f64", "f32", "f16") + INTEGERS:
            a, b = numpy.array(values, kind(base)), numpy.array([0, 1, 3, 2], kind(exponent))
            yield "Pow", [a, b], {}, (a.astype(float) ** b.astype(float)).astype(kind(base))


def in_range(x, to):
    """Finite values that the integer type holds: ONNX does not define the results of others."""
    if x.dtype.kind not in "fV" or is_float(to) or to == "bool":
        return x
    limits = numpy.iinfo(kind(to))
    wide = x.astype(float)
    return x[numpy.isfinite(x) & (wide > limits.min - 1.0) & (wide < limits.max) & (wide >= float(limits.min))]


def casts():
    """(x, type, expected)"""
    wide = [dtype for dtype in TYPES if dtype not in NARROW]
    for source in wide:
        x = edges(source) if source != "bool" else numpy.array([True, False])
        if source == "f64":
            x = numpy.concatenate([x, [1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11, 65519.99, 65520, 2.0**-25, 2.0**53 + 2]])
        if source in ("f32", "f64"):  # what u64 alone holds
            x = numpy.concatenate([x, numpy.array([2.0**63, 1.5 * 2.0**63, 2.0**64 - 2.0**40], x.dtype)])
        if is_float(source):
            x = numpy.concatenate([x, numpy.array([2.5, -2.5, 127.9, -0.9, 255.4, 32767.5], x.dtype)])
        for to in wide:
            values = in_range(x, to)
            yield values, to, values.astype(kind(to))


def around(rng, dtype, shape):
    """Numbers whose sums, squares and products wrap around or, in f64, are exact integers."""
    if dtype == "f64":
        return rng.integers(-1000, 1000, shape).astype(numpy.float64)
    limits = numpy.iinfo(kind(dtype))
    return rng.integers(limits.min, limits.max, shape, dtype=kind(dtype), endpoint=True)


def folded(compute, start):
    def fold(x, axis):
        moved = numpy.moveaxis(x, axis, 0)
        total = numpy.full(moved.shape[1:], start, x.dtype)
        for part in moved:
            total = compute(total, part)
        return numpy.expand_dims(total, axis).astype(x.dtype)
    return fold


WRAPPING = ("f64", "i64", "i32", "u64", "u32")
REDUCTIONS = {
    "ReduceSum": (WRAPPING, folded(numpy.add, 0)), "ReduceProd": (WRAPPING[1:], folded(numpy.multiply, 1)),
    "ReduceSumSquare": (WRAPPING, folded(lambda total, x: total + x * x, 0)),
    "ReduceL1": (WRAPPING, folded(lambda total, x: total + numpy.abs(x), 0)),
    "ReduceMax": (("f64",) + INTEGERS, lambda x, axis: x.max(axis, keepdims=True)),
    "ReduceMin": (("f64",) + INTEGERS, lambda x, axis: x.min(axis, keepdims=True)),
    "ArgMax": (("f64",) + INTEGERS, lambda x, axis: numpy.expand_dims(x.argmax(axis), axis)),
    "ArgMin": (("f64",) + INTEGERS, lambda x, axis: numpy.expand_dims(x.argmin(axis), axis)),
}


def whole_tensors():
    """Reductions and products, exact: (op, inputs, attributes, expected result)"""
    rng = numpy.random.default_rng(21)
    for op, (types, compute) in REDUCTIONS.items():
        for dtype in types:
            for axis in (0, 1):
                x = around(rng, dtype, (5, 19))
                attributes = {"axis": axis} if op.startswith("Arg") else {"axes": [axis]}
                yield op, [x], attributes, compute(x, axis)
    for dtype in WRAPPING:
        a, b, c = (around(rng, dtype, shape) for shape in ((2, 3, 7), (7, 5), (5,)))
        yield "MatMul", [a, b], {}, a @ b
        yield "Gemm", [a[0].T.copy(), b, c], {"transA": 1}, a[0] @ b + c


def functions():
    """Functions of f64 and f16: (op, inputs, attributes, expected result in double, error in ULP)"""
    rng = numpy.random.default_rng(22)
    x = rng.uniform(-20, 20, (3, 41))
    table = {"Exp": (numpy.exp, 1), "Tanh": (numpy.tanh, 3), "Sigmoid": (lambda v: 1 / (1 + numpy.exp(-v)), 3)}
    for op, (compute, ulps) in table.items():
        yield op, [x], {}, compute(x), ulps + 1
    yield "Log", [abs(x)], {}, numpy.log(abs(x)), 2
    yield "Pow", [abs(x), x / 4], {}, abs(x) ** (x / 4), 2
    for op, compute in (("ReduceLogSumExp", lambda v: numpy.log(numpy.exp(v).sum(1, keepdims=True))),
                        ("ReduceLogSum", lambda v: numpy.log(abs(v).sum(1, keepdims=True))),
                        ("ReduceL2", lambda v: numpy.sqrt((v * v).sum(1, keepdims=True))),
                        ("ReduceMean", lambda v: v.mean(1, keepdims=True))):
        given = abs(x) if op == "ReduceLogSum" else x
        yield op, [given], {"axes": [1]}, compute(given), 41  # sums of 41 terms, each with a rounding
