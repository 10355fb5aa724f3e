# SPDX-License-Identifier: MIT
"""Element-wise ops on every element type, at its edges: TYPE_CASES[name]() -> (op, arrays, attributes), each with what
NumPy says the result is. Integers wrap around, as C's unsigned ones do."""
import numpy

from support.model_builder import TYPES

UNSIGNED, SIGNED = ("u64", "u32", "u16", "u8"), ("i64", "i32", "i16", "i8")
INTEGERS = SIGNED + UNSIGNED
HALF_EDGES = [0, -0.0, 1, -1, 0.5, 1.5, 65504, -65504, 6e-8, 6.1e-5, -6e-8, 1 / 3, 2049, numpy.inf, -numpy.inf, numpy.nan]


def kind(dtype):
    return TYPES[dtype][0]


def edges(dtype):
    """Values around the limits of the type, and some within."""
    if dtype[0] == "f":
        return numpy.array(HALF_EDGES + ([1e300, -1e-300] if dtype == "f64" else []), kind(dtype))
    limits = numpy.iinfo(kind(dtype))
    values = [limits.min, limits.min + 1, 0, 1, 2, 3, 7, 100, limits.max // 2, limits.max // 2 + 1, limits.max - 1, limits.max]
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
    return numpy.where(right == 0, right.dtype.type(3), right) if op in ("Div", "Mod") and right.dtype.kind != "f" else right


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
    bases = {"f64": [0.5, 2, -3, 10], "f32": [0.5, 2, -3, 10], "i64": [1, 2, -3, 10], "i32": [1, 2, -3, 10], "u8": [1, 2, 3, 5]}
    for base, values in bases.items():
        for exponent in ("f64", "f32", "f16") + INTEGERS:
            a, b = numpy.array(values, kind(base)), numpy.array([0, 1, 3, 2], kind(exponent))
            yield "Pow", [a, b], {}, (a.astype(float) ** b.astype(float)).astype(kind(base))


def in_range(x, to):
    """Finite values that the integer type holds: what others become is not ONNX's to say."""
    if x.dtype.kind != "f" or to[0] == "f" or to == "bool":
        return x
    limits = numpy.iinfo(kind(to))
    wide = x.astype(float)
    return x[numpy.isfinite(x) & (wide > limits.min - 1.0) & (wide < limits.max) & (wide >= float(limits.min))]


def casts():
    """(x, type, expected)"""
    for source in TYPES:
        x = edges(source) if source != "bool" else numpy.array([True, False])
        if source == "f64":
            x = numpy.concatenate([x, [1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11, 65519.99, 65520, 2.0**-25, 2.0**53 + 2]])
        if source[0] == "f":
            x = numpy.concatenate([x, numpy.array([2.5, -2.5, 127.9, -0.9, 255.4, 32767.5], x.dtype)])
        for to in TYPES:
            values = in_range(x, to)
            yield values, to, values.astype(kind(to))
