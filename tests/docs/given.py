# SPDX-License-Identifier: MIT
"""Files that the pages of tools/docs take for granted: a reader's own networks and samples, small."""
import hashlib
import json
from pathlib import Path

import numpy
import onnx
import safetensors.numpy
from onnx import TensorProto, helper, numpy_helper

SEED = 7


def weights(**shapes):
    rng = numpy.random.default_rng(SEED)
    return [numpy_helper.from_array(rng.uniform(-0.3, 0.3, shape).astype(numpy.float32), name) for name, shape in shapes.items()]


def described(shapes):
    return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]


def saved(graph, path):
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)


def written(path, nodes, inputs, outputs, initializers):
    saved(helper.make_graph(nodes, Path(path).stem, described(inputs), described(outputs), initializers), path)


GRU = weights(W=(1, 192, 40), R=(1, 192, 64))


def gru(inputs, outputs):
    return helper.make_node("GRU", inputs, outputs, hidden_size=64, linear_before_reset=1)


def recurrent(path):
    """x [T, 1, 40] -> y [T, 1, 1, 64]."""
    written(path, [gru(["x", "W", "R"], ["y"])], {"x": ["T", 1, 40]}, {"y": ["T", 1, 1, 64]}, GRU)


def stream(path):
    """x [T, 1, 40], h [1, 1, 64] -> y [T, 1, 1, 64], hN: the caller passes the state."""
    written(path, [gru(["x", "W", "R", "", "", "h"], ["y", "hN"])], {"x": ["T", 1, 40], "h": [1, 1, 64]},
            {"y": ["T", 1, 1, 64], "hN": [1, 1, 64]}, GRU)


def frozen(path):
    """x [T, B, 40], h0 [1, B, 64] and a rate sr -> y [T, 1, B, 64], hN."""
    nodes = [gru(["x", "W", "R", "", "", "h0"], ["steps", "hN"]), helper.make_node("Cast", ["sr"], ["rate"], to=TensorProto.FLOAT),
             helper.make_node("Mul", ["steps", "rate"], ["y"])]
    graph = helper.make_graph(
        nodes, "model", [*described({"x": ["T", "B", 40], "h0": [1, "B", 64]}),
                         helper.make_tensor_value_info("sr", TensorProto.INT64, [])],
        described({"y": ["T", 1, "B", 64], "hN": [1, "B", 64]}), GRU)
    saved(graph, path)


def joiner(path):
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Tanh", ["sum"], ["t"]),
             helper.make_node("MatMul", ["t", "W"], ["logits"])]
    written(path, nodes, {"a": [1, 64], "b": [1, 64]}, {"logits": [1, 32]}, weights(W=(64, 32)))


def convolutional(path):
    """image [1, 3, 32, 32] -> probabilities [1, 10]."""
    nodes = [helper.make_node("Conv", ["image", "W1"], ["c1"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["c1"], ["r1"]),
             helper.make_node("Conv", ["r1", "W2"], ["c2"], kernel_shape=[3, 3], strides=[2, 2]),
             helper.make_node("Relu", ["c2"], ["r2"]), helper.make_node("GlobalAveragePool", ["r2"], ["p"]),
             helper.make_node("Flatten", ["p"], ["f"]), helper.make_node("Gemm", ["f", "W3"], ["g"]),
             helper.make_node("Softmax", ["g"], ["probabilities"])]
    written(path, nodes, {"image": [1, 3, 32, 32]}, {"probabilities": [1, 10]},
            weights(W1=(16, 3, 3, 3), W2=(32, 16, 3, 3), W3=(32, 10)))


def rates(path):
    """As a detector of speech for two rates: sr, a constant of the caller's, chooses the weights by an If."""
    def branch(name, scale):
        nodes = [helper.make_node("Constant", [], [f"{name}_s"], value_float=scale),
                 helper.make_node("Mul", ["audio", f"{name}_s"], [f"{name}_y"])]
        return helper.make_graph(nodes, name, [], described({f"{name}_y": [1, 512]}))

    nodes = [helper.make_node("Equal", ["sr", "wide"], ["is_wide"]),
             helper.make_node("If", ["is_wide"], ["speech"], then_branch=branch("then", 0.5), else_branch=branch("else", 0.25))]
    graph = helper.make_graph(
        nodes, "vad", [*described({"audio": [1, 512]}), helper.make_tensor_value_info("sr", TensorProto.INT64, [])],
        described({"speech": [1, 512]}), [numpy_helper.from_array(numpy.array(16000), "wide")])
    saved(graph, path)


def trained(path):
    """x [B, 40] and labels [B] -> loss, scores [B, 4]."""
    nodes = [helper.make_node("Gemm", ["x", "hidden.weight", "hidden.bias"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("Gemm", ["r", "out.weight", "out.bias"], ["scores"]),
             helper.make_node("SoftmaxCrossEntropyLoss", ["scores", "labels"], ["loss"])]
    inputs = [*described({"x": ["B", 40]}), helper.make_tensor_value_info("labels", TensorProto.INT64, ["B"])]
    names = {"hidden.weight": (40, 32), "hidden.bias": (32,), "out.weight": (32, 4), "out.bias": (4,)}
    saved(helper.make_graph(nodes, "train", inputs, described({"loss": [], "scores": ["B", 4]}), weights(**names)), path)


def samples(folder):
    folder.mkdir()
    rng = numpy.random.default_rng(SEED)
    for k in range(16):
        numpy.save(folder / f"{k:02}.npy", rng.uniform(-1, 1, (1, 3, 32, 32)).astype(numpy.float32))


def sequences(folder):
    """Of net.onnx."""
    folder.mkdir()
    rng = numpy.random.default_rng(SEED)
    for k in range(16):
        numpy.save(folder / f"{k:02}.npy", rng.uniform(-1, 1, (40 + k, 1, 40)).astype(numpy.float32))


def tagger_weights(folder):
    """Of the model that model-format.md shows."""
    rng = numpy.random.default_rng(SEED)
    shapes = {"W": (1, 192, 40), "R": (1, 192, 64), "b": (1, 384)}
    data = safetensors.numpy.save({name: rng.uniform(-0.1, 0.1, shape).astype(numpy.float32) for name, shape in shapes.items()})
    (folder / "tagger.safetensors").write_bytes(data)
    model = json.loads((folder / "tagger.json").read_text())
    model["weights"][0]["sha256"] = hashlib.sha256(data).hexdigest()
    (folder / "tagger.json").write_text(json.dumps(model))


FILES = {"net.onnx": recurrent, "stream.onnx": stream, "model.onnx": frozen, "encoder.onnx": recurrent, "decoder.onnx": stream,
         "joiner.onnx": joiner, "cnn.onnx": convolutional, "vad.onnx": rates, "train.onnx": trained, "samples": samples,
         "sequences": sequences}


def make(name, folder):
    if name == "tagger.safetensors":
        tagger_weights(folder)
    elif not (folder / name).exists():
        FILES[name](folder / name)
