# SPDX-License-Identifier: MIT
"""Operators of older opsets are read with their old meaning: compared with ONNX Runtime, which supports them all."""
import numpy
import pytest
from onnx import TensorProto, helper, numpy_helper

from support.emitted import run_module
from support.onnx_files import BOOL, F32, I64, described, model_of, onnxruntime_run, random_feeds, write

BOUND = 1e-6  # of values near 1: exp and division in f32, where the peer is free to approximate

X34 = {"x": (F32, [3, 4])}
X2345 = {"x": (F32, [2, 3, 4, 5])}
GENERATOR = numpy.random.default_rng(7)


def one(op, opset, inputs=X34, outputs=None, constants=None, more=(), **attributes):
    nodes = [helper.make_node(op, [*inputs, *(constants or {}), *more], list(outputs or {"y": 0}), **attributes)]
    return model_of(nodes, inputs, outputs or {"y": (F32, None)}, constants, opset)


def floats(*shape):
    return GENERATOR.standard_normal(shape).astype(numpy.float32)


CASES = {
    **{f"{op} {opset} over the axes from {axis} on": one(op, opset, X2345, axis=axis)
       for op in ("Softmax", "LogSoftmax") for opset in (7, 11) for axis in (0, 1, 3)},
    "Softmax 11 over the axes from -2 on": one("Softmax", 11, X2345, axis=-2),
    "Softmax 12 without an axis": one("Softmax", 12, X2345),
    "Softmax 13 without an axis": one("Softmax", 13, X2345),
    **{f"Softmax 11 of nothing, {op}": one(op, 11, {"x": (F32, [2, 3, 0])}) for op in ("Softmax", "LogSoftmax", "Hardmax")},
    **{f"Resize 10, {mode} by {scales}": one("Resize", 10, X2345, constants={"s": numpy.array([1, 1, *scales], "f")}, mode=mode)
       for mode in ("nearest", "linear") for scales in ((.6, .6), (.7, 1), (2, 1.5), (.6, 2), (2.5, .3))},
    "Upsample 9": one("Upsample", 9, X2345, constants={"s": numpy.array([1, 1, 2, 1.5], "f")}),
    "Clip 7 by attributes": one("Clip", 7, min=-0.5, max=0.25),
    "Clip 7 by one attribute": one("Clip", 7, max=0.25),
    "Pad 7 by attributes": one("Pad", 7, pads=[1, 0, 0, 2], value=2.5, mode="constant"),
    "Pad 7 by an infinity": one("Pad", 7, pads=[1, 0, 0, 2], value=float("-inf")),
    "Slice 9 by attributes": one("Slice", 9, axes=[1], starts=[1], ends=[9223372036854775807]),
    "Split 11 by an attribute": one("Split", 11, outputs={"y": (F32, None), "z": (F32, None)}, axis=1, split=[1, 3]),
    "Split 11 in equal parts": one("Split", 11, outputs={"y": (F32, None), "z": (F32, None)}, axis=1),
    "Squeeze 11 by an attribute": one("Squeeze", 11, {"x": (F32, [3, 1, 4])}, axes=[1]),
    "Unsqueeze 11 by an attribute": one("Unsqueeze", 11, axes=[0, 2]),
    "ReduceSum 11 by an attribute": one("ReduceSum", 11, axes=[1], keepdims=0),
    "ReduceMax 17 by an attribute": one("ReduceMax", 17, axes=[-1]),
    "Dropout 7": one("Dropout", 7, ratio=0.3),
    "Dropout 12 with a ratio": one("Dropout", 12, constants={"r": numpy.float32(0.3)}),
    "BatchNormalization 8": one("BatchNormalization", 8, X2345, constants={
        "s": floats(3), "b": floats(3), "m": floats(3), "v": floats(3)**2 + 1}),
    "BatchNormalization 7 with spatial": one("BatchNormalization", 7, X2345, spatial=1, constants={
        "s": floats(3), "b": floats(3), "m": floats(3), "v": floats(3)**2 + 1}),
    "Gemm 7": one("Gemm", 7, constants={"b": floats(4, 5), "c": floats(5)}, alpha=0.5),
    "LSTM 7 without its size": one("LSTM", 7, {"x": (F32, [2, 1, 3])}, constants={"w": floats(1, 16, 3),
                                                                                "r": floats(1, 16, 4)}, hidden_size=4),
    **{f"RNN 14 of one direction with the default's two names, {direction}": one(
        "RNN", 14, {"x": (F32, [2, 1, 3])}, constants={"w": floats(1, 4, 3), "r": floats(1, 4, 4)}, hidden_size=4,
        activations=["Tanh", "Tanh"], direction=direction) for direction in ("forward", "reverse")},
    "Pow of a number by an integer": one("Pow", 15, constants={"e": numpy.array([2, -1, 3, 0])}),
    "QuantizeLinear of the zero point's type": one("QuantizeLinear", 21, outputs={"y": (TensorProto.INT8, None)}, constants={
        "s": numpy.float32(0.5), "z": numpy.array(3, numpy.int8)}, output_dtype=TensorProto.UNDEFINED),
    "Cast to a numbered type": one("Cast", 9, outputs={"y": (I64, None)}, to=I64),
}


@pytest.mark.parametrize("name", CASES)
def test_an_older_opset_computes_like_onnx_runtime(reference, tmp_path, name):
    model = CASES[name]
    feeds = random_feeds(model)
    expected = onnxruntime_run(model, feeds)
    got = reference.run(described(model), write(tmp_path, model), feeds)
    for output, due in expected.items():
        assert got[output].dtype == due.dtype and got[output].shape == due.shape
        numpy.testing.assert_allclose(got[output], due, rtol=BOUND, atol=BOUND)


def ones(names, dtype=BOOL):
    return [helper.make_tensor_value_info(name, dtype, []) for name in names]


def looped(nodes, opset, dtype=None):
    """Three turns of a body of these nodes, v to v2 of that type; without one nothing is carried, and s is collected."""
    carried = [helper.make_tensor_value_info(name, dtype, [3]) for name in ("v", "v2")] if dtype else []
    results = carried[1:] or [helper.make_tensor_value_info("s", F32, [])]
    body = helper.make_graph([*nodes, helper.make_node("Identity", ["c"], ["c2"])], "body",
                             [*ones("i", I64), *ones("c"), *carried[:1]], [*ones(["c2"]), *results])
    loop = helper.make_node("Loop", ["m", "", *(["x"] if dtype else [])], ["y"], body=body)
    return model_of([loop], {"x": (dtype or F32, [3])}, {"y": (dtype or F32, None)}, {"m": numpy.array(3)}, opset)


def test_a_loop_may_count_and_carry_nothing(reference, tmp_path):
    model = looped([helper.make_node("Cast", ["i"], ["s"], to=F32)], 16)
    feeds = random_feeds(model)
    got = reference.run(described(model), write(tmp_path, model), feeds)["y"]
    numpy.testing.assert_array_equal(got, onnxruntime_run(model, feeds)["y"])


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT16, TensorProto.DOUBLE])
@pytest.mark.parametrize("op, attributes", [("Clip", {"min": 0.25}), ("Pad", {"pads": [0, 0], "value": 0.25})])
def test_in_a_body_an_attribute_has_the_type_that_the_body_gets(reference, tmp_path, op, attributes, dtype):
    """ONNX Runtime has no such kernels."""
    model = looped([helper.make_node(op, ["v"], ["v2"], **attributes)], 10, dtype)
    x = numpy.array([-1, 0.125, 2], helper.tensor_dtype_to_np_dtype(dtype))
    got = reference.run(described(model), write(tmp_path, model), {"x": x})["y"]
    assert got.dtype == x.dtype
    numpy.testing.assert_array_equal(got, numpy.maximum(x, 0.25) if op == "Clip" else x)


def constant(name, value):
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value))


def test_in_a_body_a_parameter_is_one_number_a_group(compile, tmp_path):
    """GroupNormalization before opset 21, of a tensor whose shape only the compiler's inference tells."""
    model = looped([
        helper.make_node("Concat", ["v", "v"], ["six"], axis=0), constant("shape", numpy.array([1, 6, 1])),
        helper.make_node("Reshape", ["six", "shape"], ["channels"]), constant("scale", numpy.array([1, 2, -3], "f")),
        constant("bias", numpy.array([0.5, 0, 4], "f")),
        helper.make_node("GroupNormalization", ["channels", "scale", "bias"], ["normal"], num_groups=3),
        constant("axes", numpy.array([0, 2])), helper.make_node("Squeeze", ["normal", "axes"], ["flat"]),
        constant("start", numpy.array([1])), constant("end", numpy.array([4])),
        helper.make_node("Slice", ["flat", "start", "end"], ["v2"])], 18, F32)
    feeds = random_feeds(model)
    got = run_module(compile(write(tmp_path, model)), feeds)["y"]
    numpy.testing.assert_allclose(got, onnxruntime_run(model, feeds)["y"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("base, exponent", [
    (numpy.array([4097, -10001, 46340], numpy.int32), numpy.array([2], numpy.float32)),
    (numpy.array([2, 3, 123456789], numpy.int32), numpy.array([0.5, 2, 1], numpy.float32)),
    (numpy.array([1234567890123]), numpy.array([1], numpy.float32)),
    (numpy.array([-1, 1.5, 1], numpy.float32), numpy.array([16777217, 3, 5])),
    (numpy.array([-1, 1.5], numpy.float32), numpy.array([16777217, 3], numpy.int32))])
@pytest.mark.parametrize("known", [False, True])
def test_powers_take_bases_and_exponents_as_they_are(compile, reference, tmp_path, base, exponent, known):
    kinds = {name: (helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in (("x", base), ("e", exponent))}
    inputs = {"x": kinds["x"]} if known else kinds
    model = model_of([helper.make_node("Pow", ["x", "e"], ["y"])], inputs, {"y": (kinds["x"][0], None)},
                     {"e": exponent} if known else {}, 15)
    feeds = {"x": base} | ({} if known else {"e": exponent})
    due, path = onnxruntime_run(model, feeds)["y"], write(tmp_path, model)
    for got in (reference.run(described(model), path, feeds)["y"], run_module(compile(path), feeds)["y"]):
        assert got.dtype == base.dtype
        numpy.testing.assert_array_equal(got, due)


def aligned(op, a, b, axis):
    """The meaning of `axis` in opset 6: b's first axis is this axis of a."""
    shape = b.shape + (1,) * (a.ndim - axis - b.ndim)
    return {"Add": numpy.add, "Mul": numpy.multiply, "Greater": numpy.greater}[op](a, b.reshape(shape))


@pytest.mark.parametrize("op", ["Add", "Mul", "Greater"])
@pytest.mark.parametrize("axis, shape", [(0, [2]), (1, [3]), (1, [3, 4]), (2, [4, 5]), (3, [5]), (-1, [5])])
def test_before_opset_7_an_axis_aligns_shapes(reference, tmp_path, op, axis, shape):
    """ONNX Runtime begins with opset 7."""
    node = helper.make_node(op, ["x", "b"], ["y"], broadcast=1, axis=axis)
    b = floats(*shape)
    model = model_of([node], X2345, {"y": (BOOL if op == "Greater" else F32, [2, 3, 4, 5])}, {"b": b}, opset=6)
    feeds = random_feeds(model)
    got = reference.run(described(model), write(tmp_path, model), feeds)["y"]
    numpy.testing.assert_array_equal(got, aligned(op, feeds["x"], b, axis % 4))


def test_before_opset_7_a_slope_is_one_number_a_channel(reference, tmp_path):
    slope = floats(3)
    model = model_of([helper.make_node("PRelu", ["x", "s"], ["y"])], X2345, {"y": (F32, [2, 3, 4, 5])}, {"s": slope}, opset=6)
    feeds = random_feeds(model)
    got = reference.run(described(model), write(tmp_path, model), feeds)["y"]
    x = feeds["x"]
    numpy.testing.assert_array_equal(got, numpy.where(x < 0, x * slope.reshape(3, 1, 1), x))
