# SPDX-License-Identifier: MIT
"""Operators of com.microsoft that ONNX Runtime runs on other devices than a CPU compute what they stand for: ONNX Runtime
runs that, written in ONNX's operators."""
import numpy
import pytest
from onnx import TensorProto, helper

from support.onnx_files import described, model_of, onnxruntime_run, write

BOUND = 2.0**-18  # relative to the largest: sums of at most 63 products, and ONNX Runtime's approximations of functions
TO_FIRST, TO_LAST = [0, 3, 1, 2], [0, 2, 3, 1]
node = helper.make_node


def own(op, inputs, **attributes):
    return [node(op, inputs, ["y"], "the_node", domain="com.microsoft", **attributes)]


def first(x, perm=TO_FIRST):
    return node("Transpose", [x], [f"{x}_first"], perm=perm)


def uniform(*shape):
    return numpy.random.default_rng(sum(shape)).uniform(-2, 2, shape).astype(numpy.float32)


def group_norm(activation, last):
    nodes = [first("x") if last else node("Identity", ["x"], ["x_first"]),
             node("GroupNormalization", ["x_first", "g", "b"], ["n"], num_groups=3, epsilon=0.01)]
    nodes += [node("Sigmoid", ["n"], ["s"]), node("Mul", ["n", "s"], ["z"])] if activation else [node("Identity", ["n"], ["z"])]
    nodes.append(node("Transpose", ["z"], ["y"], perm=TO_LAST) if last else node("Identity", ["z"], ["y"]))
    inputs = {"x": uniform(2, 5, 4, 6) if last else uniform(2, 6, 5, 4), "g": uniform(6), "b": uniform(6)}
    layout = {} if last else {"channels_last": 0}
    return inputs, own("GroupNorm", list(inputs), groups=3, epsilon=0.01, activation=activation, **layout), nodes


def convolution():
    inputs = {"x": uniform(2, 7, 8, 4), "w": uniform(6, 3, 3, 2), "b": uniform(6)}
    attributes = {"group": 2, "pads": [1, 0, 1, 1], "strides": [2, 1]}
    nodes = [first("x"), first("w"), node("Conv", ["x_first", "w_first", "b"], ["z"], **attributes),
             node("Transpose", ["z"], ["y"], perm=TO_LAST)]
    return inputs, own("NhwcConv", list(inputs), **attributes), nodes


def fused_convolution():
    inputs = {"x": uniform(2, 7, 8, 4), "w": uniform(6, 4, 3, 3), "b": uniform(6), "a": uniform(2, 5, 6, 6)}
    nodes = [first("x"), node("Conv", ["x_first", "w", "b"], ["c"]), node("Transpose", ["c"], ["z"], perm=TO_LAST),
             node("Add", ["z", "a"], ["s"]), node("Relu", ["s"], ["y"])]
    return inputs, own("NhwcFusedConv", list(inputs), activation="Relu"), nodes


def two_convolutions():
    """Between them channels need not move."""
    inputs = {"x": uniform(2, 7, 8, 4), "w": uniform(6, 3, 3, 4), "v": uniform(5, 3, 3, 6)}
    nodes = [first("x"), first("w"), first("v"), node("Conv", ["x_first", "w_first"], ["c"]),
             node("Conv", ["c", "v_first"], ["z"]), node("Transpose", ["z"], ["y"], perm=TO_LAST)]
    return inputs, [node("NhwcConv", ["x", "w"], ["c"], domain="com.microsoft"), *own("NhwcConv", ["c", "v"])], nodes


def bias_add():
    inputs = {"x": uniform(2, 3, 8), "b": uniform(8), "s": uniform(2, 3, 8)}
    return inputs, own("BiasAdd", list(inputs)), [node("Add", ["x", "b"], ["z"]), node("Add", ["z", "s"], ["y"])]


def split_gelu():
    inputs = {"x": uniform(2, 3, 8), "b": uniform(8)}
    nodes = [node("Add", ["x", "b"], ["z"]), node("Split", ["z"], ["l", "r"], axis=-1, num_outputs=2),
             node("Gelu", ["r"], ["g"]), node("Mul", ["l", "g"], ["y"])]
    return inputs, own("BiasSplitGelu", list(inputs)), nodes


def softmax(shape, axis, inner):
    inputs = {"x": uniform(2, 3, 4, 5), "b": uniform(*shape)}
    sizes = numpy.array([2, 3, 4, 5])
    nodes = [node("Add", ["x", "b"], ["z"]), node("Flatten", ["z"], ["f"], axis=axis), node("Softmax", ["f"], ["s"], axis=1),
             node("Constant", [], ["sizes"], value_ints=sizes), node("Reshape", ["s", "sizes"], ["y"])]
    return inputs, own("BiasSoftmax", list(inputs), axis=axis, is_inner_broadcast=inner), nodes


CASES = {"GroupNorm": lambda: group_norm(0, True), "GroupNorm, SiLU": lambda: group_norm(1, True),
         "GroupNorm, channels first": lambda: group_norm(1, False), "NhwcConv": convolution, "NhwcFusedConv": fused_convolution,
         "NhwcConv, two": two_convolutions, "BiasAdd": bias_add, "BiasSplitGelu": split_gelu,
         "BiasSoftmax, inner": lambda: softmax((2, 1, 1, 5), 3, 1), "BiasSoftmax, outer": lambda: softmax((4, 5), 2, 0)}


def model_with(nodes, inputs):
    return model_of(nodes, {name: (TensorProto.FLOAT, array.shape) for name, array in inputs.items()},
                    {"y": (TensorProto.FLOAT, None)}, opset=21)


@pytest.mark.parametrize("name", CASES)
def test_it_computes_what_it_stands_for(reference, tmp_path, name):
    inputs, nodes, peers = CASES[name]()
    model = model_with(nodes, inputs)
    got = reference.run(described(model), write(tmp_path, model), inputs)["y"]
    due = onnxruntime_run(model_with(peers, inputs), inputs)["y"]
    assert got.shape == due.shape
    numpy.testing.assert_allclose(got, due, rtol=0, atol=BOUND * abs(due).max())


def test_channels_do_not_move_between_convolutions(rnncc, tmp_path):
    inputs, nodes, _ = two_convolutions()
    done = rnncc("inspect", write(tmp_path, model_with(nodes, inputs)), "--dump-after=simplify")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("= Conv(") == 2 and done.stderr.count("= Transpose(") == len("xwvy"), done.stderr


BAD = {
    "half a channel": (2, "must be constant and even", "BiasSplitGelu", {"x": (2, 3, 7), "b": (7,)}, {}),
    "a bias of another shape": (2, "does not broadcast to", "BiasSoftmax", {"x": (2, 3), "b": (4, 2, 3)},
                                {"is_inner_broadcast": 1}),
    "a softmax over no axis": (2, "axis is 2; it must be in -2..1", "BiasSoftmax", {"x": (2, 3), "b": (3,)},
                               {"is_inner_broadcast": 1, "axis": 2}),
    "a skip of another shape": (2, "what is added, like the input", "BiasAdd", {"x": (2, 3), "b": (3,), "s": (3, 2)}, {}),
    "another activation": (3, "an `activation` other than 0 and 1 of com.microsoft's GroupNorm", "GroupNorm",
                           {"x": (2, 3, 3, 4), "g": (4,), "b": (4,)}, {"activation": 2, "groups": 2}),
    "groups that do not fit": (2, "it must divide the channels", "GroupNorm",
                               {"x": (2, 3, 3, 4), "g": (4,), "b": (4,)}, {"activation": 0, "groups": 3}),
    "a convolution without weights": (3, "images of unknown rank", "NhwcConv", {"x": (2, 3, 3, 4)}, {}),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_one_is_told_with_its_node(rnncc, tmp_path, name):
    code, message, op, shapes, attributes = BAD[name]
    inputs = {key: numpy.zeros(shape, numpy.float32) for key, shape in shapes.items()}
    model = model_with(own(op, list(inputs), **attributes), inputs)
    done = rnncc(write(tmp_path, model), "--emit=c", "-o", tmp_path / "out")
    assert done.returncode == code and message in done.stderr and "the_node" in done.stderr, done.stderr
