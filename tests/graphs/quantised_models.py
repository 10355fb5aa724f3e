# SPDX-License-Identifier: MIT
"""Random quantised operators: QUANTISED[name](rng) -> (Model, feeds). Scales are powers of two, so that only the last rounding
matters, and results can be compared bit for bit."""
import numpy
import onnx
import onnx.reference
from numpy.lib.stride_tricks import sliding_window_view

from graphs.op_models import one_op
from support.dtypes import BY_NAME
from support.model_builder import TYPES

QUANTISED = {}


def case(build):
    QUANTISED[build.__name__] = build
    return build


def integers(rng, dtype, shape):
    limits = numpy.iinfo(TYPES[dtype][0])
    return rng.integers(limits.min, limits.max + 1, shape).astype(TYPES[dtype][0])


def scale(rng, shape=()):
    return (2.0 ** rng.integers(-6, 3, shape)).astype(numpy.float32)


def eight_bits(rng):
    return str(rng.choice(["u8", "i8"]))


@case
def quantize(rng):
    dtype, shape = str(rng.choice(["u8", "i8", "u16", "i16"])), (3, 5, 7)
    x = (rng.integers(-2000, 2000, shape) / 8).astype(numpy.float32)
    zero = integers(rng, dtype, ())
    return one_op("QuantizeLinear", [x, scale(rng), zero if dtype != "u8" or rng.random() < 0.7 else None])


@case
def quantize_axis(rng):
    dtype, axis = eight_bits(rng), int(rng.integers(-3, 3))
    x = (rng.integers(-2000, 2000, (3, 5, 7)) / 8).astype(numpy.float32)
    extent = x.shape[axis]
    return one_op("QuantizeLinear", [x, scale(rng, extent), integers(rng, dtype, extent)], axis=axis)


FLOATS = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1")
INTEGERS = ("i4", "u4", "i2", "u2")


def narrow(rng, dtype, shape):
    """Finite numbers of the type, in a few of its lowest bits."""
    return rng.integers(0, 2 ** min(BY_NAME[dtype].bits, 6), shape).astype(numpy.uint8).view(TYPES[dtype][0])


def newest(op, arrays, **attributes):
    model, feeds = one_op(op, arrays, **attributes)
    model.opset = 25
    return model, feeds


def onnx_reference(model, feeds):
    evaluator = onnx.reference.ReferenceEvaluator(model.onnx())
    return dict(zip(model.outputs, evaluator.run(None, feeds)))


@case
def quantize_to_narrow_floats(rng):
    x = (rng.integers(-2000, 2000, (3, 5, 7)) / 8).astype(numpy.float32)
    return newest("QuantizeLinear", [x, scale(rng, 5)], output_dtype=str(rng.choice(FLOATS)))


@case
def quantize_to_narrow_integers(rng):
    dtype = str(rng.choice(INTEGERS))
    x = (rng.integers(-200, 200, (3, 5, 7)) / 8).astype(numpy.float32)
    return newest("QuantizeLinear", [x, scale(rng), narrow(rng, dtype, ())], precision=rng.choice(["f16", "bf16", None]))


@case
def quantize_blocks(rng):
    dtype, axis = str(rng.choice(INTEGERS + ("u8",))), int(rng.integers(-2, 2))
    x = (rng.integers(-200, 200, (6, 10)) / 8).astype(numpy.float32)
    shape = [2, 10] if axis in (0, -2) else [6, 3]  # blocks of 4: the last one is shorter
    return newest("QuantizeLinear", [x, scale(rng, shape), narrow(rng, dtype, shape)], axis=axis, block_size=4)


@case
def dequantize_narrow(rng):
    dtype = str(rng.choice(FLOATS + INTEGERS))
    to = str(rng.choice(["f32", "f16"]))
    return newest("DequantizeLinear", [narrow(rng, dtype, (4, 9)), scale(rng, 9)], output_dtype=to)


@case
def dequantize_blocks(rng):
    dtype, axis = str(rng.choice(INTEGERS + ("u8",))), int(rng.integers(-3, 3))
    shape = [2, 6, 8]
    blocks = list(shape)
    blocks[axis] = -(-shape[axis] // 3)
    return newest("DequantizeLinear", [narrow(rng, dtype, shape), scale(rng, blocks), narrow(rng, dtype, blocks)],
                  axis=axis, block_size=3)


@case
def dequantize_scales_of_powers(rng):
    scales = rng.integers(120, 134, (4, 3)).astype(numpy.uint8).view(TYPES["f8e8m0"][0])
    return newest("DequantizeLinear", [narrow(rng, "f4e2m1", (4, 12)), scales], axis=1, block_size=4, output_dtype="f32")


@case
def dequantize(rng):
    dtype = str(rng.choice(["u8", "i8", "u16", "i16"]))
    return one_op("DequantizeLinear", [integers(rng, dtype, (4, 9)), scale(rng), integers(rng, dtype, ())])


@case
def dequantize_i32(rng):
    return one_op("DequantizeLinear", [integers(rng, "i32", (4, 9)), scale(rng)])


@case
def dequantize_axis(rng):
    dtype, axis = eight_bits(rng), int(rng.integers(0, 3))
    x = integers(rng, dtype, (3, 5, 7))
    return one_op("DequantizeLinear", [x, scale(rng, x.shape[axis]), integers(rng, dtype, x.shape[axis])], axis=axis)


@case
def dynamic_quantize(rng):
    x = rng.uniform(-3, 5, (6, 7)).astype(numpy.float32)
    return one_op("DynamicQuantizeLinear", [x if rng.random() < 0.7 else numpy.abs(x) + 1], outputs=3)


@case
def dynamic_quantize_many(rng):
    """The range is found in 64 parts, here of some vectors and a rest each."""
    return one_op("DynamicQuantizeLinear", [rng.standard_normal((7, 701)).astype(numpy.float32)], outputs=3)


def zero_point(rng, dtype, shape=()):
    return None if rng.random() < 0.3 else integers(rng, dtype, shape)


def constants(rng, *indices):
    return indices if rng.random() < 0.5 else ()


@case
def matmul_integer(rng):
    a, b = eight_bits(rng), eight_bits(rng)
    M, K, N = (int(rng.integers(1, most)) for most in (9, 700, 40))
    batch = (2,) if rng.random() < 0.3 else ()
    rows = zero_point(rng, a)
    columns = zero_point(rng, b, N if rng.random() < 0.5 else ())
    return one_op("MatMulInteger", [integers(rng, a, (*batch, M, K)), integers(rng, b, (*batch, K, N)), rows, columns],
                  constants=constants(rng, 1, 3))


@case
def qlinear_matmul(rng):
    a = eight_bits(rng)
    b = "i8" if a == "i8" else eight_bits(rng)
    M, K, N = (int(rng.integers(1, most)) for most in (9, 400, 40))
    per_column = N if rng.random() < 0.5 else ()
    inputs = [integers(rng, a, (M, K)), scale(rng), integers(rng, a, ()), integers(rng, b, (K, N)),
              scale(rng, per_column), integers(rng, b, per_column),
              numpy.float32(2.0 ** 7), integers(rng, a, ())]
    return one_op("QLinearMatMul", inputs, constants=constants(rng, 3, 4, 5))


def convolution(rng):
    """(shape of x, shape of w, attributes)"""
    groups = int(rng.choice([1, 1, 2]))
    channels, kernels = groups * int(rng.integers(1, 60)), groups * int(rng.integers(1, 20))
    side, window = int(rng.integers(5, 12)), int(rng.integers(1, 4))
    attributes = {"group": groups, "strides": [int(rng.integers(1, 3))] * 2,
                  "pads": [int(pad) for pad in rng.integers(0, 2, 4)]}
    x, w = (int(rng.integers(1, 3)), channels, side, side + 1), (kernels, channels // groups, window, window)
    return x, w, attributes


@case
def conv_integer(rng):
    x, w, attributes = convolution(rng)
    return one_op("ConvInteger", [integers(rng, "u8", x), integers(rng, "u8", w), zero_point(rng, "u8"),
                                  zero_point(rng, "u8")], constants=constants(rng, 1, 3), **attributes)


@case
def qlinear_conv(rng):
    x, w, attributes = convolution(rng)
    dtype, kernels = eight_bits(rng), w[0]
    weights = "i8" if dtype == "i8" else eight_bits(rng)
    each = kernels if weights == "i8" and rng.random() < 0.6 else ()
    zero = numpy.zeros(each, TYPES[weights][0]) if weights == "i8" else integers(rng, weights, ())
    inputs = [integers(rng, dtype, x), scale(rng), integers(rng, dtype, ()), integers(rng, weights, w),
              scale(rng, each), zero, numpy.float32(2.0 ** 9), integers(rng, dtype, ())]
    if rng.random() < 0.6:
        inputs.append(rng.integers(-(2**15), 2**15, kernels).astype(numpy.int32))
    return one_op("QLinearConv", inputs, constants=constants(rng, 3, 4, 5, 8), **attributes)


# ---- products in exact arithmetic ----

PRODUCTS = ("MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv")


def convolve(x, w, group, strides, pads):
    windows = sliding_window_view(numpy.pad(x, [(0, 0), (0, 0), pads[::2], pads[1::2]]), w.shape[2:], (2, 3))
    parts = zip(numpy.split(windows[:, :, ::strides[0], ::strides[1]], group, 1), numpy.split(w, group))
    return numpy.concatenate([numpy.einsum("nchwrs,kcrs->nkhw", *part) for part in parts], 1)


def multiply(op, attributes, a, b, a_zero, b_zero):
    """The sums of products, in 64 bits."""
    a, b, b_zero = a - numpy.int64(a_zero), b.astype(numpy.int64), numpy.asarray(b_zero, numpy.int64)
    return convolve(a, b - b_zero.reshape(-1, 1, 1, 1), **attributes) if "Conv" in op else a @ (b - b_zero)


def exact_run(model, feeds):
    """Outputs by name of a model of one of PRODUCTS. Scales are powers of two: f64 holds each scaled sum exactly."""
    node, = model.nodes
    values = {**model.arrays, **feeds}
    inputs = [values.get(name) for name in node["inputs"]]
    if node["op"].endswith("Integer"):
        zeros = [0 if zero is None else zero for zero in (*inputs[2:], None, None)[:2]]
        sums = multiply(node["op"], node["attributes"], *inputs[:2], *zeros)
        return {model.outputs[0]: sums.astype(numpy.int32)}
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero, *bias = inputs
    factor, added = a_scale.astype(float) * b_scale / scale, bias[0] if bias else numpy.int64(0)
    if node["op"] == "QLinearConv":
        factor, added = factor.reshape(-1, 1, 1), added.reshape(-1, 1, 1)
    rounded = numpy.rint((multiply(node["op"], node["attributes"], a, b, a_zero, b_zero) + added) * factor)
    limits = numpy.iinfo(zero.dtype)
    return {model.outputs[0]: numpy.clip(rounded + zero, limits.min, limits.max).astype(zero.dtype)}
