# SPDX-License-Identifier: MIT
"""What the compiler folds has ONNX Runtime's values: constants at the ends of their types, and negative zeros; pads into
pools; biases into quantised products."""
import numpy
import pytest
from onnx import TensorProto, helper

from support.emitted import run_module
from support.onnx_files import F32, described, model_of, onnxruntime_run, write

MOST, LEAST = 2**63 - 1, -2**63
X = numpy.array([1, -2, 3], numpy.float32)


def integers(*numbers, dtype=numpy.int64):
    return numpy.array(numbers, dtype)


def floats(*numbers):
    return numpy.array(numbers, numpy.float32)


def of(op, *operands, **attributes):
    """A node's operator, and its constants."""
    return op, operands, attributes


ARITHMETIC = [of("Sub", integers(MOST), integers(1)), of("Add", integers(LEAST), integers(MOST)),
              of("Mod", integers(LEAST), integers(10)), of("Div", integers(LEAST), integers(3)), of("Neg", integers(MOST)),
              of("Less", integers(MOST), integers(MOST)), of("Greater", integers(MOST), integers(MOST)),
              of("Mul", integers(42, MOST), integers(6364136223846793005)),
              *(of(op, integers(2**63, 5, 2**64 - 1, dtype=numpy.uint64), integers(1, 2**64 - 1, 7, dtype=numpy.uint64))
                for op in ("Max", "Min", "Less", "Greater", "Div", "Mod", "Sub", "Add"))]
ZEROS = [of(op, floats(-0.0, 1, 0.0)) for op in ("Identity", "Neg", "Ceil", "Floor")]
ZEROS += [of("Max", floats(-0.0, -0.0, 1)), of("Mul", floats(0, 0, 1), floats(-1, 1, 1)),
          of("Concat", floats(-0.0), floats(1, 2), axis=0)]


def of_constants(cases):
    """y0, y1, ...: what the operators make of their constants; of floats 1 / that, which tells the sign of a zero."""
    nodes, constants, outputs = [], {"one": floats(1)}, {}
    for k, (op, operands, attributes) in enumerate(cases):
        names = [f"c{k}_{i}" for i in range(len(operands))]
        constants |= dict(zip(names, operands))
        is_float = operands[0].dtype == numpy.float32
        nodes.append(helper.make_node(op, names, [f"r{k}" if is_float else f"y{k}"], **attributes))
        if is_float:
            nodes.append(helper.make_node("Div", ["one", f"r{k}"], [f"y{k}"]))
        result = TensorProto.BOOL if op in ("Less", "Greater") else helper.np_dtype_to_tensor_dtype(operands[0].dtype)
        outputs[f"y{k}"] = (result, None)
    nodes.append(helper.make_node("Relu", ["x"], ["z"]))
    return model_of(nodes, {"x": (F32, [3])}, outputs | {"z": (F32, [3])}, constants, 21)


@pytest.mark.parametrize("cases", [ARITHMETIC, ZEROS], ids=["arithmetic", "zeros"])
def test_constants(compile, reference, tmp_path, cases):
    model = of_constants(cases)
    due, path = onnxruntime_run(model, {"x": X}), write(tmp_path, model)
    for got in (reference.run(described(model), path, {"x": X}), run_module(compile(path), {"x": X})):
        for k, (op, *_) in enumerate(cases):
            numpy.testing.assert_array_equal(got[f"y{k}"], due[f"y{k}"], err_msg=f"{k}: {op}")


def equal(compile, tmp_path, model, feeds):
    due, got = onnxruntime_run(model, feeds), run_module(compile(write(tmp_path, model)), feeds)
    for name, array in due.items():
        numpy.testing.assert_array_equal(got[name], array, err_msg=name)


PADS = integers(0, 0, 1, 1, 0, 0, 1, 1)


def image(*shape):
    return numpy.random.default_rng(len(shape)).integers(-9, 9, shape).astype(numpy.float32)


def test_places_of_maxima_are_of_the_padded_image(compile, tmp_path):
    nodes = [helper.make_node("Pad", ["x", "p", "v"], ["y"]),
             helper.make_node("MaxPool", ["y"], ["z", "i"], kernel_shape=[3, 3], strides=[2, 2])]
    model = model_of(nodes, {"x": (F32, [1, 2, 6, 6])}, {"z": (F32, None), "i": (TensorProto.INT64, None)},
                     {"p": PADS, "v": numpy.float32(-numpy.inf)}, 21)
    equal(compile, tmp_path, model, {"x": image(1, 2, 6, 6)})


@pytest.mark.every_case
@pytest.mark.parametrize("high", [None, -5, 6])
@pytest.mark.parametrize("known", [False, True])
def test_a_clip_whose_bounds_cross_may_be_negative(compile, tmp_path, high, known):
    """None: there is no upper bound."""
    nodes = [helper.make_node("Clip", ["x", "low", "" if high is None else "high"], ["c"]),
             helper.make_node("Pad", ["c", "p"], ["d"]), helper.make_node("MaxPool", ["d"], ["y"], kernel_shape=[3, 3])]
    inputs, feeds, constants = {"x": (F32, [1, 1, 4, 4])}, {"x": image(1, 1, 4, 4)}, {"low": numpy.float32(0), "p": PADS}
    if high is not None and known:
        constants["high"] = numpy.float32(high)
    elif high is not None:
        inputs["high"], feeds["high"] = (F32, []), numpy.array(high, numpy.float32)
    equal(compile, tmp_path, model_of(nodes, inputs, {"y": (F32, None)}, constants, 21), feeds)


@pytest.mark.every_case
@pytest.mark.parametrize("shape, axis", [([4, 1], 0), ([4, 6], 0), ([4, 6], 1), ([1, 6], 1), ([6], 0)])
def test_a_bias_has_the_scales_of_its_own_axis(compile, tmp_path, shape, axis):
    rng = numpy.random.default_rng(3)
    nodes = [helper.make_node("DequantizeLinear", ["a", "a_scale"], ["af"]),
             helper.make_node("DequantizeLinear", ["b", "b_scale"], ["bf"]),
             helper.make_node("DequantizeLinear", ["c", "c_scale"], ["cf"], axis=axis),
             helper.make_node("Gemm", ["af", "bf", "cf"], ["g"], alpha=0.5, beta=2.0),
             helper.make_node("QuantizeLinear", ["g", "y_scale", "z"], ["y"])]
    constants = {"a_scale": numpy.float32(1 / 16), "b_scale": numpy.float32(1 / 64), "y_scale": numpy.float32(0.3),
                 "c_scale": (2.0**-numpy.arange(6, 6 + shape[axis])).astype(numpy.float32), "z": numpy.array(128, numpy.uint8),
                 "b": rng.integers(-127, 127, (8, 6)).astype(numpy.int8),
                 "c": rng.integers(-900, 900, shape).astype(numpy.int32)}
    model = model_of(nodes, {"a": (TensorProto.UINT8, [4, 8])}, {"y": (TensorProto.UINT8, None)}, constants, 21)
    equal(compile, tmp_path, model, {"a": rng.integers(0, 255, (4, 8)).astype(numpy.uint8)})
