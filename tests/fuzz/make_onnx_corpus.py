# SPDX-License-Identifier: MIT
"""Writes tests/fuzz/corpus/onnx_model: small models, one for each element of the ONNX format.

    .venv/bin/python tests/fuzz/make_onnx_corpus.py
"""
import sys
from pathlib import Path

import numpy
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from support.onnx_files import BOOL, F32, I64, model_of, tensor_info, write  # noqa: E402

CORPUS = Path(__file__).with_name("corpus") / "onnx_model"


def floats(*shape):
    return (numpy.arange(numpy.prod(shape), dtype=numpy.float32).reshape(shape) - 2) / 4


def ints(*values):
    return numpy.array(values, numpy.int64)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def one(op, shape, constants=None, opset=17, outputs=("y",), dtype=F32, **attributes):
    """One node over the input x and constants."""
    return model_of([node(op, ["x", *(constants or {})], list(outputs), **attributes)], {"x": (dtype, shape)},
                    {name: (F32, None) for name in outputs}, constants, opset)


def dynamic_reshape():
    """What exporters write for x.view(x.size(0), -1)."""
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["b"], axis=0), node("Unsqueeze", ["b", "axes"], ["u"]),
             node("Concat", ["u", "rest"], ["target"], axis=0), node("Reshape", ["x", "target"], ["y"])]
    return model_of(nodes, {"x": (F32, ["B", 2, "T"])}, {"y": (F32, None)},
                    {"zero": numpy.int64(0), "axes": ints(0), "rest": ints(-1)})


def branch():
    then = helper.make_graph([node("Relu", ["x"], ["t"])], "then", [], [tensor_info("t", F32, [3])])
    other = helper.make_graph([node("Neg", ["x"], ["e"])], "else", [], [tensor_info("e", F32, [3])])
    return model_of([node("If", ["c"], ["y"], then_branch=then, else_branch=other)], {"x": (F32, [3]), "c": (BOOL, [])},
                    {"y": (F32, [3])})


def loop(*others):
    body = helper.make_graph([node("Add", ["v", "x"], ["w"]), node("Identity", ["go"], ["on"]), *others], "body",
                             [tensor_info("i", I64, []), tensor_info("go", BOOL, []), tensor_info("v", F32, [3])],
                             [tensor_info("on", BOOL, []), tensor_info("w", F32, [3])])
    return model_of([node("Loop", ["n", "", "x"], ["y"], body=body)], {"x": (F32, [3])}, {"y": (F32, [3])}, {"n": numpy.int64(3)})


def scan():
    body = helper.make_graph([node("Add", ["s", "e"], ["r"]), node("Identity", ["r"], ["o"])], "body",
                             [tensor_info("s", F32, [2]), tensor_info("e", F32, [2])],
                             [tensor_info("r", F32, [2]), tensor_info("o", F32, [2])])
    return model_of([node("Scan", ["h", "x"], ["z", "y"], body=body, num_scan_inputs=1)], {"x": (F32, ["T", 2])},
                    {"z": (F32, [2]), "y": (F32, ["T", 2])}, {"h": floats(2)})


def function():
    body = [node("Constant", [], ["a"], value_float=2.0), node("Mul", ["x", "a"], ["out"])]
    double = helper.make_function("local", "double", ["x"], ["out"], body, [helper.make_opsetid("", 17)])
    return model_of([node("double", ["x"], ["m"], domain="local"), node("double", ["m"], ["y"], domain="local")],
                    {"x": (F32, [3])}, {"y": (F32, [3])}, functions=[double])


def typed_lists():
    """Tensors of several types as lists, not as bytes."""
    model = model_of([node("Gather", ["t", "x"], ["y"]), node("Cast", ["h"], ["z"], to=F32)], {"x": (I64, [2])},
                     {"y": (TensorProto.INT8, [2]), "z": (F32, [2])})
    model.graph.initializer.append(helper.make_tensor("t", TensorProto.INT8, [3], [-1, 0, 1]))
    model.graph.initializer.append(helper.make_tensor("h", TensorProto.FLOAT16, [2], [0.5, -2]))
    return model


def external():
    model = one("Add", [3], {"w": floats(3)})
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "w.bin", "offset": "0", "length": "12"}.items():
        tensor.external_data.add(key=key, value=value)
    return model


def bytes_of(*shape):
    return (numpy.arange(numpy.prod(shape)).reshape(shape) * 37 % 256 - 128).astype(numpy.int8)


def pairs():
    """A convolution, a sum with its input, and a mean between QuantizeLinear and DequantizeLinear, the weights by channel."""
    how, to_bytes, to_floats = ["s", "z"], "QuantizeLinear", "DequantizeLinear"
    nodes = [node(to_bytes, ["x", *how], ["q"]), node(to_floats, ["q", *how], ["d"]),
             node(to_floats, ["w", "ws", "wz"], ["v"], axis=0), node("Conv", ["d", "v"], ["c"], pads=[1, 1, 1, 1]),
             node(to_bytes, ["c", *how], ["cq"]), node(to_floats, ["cq", *how], ["cd"]), node("Add", ["cd", "d"], ["a"]),
             node("Relu", ["a"], ["r"]), node(to_bytes, ["r", *how], ["rq"]), node(to_floats, ["rq", *how], ["rd"]),
             node("GlobalAveragePool", ["rd"], ["g"]), node(to_bytes, ["g", *how], ["y"])]
    return model_of(nodes, {"x": (F32, ["B", 2, 4, 4])}, {"y": (TensorProto.UINT8, None)},
                    {"s": numpy.float32(0.5), "z": numpy.uint8(3), "w": bytes_of(2, 2, 3, 3),
                     "ws": numpy.array([0.5, 0.25], numpy.float32), "wz": numpy.zeros(2, numpy.int8)})


def dynamic_product():
    """As ONNX Runtime's quantize_dynamic writes it."""
    nodes = [node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]), node("MatMulInteger", ["q", "w", "z", "wz"], ["i"]),
             node("Cast", ["i"], ["f"], to=F32), node("Mul", ["s", "ws"], ["m"]), node("Mul", ["f", "m"], ["y"])]
    return model_of(nodes, {"x": (F32, ["B", 3])}, {"y": (F32, None)},
                    {"w": bytes_of(3, 4), "ws": numpy.array([1, 2, 3, 4], numpy.float32), "wz": numpy.zeros(4, numpy.int8)})


def dynamic_lstm():
    inputs = ["x", "w", "r", "", "", "", "", "", "ws", "wz", "rs", "rz"]
    lstm = helper.make_node("DynamicQuantizeLSTM", inputs, ["y"], domain="com.microsoft", hidden_size=2)
    scales, zeros = numpy.ones((1, 8), numpy.float32), numpy.zeros((1, 8), numpy.int8)
    return model_of([lstm], {"x": (F32, ["T", 1, 2])}, {"y": (F32, None)},
                    {"w": bytes_of(1, 2, 8), "r": bytes_of(1, 2, 8), "ws": scales, "wz": zeros, "rs": scales, "rz": zeros})


def n_bits():
    product = helper.make_node("MatMulNBits", ["x", "w", "s", "z"], ["y"], domain="com.microsoft", K=20, N=3, bits=4, block_size=16)
    return model_of([product], {"x": (F32, ["B", 20])}, {"y": (F32, None)},
                    {"w": bytes_of(3, 2, 8).view(numpy.uint8), "s": floats(6), "z": numpy.full(3, 0x88, numpy.uint8)})


def blocks():
    nodes = [node("DequantizeLinear", ["w", "s"], ["v"], axis=0, block_size=8), node("MatMul", ["x", "v"], ["y"])]
    return model_of(nodes, {"x": (F32, ["B", 16])}, {"y": (F32, None)}, {"w": bytes_of(16, 3), "s": floats(2, 3) + 1}, opset=21)


def constants():
    nodes = [node("Constant", [], ["a"], value=numpy_helper.from_array(floats(2, 2))), node("Constant", [], ["b"], value_ints=[2, 2]),
             node("Constant", [], ["c"], value_float=0.5), node("Expand", ["a", "b"], ["e"]), node("Mul", ["e", "c"], ["m"]),
             node("Add", ["m", "x"], ["y"])]
    return model_of(nodes, {"x": (F32, [2, 2])}, {"y": (F32, [2, 2])})


MODELS = {
    "add": lambda: one("Add", ["T", 3], {"c": floats(3)}),
    "add_6": lambda: one("Add", [2, 3, 4], {"c": floats(3)}, opset=6, broadcast=1, axis=1),
    "blocks": blocks,
    "branch": branch,
    "cast": lambda: one("Cast", [3], to=I64),
    "clip_6_of_integers": lambda: one("Clip", [3], opset=6, dtype=TensorProto.INT16, min=-1.0, max=1e21),
    "clip_7": lambda: one("Clip", [3], opset=7, min=-1.0, max=1.0),
    "constants": constants,
    "conv": lambda: one("Conv", ["B", 2, 5, 5], {"w": floats(3, 2, 3, 3), "b": floats(3)}, pads=[1, 1, 1, 1], strides=[2, 2]),
    "conv_transpose": lambda: one("ConvTranspose", [1, 2, 3], {"w": floats(2, 3, 2)}, strides=[2]),
    "dynamic_lstm": dynamic_lstm,
    "dynamic_product": dynamic_product,
    "dynamic_reshape": dynamic_reshape,
    "einsum": lambda: one("Einsum", [2, 3], {"w": floats(3, 2)}, equation="ij,jk->ik"),
    "expand": lambda: one("Expand", [3, 1], {"s": ints(2, 1, 4)}),
    "expand_empty": lambda: one("Expand", [1, 0], {"s": ints(2**33, 2**33, 1, 1)}),
    "external": external,
    "function": function,
    "gemm": lambda: one("Gemm", ["B", 3], {"w": floats(2, 3), "b": floats(2)}, transB=1),
    "gru": lambda: one("GRU", ["T", "B", 2], {"w": floats(1, 6, 2), "r": floats(1, 6, 2)}, outputs=["y", "h"], hidden_size=2),
    "loop": loop,
    "loop_of_a_cycle": lambda: loop(node("Exp", ["u"], ["u"])),
    "lstm": lambda: one("LSTM", ["T", 1, 2], {"w": floats(2, 8, 2), "r": floats(2, 8, 2)}, hidden_size=2, direction="bidirectional"),
    "max_pool": lambda: one("MaxPool", [1, 2, 5, 5], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
    "n_bits": n_bits,
    "one_hot": lambda: one("OneHot", [3], {"d": numpy.int64(4), "v": floats(2)}, dtype=I64),
    "pad": lambda: one("Pad", ["T", 3], {"p": ints(0, 1, 0, 2)}),
    "pairs": pairs,
    "prelu_6": lambda: one("PRelu", [1, 3, 4], {"s": floats(3)}, opset=6),
    "quantize": lambda: one("QuantizeLinear", [4], {"s": numpy.float32(0.5), "z": numpy.uint8(3)}),
    "reduce": lambda: one("ReduceMean", ["T", 3], opset=11, axes=[1], keepdims=0),
    "resize": lambda: one("Resize", [1, 1, 2, 2], {"r": floats(0), "s": numpy.array([1, 1, 2, 1.5], numpy.float32)}, mode="linear"),
    "scan": scan,
    "slice": lambda: one("Slice", ["T", 4], {"s": ints(1), "e": ints(2**63 - 1), "a": ints(1), "n": ints(2)}),
    "slice_backwards": lambda: one("Slice", ["T", 4], {"s": ints(1), "e": ints(2**63 - 1), "a": ints(1), "n": ints(2 - 2**63)}),
    "softmax_7": lambda: one("Softmax", [2, "T", 4], opset=7, axis=1),
    "split": lambda: one("Split", [2, 4], {"s": ints(1, 3)}, outputs=["y", "z"], axis=1),
    "tile": lambda: one("Tile", [2, 3], {"n": ints(1, 2)}),
    "top_k": lambda: one("TopK", [2, 4], {"k": ints(2)}, outputs=["y", "i"]),
    "transpose": lambda: one("Transpose", [2, "T", 3], perm=[2, 0, 1]),
    "typed_lists": typed_lists,
    "upsample": lambda: one("Upsample", [1, 1, 2, 2], opset=7, scales=[1.0, 1.0, 2.0, 2.0], mode="nearest"),
    "where": lambda: one("Where", [2, 1], {"a": floats(2, 3), "b": floats(3)}, dtype=BOOL),
}

if __name__ == "__main__":
    CORPUS.mkdir(parents=True, exist_ok=True)
    for name, make in MODELS.items():
        write(CORPUS, make(), name + ".onnx")
