# SPDX-License-Identifier: MIT
"""Quantised models that lie: a node, of which the first input is the model's and the others are constants, its exit code and
what is said of it, behind the file and the node. In JSON and in ONNX the same."""
import numpy

from support.model_builder import TYPES

DENORMAL, TINY = numpy.float32(1e-40), numpy.float32(2.0**-126)
NAN, INF = numpy.nan, numpy.inf
IMAGE, WEIGHTS = numpy.zeros((1, 2, 5, 5), numpy.uint8), numpy.ones((3, 2, 1, 1), numpy.int8)
# ONNX Runtime's own.
CONTRIB = {"DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "GatherBlockQuantized", "MatMulIntegerToFloat", "MatMulNBits", "QGemm", "QLinearAdd", "QLinearConcat",
           "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearSoftmax", "QLinearWhere"}


def array(value, dtype="f32"):
    return numpy.asarray(value, TYPES[dtype][0])


def ones(*shape, dtype="i8"):
    return numpy.ones(shape, TYPES[dtype][0])


ZERO, ZERO_I8 = array(0, "u8"), array(0, "i8")
ROWS_OF_A = ones(2, 3, dtype="u8")


def quantise(scale, zero=ZERO, x="f32", **attributes):
    return "QuantizeLinear", [ones(2, 3, dtype=x), array(scale), zero], attributes


def dequantise(scale, zero=None, x="i8", **attributes):
    return "DequantizeLinear", [ones(2, 3, dtype=x), array(scale), zero], attributes


def convolve(x_scale=0.5, x_zero=ZERO, w=WEIGHTS, w_scale=0.25, w_zero=ZERO_I8, y_scale=1.0, y_zero=ZERO, bias=None, **attributes):
    return "QLinearConv", [IMAGE, array(x_scale), x_zero, w, array(w_scale), w_zero, array(y_scale), y_zero, bias], attributes


def multiply(a_scale=0.5, a_zero=ZERO, b=ones(3, 4), b_scale=0.25, b_zero=ZERO_I8, y_scale=1.0, y_zero=ZERO):
    return "QLinearMatMul", [ROWS_OF_A, array(a_scale), a_zero, b, array(b_scale), b_zero, array(y_scale), y_zero], {}


def multiply_integers(b=ones(3, 4), a_zero=ZERO, b_zero=ZERO_I8):
    return "MatMulInteger", [ROWS_OF_A, b, a_zero, b_zero], {}


def convolve_integers(w=WEIGHTS, x_zero=ZERO, w_zero=ZERO_I8, x=IMAGE):
    return "ConvInteger", [x, w, x_zero, w_zero], {}


def to_floats(a_scale=0.5, b_scale=0.25, a_zero=ZERO, b_zero=ZERO_I8, bias=None):
    return "MatMulIntegerToFloat", [ROWS_OF_A, ones(3, 4), array(a_scale), array(b_scale), a_zero, b_zero, bias], {}


def dynamic(b_scale=0.25, b_zero=ZERO_I8, bias=None):
    return "DynamicQuantizeMatMul", [ones(2, 3, dtype="f32"), ones(3, 4), array(b_scale), b_zero, bias], {}


def gemm(a_scale=0.5, b_scale=0.25, y_scale=1.0, y_zero=ZERO, c=None):
    y_scale = y_scale if y_scale is None else array(y_scale)
    return "QGemm", [ROWS_OF_A, array(a_scale), ZERO, ones(3, 4), array(b_scale), ZERO_I8, c, y_scale, y_zero], {}


def recurrent(w=ones(1, 3, 16), r=ones(1, 4, 16), w_scale=(0.5,), w_zero=ones(1), r_scale=(0.5,), r_zero=ones(1), x=ones(2, 1, 3, dtype="f32"),
              bias=None, hidden_size=4, **attributes):
    """Weights as ONNX Runtime has them, [directions, depth, 4 * hidden_size]."""
    scales = [value if value is None or isinstance(value, numpy.ndarray) else array(value) for value in (w_scale, r_scale)]
    return ("DynamicQuantizeLSTM", [x, w, r, bias, None, None, None, None, scales[0], w_zero, scales[1], r_zero],
            {"hidden_size": hidden_size, **attributes})


def blocks(scales=ones(4, 2, dtype="f32"), zero=None, b=ones(4, 2, 8, dtype="u8"), **attributes):
    return "MatMulNBits", [ones(2, 32, dtype="f32"), b, scales, zero], {"K": 32, "N": 4, "bits": 4, "block_size": 16, **attributes}


def table(scales=ones(3, 2, dtype="f32"), **attributes):
    return "GatherBlockQuantized", [ones(3, 16, dtype="u8"), array([1, 0], "i64"), scales], {"block_size": 16, **attributes}


def add(a_scale=0.5, a_zero=ZERO, b_scale=0.25, b_zero=ZERO, y_scale=1.0, y_zero=ZERO, b=ROWS_OF_A):
    return "QLinearAdd", [ROWS_OF_A, array(a_scale), a_zero, b, array(b_scale), b_zero, array(y_scale), y_zero], {}


def joined(*parts):
    return "QLinearConcat", [array(0.5), ZERO, *parts], {"axis": 0}


BAD = [
    ("a scale of zero", quantise(0), 2,
     "QuantizeLinear: input 1 has the scale 0 at position 0; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("a scale below zero", quantise(-0.5), 2,
     "QuantizeLinear: input 1 has the scale -0.5 at position 0; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("a scale that is no number", quantise(NAN), 2,
     "QuantizeLinear: input 1 has the scale nan at position 0; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("a scale without end", quantise(INF), 2,
     "QuantizeLinear: input 1 has the scale inf at position 0; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("a denormal scale", quantise(DENORMAL), 2,
     "QuantizeLinear: input 1 has the scale 9.99995e-41 at position 0; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("one of several scales", quantise([1, 1, 0], array([0, 0, 0], "u8"), axis=1), 2,
     "QuantizeLinear: input 1 has the scale 0 at position 2; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("a scale of what is dequantised", dequantise([1, -2, 1], axis=1), 2,
     "DequantizeLinear: input 1 has the scale -2 at position 1; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("a scale of a bias", dequantise(-1, x="i32"), 2,
     "DequantizeLinear: input 1 has the scale -1 at position 0; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("a scale of blocks", quantise(numpy.zeros((1, 3)), None, axis=0, block_size=2), 2,
     "QuantizeLinear: input 1 has the scale 0 at position 0; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("two axes of scales", quantise([[1, 1, 1], [1, 1, 1]], None), 2,
     "QuantizeLinear: input 1 must be one number or one for each of axis 1 of `x0` f32[2, 3], found `x1` f32[2, 3]"),
    ("scales for each of another axis", quantise([1, 1], axis=1), 2,
     "QuantizeLinear: input 1 must be one number or one for each of axis 1 of `x0` f32[2, 3], found `x1` f32[2]"),
    ("an axis that is not there", quantise([1, 1], axis=2), 2, "QuantizeLinear: axis is 2; it must be in -2..1"),
    ("an axis far below", dequantise([1, 1], axis=-4), 2, "DequantizeLinear: axis is -4; it must be in -2..1"),
    ("fewer zero points than scales", quantise([1, 1, 1], array([0, 0], "u8"), axis=1), 2,
     "QuantizeLinear: input 2 must be one number or one for each of axis 1 of `x0` f32[2, 3], found `x2` u8[2]"),
    ("a zero point of another type", dequantise(1, ZERO), 2,
     "inputs 0 and 2 of DequantizeLinear must have one type, found i8 (`x0`) and u8 (`x2`)"),
    ("a zero point of floats", quantise(1, array(0)), 3,
     "input 2 of QuantizeLinear (`x2`) is f32; it may be i16,i8,u16,u8,f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz,f4e2m1,i4,u4,i2,u2"),
    ("a zero point of 32 bits", quantise(1, array(0, "i32")), 3,
     "input 2 of QuantizeLinear (`x2`) is i32; it may be i16,i8,u16,u8,f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz,f4e2m1,i4,u4,i2,u2"),
    ("a type beside another zero point's", quantise(1, ZERO, output_dtype="i8"), 2,
     'QuantizeLinear: `output_dtype` is "i8", and the zero point is u8; expected one type'),
    ("a type that is not quantised", quantise(1, None, output_dtype="i64"), 3,
     'QuantizeLinear: `output_dtype` is "i64"; it may be an integer of 2 to 16 bits, or a float of 4 or 8 with a sign'),
    ("a quantised input", quantise(1, x="u8"), 3, "input 0 of QuantizeLinear (`x0`) is u8; it may be f32,i32"),
    ("an input of floats", dequantise(1, x="f32"), 3,
     "input 0 of DequantizeLinear (`x0`) is f32; it may be i32,i16,i8,u16,u8,f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz,f4e2m1,i4,u4,i2,u2"),
    ("a negative block", quantise(1, block_size=-2), 2, "QuantizeLinear: `block_size` is -2; expected 0 or more"),
    ("blocks of another number", dequantise([[1, 1, 1]], axis=0, block_size=1), 2,
     "DequantizeLinear: input 1 must have a number for each block of 1 along axis 0 of `x0` i8[2, 3], found `x1` f32[1, 3]"),
    ("blocks along an axis that is not there", dequantise([[1, 1, 1]], axis=3, block_size=2), 2,
     "DequantizeLinear: axis is 3; it must be in -2..1"),
    ("a scale of an image", convolve(x_scale=0), 2,
     "QLinearConv: input 1 has the scale 0 at position 0; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("several scales of an image", convolve(x_scale=[1, 2]), 3,
     "QLinearConv: input 1 must be a single number, found `x1` f32[2]"),
    ("a scale of a channel", convolve(w_scale=[1, NAN, 1]), 2,
     "QLinearConv: input 4 has the scale nan at position 1; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("a scale of a result", convolve(y_scale=-1), 2,
     "QLinearConv: input 6 has the scale -1 at position 0; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("more scales than channels", convolve(w_scale=[1, 1, 1, 1]), 2,
     "QLinearConv: input 4 must be one number or one for each of axis 0 of `x3` i8[3, 2, 1, 1], found `x4` f32[4]"),
    ("fewer zero points than channels", convolve(w_zero=array([0, 0], "i8")), 2,
     "QLinearConv: input 5 must be one number or one for each of axis 0 of `x3` i8[3, 2, 1, 1], found `x5` i8[2]"),
    ("a zero point of an image of another type", convolve(x_zero=ZERO_I8), 2,
     "inputs 0 and 2 of QLinearConv must have one type, found u8 (`x0`) and i8 (`x2`)"),
    ("a zero point of weights of another type", convolve(w_zero=ZERO), 2,
     "inputs 3 and 5 of QLinearConv must have one type, found i8 (`x3`) and u8 (`x5`)"),
    ("a bias of another length", convolve(bias=array([1, 2], "i32")), 2,
     "QLinearConv: input 8 must be the bias, [M] = [3], found `x8` i32[2]"),
    ("a bias of floats", convolve(bias=array([1, 2, 3])), 3, "input 8 of QLinearConv (`x8`) is f32; it may be i32"),
    ("a convolution of other channels", convolve(w=ones(3, 4, 1, 1)), 2,
     "Conv: the weights are `x3` i8[3, 4, 1, 1]; axis 1 must be 2, the channels of `x0` u8[1, 2, 5, 5] by group 1"),
    ("a convolution without weights' scale", ("QLinearConv", [IMAGE, array(1), ZERO, WEIGHTS], {}), 2,
     "QLinearConv has 8 to 9 inputs, found 4"),
    ("a scale of rows", multiply(a_scale=[1, 0]), 2,
     "QLinearMatMul: input 1 has the scale 0 at position 1; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("a scale of columns", multiply(b_scale=[1, 1, 1, -1]), 2,
     "QLinearMatMul: input 4 has the scale -1 at position 3; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("a scale of a product", multiply(y_scale=DENORMAL), 2,
     "QLinearMatMul: input 6 has the scale 9.99995e-41 at position 0; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("scales for each of the depth", multiply(b_scale=[1, 1, 1]), 2,
     "QLinearMatMul: input 4 must be one number or one for each of axis -1 of `x3` i8[3, 4], found `x4` f32[3]"),
    ("a depth of another length", multiply(b=ones(4, 4)), 2,
     "MatMul: `x0` u8[2, 3] times `x3` i8[4, 4]: inner extents 3 and 4 differ"),
    ("zero points for each of the depth", multiply_integers(b_zero=array([0, 0, 0], "i8")), 2,
     "MatMulInteger: input 3 must be one number or one for each of axis -1 of `x1` i8[3, 4], found `x3` i8[3]"),
    ("a zero point of rows of another type", multiply_integers(a_zero=ZERO_I8), 2,
     "inputs 0 and 2 of MatMulInteger must have one type, found u8 (`x0`) and i8 (`x2`)"),
    ("integers of 32 bits", multiply_integers(b=ones(3, 4, dtype="i32"), b_zero=None), 3,
     "input 1 of MatMulInteger (`x1`) is i32; it may be i8,u8"),
    ("several zero points of an image", convolve_integers(x_zero=array([0, 0], "u8")), 3,
     "ConvInteger: input 2 must be a single number, found `x2` u8[2]"),
    ("a window whose sums f32 does not hold", convolve_integers(w=ones(1, 2, 17, 17), x=ones(1, 2, 20, 20, dtype="u8")), 3,
     "ConvInteger: the window of `x1` i8[1, 2, 17, 17] has more than 258 elements, beyond which sums may be rounded"),
    ("a scale of columns, to floats", to_floats(b_scale=[1, 1, 1, 0]), 2,
     "MatMulIntegerToFloat: input 3 has the scale 0 at position 3; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("zero points for each of other rows", to_floats(a_zero=array([0, 0, 0], "u8")), 2,
     "MatMulIntegerToFloat: input 4 must be one number or one for each of axis -2 of `x0` u8[2, 3], found `x4` u8[3]"),
    ("a bias of another length, of floats", to_floats(bias=array([1, 2, 3])), 2,
     "MatMulIntegerToFloat: input 6 must be the bias, one for each column = [4], found `x6` f32[3]"),
    ("a scale of a dynamic product", dynamic(b_scale=INF), 2,
     "DynamicQuantizeMatMul: input 2 has the scale inf at position 0; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("more scales than columns", dynamic(b_scale=[1, 1, 1, 1, 1]), 2,
     "DynamicQuantizeMatMul: input 2 must be one number or one for each of axis -1 of `x1` i8[3, 4], found `x2` f32[5]"),
    ("a zero point of a dynamic product of another type", dynamic(b_zero=ZERO), 2,
     "inputs 1 and 3 of DynamicQuantizeMatMul must have one type, found i8 (`x1`) and u8 (`x3`)"),
    ("a zero point of a result without its scale", gemm(y_scale=None), 2,
     "QGemm: y_zero_point (input 8) has no y_scale (input 7)"),
    ("scales for each of the depth, of Gemm", gemm(b_scale=[1, 1, 1]), 2,
     "QGemm: input 4 must be one number or one for each of axis 1 of `x3` i8[3, 4], found `x4` f32[3]"),
    ("a sum of another shape", gemm(c=array([1, 2, 3], "i32")), 2, "Gemm: C is `x6` i32[3]; it must broadcast to [2, 4]"),
    ("blocks of a number that is no power of two", blocks(block_size=24), 2,
     "MatMulNBits: `block_size` is 24; it must be a power of two, at least 16"),
    ("blocks of 8", blocks(block_size=8), 2, "MatMulNBits: `block_size` is 8; it must be a power of two, at least 16"),
    ("numbers of 3 bits", blocks(bits=3), 3, "MatMulNBits: `bits` is 3; it may be 2, 4 or 8"),
    ("fewer scales than blocks", blocks(scales=ones(4, 1, dtype="f32")), 2,
     "MatMulNBits: input 2 must be [4, 2], or as many in a row, found `x2` f32[4, 1]"),
    ("fewer zero points than blocks", blocks(zero=ones(3, dtype="u8")), 2,
     "MatMulNBits: input 3 must be [4, 1], or as many in a row, found `x3` u8[3]"),
    ("fewer bytes than numbers", blocks(b=ones(4, 2, 4, dtype="u8")), 2,
     "MatMulNBits: input 1 must be the weights, [N, blocks, bytes] = [4, 2, 8], found `x1` u8[4, 2, 4]"),
    ("another depth", blocks(K=48), 2, "MatMulNBits: the last axis of `x0` f32[2, 32] must be `K`, 48"),
    ("no columns", blocks(N=0), 2, "MatMulNBits: `K` and `N` are 32 and 0; they must be at least 1"),
    ("no depth", ("MatMulNBits", [ones(2, 32, dtype="f32"), ones(4, 2, 8, dtype="u8"), ones(8, dtype="f32")], {"N": 4, "block_size": 16}), 2,
     "MatMulNBits needs the attribute `K`, an integer"),
    ("fewer scales than blocks of a table", table(scales=ones(3, 1, dtype="f32")), 2,
     "GatherBlockQuantized: input 2 must be those of each block = [3, 2], found `x2` f32[3, 1]"),
    ("a table of bytes that is taken along another axis", table(gather_axis=1), 2,
     "GatherBlockQuantized: of bytes `gather_axis` must be 0, and `quantize_axis` another one"),
    ("an axis of blocks that is not there", table(quantize_axis=2), 2,
     "GatherBlockQuantized: quantize_axis is 2; it must be in -2..1"),
    ("a scale of a sum", add(b_scale=0), 2,
     "QLinearAdd: input 4 has the scale 0 at position 0; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("several scales of a sum", add(a_scale=[1, 1, 1]), 3, "QLinearAdd: input 1 must be a single number, found `x1` f32[3]"),
    ("a zero point of a sum of another type", add(y_zero=ZERO_I8), 2,
     "inputs 0 and 7 of QLinearAdd must have one type, found u8 (`x0`) and i8 (`x7`)"),
    ("a sum of lengths that do not broadcast", add(b=ones(2, 4, dtype="u8")), 2,
     "Add: `x3` u8[2, 4] does not broadcast with [2, 3]: 4 and 3 are neither equal nor 1"),
    ("parts without a zero point", joined(ROWS_OF_A, array(0.5)), 2, "QLinearConcat needs at least 5 inputs, found 4"),
    ("a part of another type", joined(ROWS_OF_A, array(0.5), ZERO_I8), 2,
     "QLinearConcat: expected a tensor of u8 or i8, an f32 scale and a zero point of the tensor's type from input 2 on, found u8, f32 and i8"),
    ("a part with a scale of zero", joined(ROWS_OF_A, array(0), ZERO), 2,
     "QLinearConcat: input 3 has the scale 0 at position 0; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("no parts", joined(), 2, "QLinearConcat needs at least 5 inputs, found 2"),
    ("an axis of a softmax that is not there", ("QLinearSoftmax", [ROWS_OF_A, array(1), ZERO, array(1), ZERO], {"axis": 2, "opset": 13}), 2,
     "QLinearSoftmax: axis is 2; it must be in -2..1"),
    ("a mean of a scale of zero", ("QLinearGlobalAveragePool", [IMAGE, array(1), ZERO, array(0), ZERO], {}), 2,
     "QLinearGlobalAveragePool: input 3 has the scale 0 at position 0; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("a mean of no plane", ("QLinearGlobalAveragePool", [ROWS_OF_A, array(1), ZERO, array(1), ZERO], {}), 2,
     "QLinearGlobalAveragePool: input 0 must have at least rank 3, found `x0` u8[2, 3]"),
]
# Of ONNX files alone: an LSTM of the model's own format says `precision` instead.
BAD_IN_ONNX = [
    ("weights as an LSTM has them", recurrent(w=ones(1, 16, 3)), 2,
     "DynamicQuantizeLSTM: input 1 must be W, [directions, input_size, 4*hidden_size] = [1, 3, 16], found `x1` i8[1, 16, 3]"),
    ("weights without directions", recurrent(w=ones(3, 16)), 2,
     "DynamicQuantizeLSTM: input 1 must be W, [directions, input_size, 4*hidden_size] = [1, 3, 16], found `x1` i8[3, 16]"),
    ("weights of one direction of two", recurrent(direction="bidirectional"), 2,
     "DynamicQuantizeLSTM: input 1 must be W, [directions, input_size, 4*hidden_size] = [2, 3, 16], found `x1` i8[1, 3, 16]"),
    ("weights of another depth", recurrent(r=ones(1, 5, 16)), 2,
     "DynamicQuantizeLSTM: input 2 must be R, [directions, hidden_size, 4*hidden_size] = [1, 4, 16], found `x2` i8[1, 5, 16]"),
    ("another hidden size", recurrent(hidden_size=5), 2,
     "DynamicQuantizeLSTM: input 1 must be W, [directions, input_size, 4*hidden_size] = [1, 3, 20], found `x1` i8[1, 3, 16]"),
    ("no hidden size", recurrent(hidden_size=0), 2,
     "LSTM: `hidden_size` is 0; it must be at least 1"),
    ("inputs without a batch", recurrent(x=ones(2, 3, dtype="f32")), 2,
     "LSTM: input 0 must have rank 3, found `x0` f32[2, 3]"),
    ("weights in floats", recurrent(w=ones(1, 3, 16, dtype="f32")), 3,
     "input 1 of DynamicQuantizeLSTM (`x1`) is f32; it may be i8,u8"),
    ("weights of two types", recurrent(r=ones(1, 4, 16, dtype="u8")), 2,
     "inputs 1 and 2 of DynamicQuantizeLSTM must have one type, found i8 (`x1`) and u8 (`x2`)"),
    ("a zero point of weights of another type, recurrent", recurrent(w_zero=ones(1, dtype="u8")), 2,
     "inputs 1 and 9 of DynamicQuantizeLSTM must have one type, found i8 (`x1`) and u8 (`x9`)"),
    ("a scale of zero, recurrent", recurrent(w_scale=[0]), 2,
     "DynamicQuantizeLSTM: input 8 has the scale 0 at position 0; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("a scale of a column that is no number", recurrent(r_scale=[[1] * 15 + [NAN]], r_zero=ones(1, 16)), 2,
     "DynamicQuantizeLSTM: input 10 has the scale nan at position 15; expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"),
    ("a scale in f64", recurrent(w_scale=array([1], "f64")), 3,
     "input 8 of DynamicQuantizeLSTM (`x8`) is f64; it may be f32"),
    ("more scales than directions", recurrent(w_scale=[1, 1]), 2,
     "DynamicQuantizeLSTM: input 8 must be the scales, [directions] or [directions, 4*hidden_size] = [1], found `x8` f32[2]"),
    ("a scale that is one number", recurrent(w_scale=1), 2,
     "DynamicQuantizeLSTM: input 8 must be the scales, [directions] or [directions, 4*hidden_size] = [1], found `x8` f32[]"),
    ("fewer scales than columns", recurrent(r_scale=[[1] * 15], r_zero=ones(1, 15)), 2,
     "DynamicQuantizeLSTM: input 10 must be the scales of columns, [directions, 4*hidden_size] = [1, 16], found `x10` f32[1, 15]"),
    ("fewer zero points than columns", recurrent(r_zero=ones(1, 15)), 2,
     "DynamicQuantizeLSTM: input 11 must be the zero points of columns, [directions, 4*hidden_size] = [1, 16], found `x11` i8[1, 15]"),
    ("more zero points than directions", recurrent(w_zero=ones(2)), 2,
     "DynamicQuantizeLSTM: input 9 must be the zero points, [directions] or [directions, 4*hidden_size] = [1], found `x9` i8[2]"),
    ("a bias of half the length", recurrent(bias=ones(1, 16, dtype="f32")), 2,
     "LSTM: input 3 must be the bias, [directions, 2*gates*hidden_size] = [1, 32], found `x3` f32[1, 16]"),
    ("a clip below zero", recurrent(clip=-1.0), 2,
     "LSTM: `clip` is -1; it must be greater than 0"),
]
GOOD = {
    "the least scale": quantise(TINY), "the largest": quantise(3e38), "of a sum that is always zero": dequantise(0, x="i32"),
    "bounds that cross": ("Clip", [numpy.zeros((2, 3), numpy.uint8), array(9, "u8"), array(3, "u8")], {}),
    "a depth whose sums 32 bits do not hold": ("QLinearMatMul", [ones(1, 33100, dtype="u8"), array(1), ZERO, ones(33100, 1, dtype="u8"), array(1),
                                                                 ZERO, array(1), ZERO], {}),
    "a block of zeros": blocks(scales=array([[1, 0]] * 4)), "a block of a negative scale": blocks(scales=array([[1, -1]] * 4)),
}
