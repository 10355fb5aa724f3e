# SPDX-License-Identifier: MIT
"""Casts from and to floats of 8 and 4 bits and integers of 4 and 2 bits, each with what ONNX's Cast says, by ml_dtypes."""
import numpy

from support.amount import long_tests
from support.dtypes import BY_NAME, NARROW, is_float, limits

NUMBERS = ("f64", "f32", "f16", "bf16", "i64", "i8", "u16", "bool")
FLOAT8 = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz")


def kind(dtype):
    return BY_NAME[dtype].numpy


def all_codes(dtype):
    return numpy.arange(2 ** BY_NAME[dtype].bits, dtype=numpy.uint8).view(kind(dtype))


def numbers(dtype):
    """Of a type that C has, or f16 or bf16: around every tie between the numbers of 8 bits, and far out."""
    rng = numpy.random.default_rng(5)
    if dtype == "bool":
        return numpy.array([False, True])
    if not is_float(dtype):
        ends = limits(dtype)
        return rng.integers(max(ends.min, -600), min(ends.max, 600), 200).astype(kind(dtype))
    codes = numpy.concatenate([all_codes(name).astype(numpy.float64) for name in FLOAT8 + ("f4e2m1", "f8e8m0")])
    codes = numpy.unique(codes[numpy.isfinite(codes)])
    ties = (codes[1:] + codes[:-1]) / 2
    apart = 2.0**-40 if dtype == "f64" else 2.0**-20
    x = numpy.concatenate([ties, ties * (1 + apart), ties * (1 - apart), codes, [464, 465, 1e6, -1e6, 1e-7, -1e-7],
                           [numpy.inf, -numpy.inf, numpy.nan, 0, -0.0]])
    return x.astype(kind(dtype))


def powers(x, saturate, rounding):
    """To f8e8m0, in whole numbers: the exponents of the powers of two around a magnitude."""
    result = []
    for value in numpy.abs(x.astype(numpy.float64)):
        if numpy.isnan(value):
            code = 255
        elif value < 2.0**-127:
            code = 0 if saturate else 255
        elif numpy.isinf(value):
            code = 254 if saturate else 255
        else:
            mantissa, exponent = numpy.frexp(value)  # mantissa in [1/2, 1)
            up = {"up": mantissa > 0.5, "down": False, "nearest": mantissa >= 0.75}[rounding]
            code = int(exponent) + 126 + int(up)
            code = code if code <= 254 else 254 if saturate else 255
        result.append(code)
    return numpy.array(result, numpy.uint8).view(kind("f8e8m0"))


def rounded(x, to, saturate):
    """The nearest number, of two the one whose code is even. ml_dtypes rounds f64 twice, by way of f32."""
    codes = all_codes(to)
    numbers = codes[:codes.size // 2].astype(numpy.float64)
    numbers = numbers[numpy.isfinite(numbers)]
    numbers = numpy.append(numbers, 2 * numbers[-1] - numbers[-2])  # what would follow
    middle = (numbers[1:] + numbers[:-1]) / 2
    wide = x.astype(numpy.float64)
    code = numpy.searchsorted(middle, numpy.abs(wide))
    code += (numpy.abs(wide) == numpy.append(middle, 0)[code]) & (code % 2 == 1)
    value = numpy.where(code < middle.size, numbers[code], numbers[-2] if saturate or to == "f4e2m1" else numpy.inf)
    value = numpy.where(numpy.isnan(wide), wide, numpy.copysign(value, wide))
    return value.astype(kind(to))


def wrapped(x, to):
    """Of floats towards zero; those that no i32 holds are not defined."""
    whole = numpy.trunc(x.astype(numpy.float64)).astype(numpy.int64)
    return (whole & (2 ** BY_NAME[to].bits - 1)).astype(numpy.uint8).view(kind(to))


def cast(source, to):
    """(x, attributes, expected), for each of the attributes that count."""
    x = numbers(source) if source in NUMBERS else all_codes(source)
    if is_float(source) and not is_float(to) and to != "bool":
        wide = x.astype(numpy.float64)
        low = -2.0**31 if to in NARROW else float(limits(to).min)
        high = 2.0**31 if to in NARROW else float(limits(to).max)
        x = x[numpy.isfinite(wide) & (wide >= low) & (wide < high)]
    if source == "f8e8m0":
        x = x[1:]  # without 2^-127, a denormal f32: 0 within a run
    if to == "f8e8m0":
        x = x[~(numpy.abs(x.astype(numpy.float64)) < 2.0**-126)] if source == "f64" else x  # no f32: 0 within a run
        for saturate, rounding in ((1, "up"), (0, "nearest"), (1, "down")):
            yield x, {"to": to, "saturate": saturate, "round_mode": rounding}, powers(x, saturate, rounding)
    elif is_float(to) and to in NARROW:
        for saturate in (1, 0) if to in FLOAT8 else (1,):
            yield x, {"to": to, "saturate": saturate}, rounded(x, to, saturate)
    elif to in NARROW:
        yield x, {"to": to}, wrapped(x, to)
    else:
        whole = x.astype(numpy.int64) if not is_float(source) else x.astype(numpy.float64)
        yield x, {"to": to}, whole.astype(kind(to))


def narrow_casts():
    """(x, attributes, expected): each narrow type from and to each other type; by default a share of the pairs."""
    pairs = [(source, to) for source in NUMBERS + NARROW for to in NUMBERS + NARROW
             if source != to and (source in NARROW or to in NARROW)]
    for source, to in pairs if long_tests() else pairs[::4]:
        yield from cast(source, to)
