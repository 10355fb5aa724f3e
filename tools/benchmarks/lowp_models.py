# SPDX-License-Identifier: MIT
"""The quantised models of `tools/bench lowp`, as ONNX Runtime's quantisers write them: u8 activations, s8 weights with
a scale for each output channel. A model is made once, and kept beside the key of what it was made of.
"""
import hashlib
import importlib.metadata
import logging
import tempfile
from pathlib import Path

import numpy as np

CALIBRATING = 4  # seeded random inputs: those of the measurements are of the same distribution
STATIC = {"image": ["Conv", "Gemm", "Add", "Relu", "Clip", "MaxPool", "AveragePool", "GlobalAveragePool", "Concat",
                    "Flatten", "Reshape"],
          "product": ["MatMul", "Gemm"]}
DYNAMIC = ["LSTM", "MatMul"]
MULTIPLY = ("Conv", "Gemm", "MatMul")


class Samples:
    """What quantize_static reads: CALIBRATING inputs like `feeds`."""

    def __init__(self, feeds):
        rng = np.random.default_rng(3)
        self.left = [{name: draw(rng, values) for name, values in feeds.items()} for _ in range(CALIBRATING)]

    def get_next(self):
        return self.left.pop() if self.left else None


def draw(rng, like):
    """Of the mean and the deviation of `like`."""
    return (like.mean() + like.std() * rng.standard_normal(like.shape)).astype(np.float32)


def tail(model):
    """Names of nodes from which no product is reached, and which are none: of boxes, scores and probabilities."""
    needed, names = set(), []
    for node in reversed(model.graph.node):
        if node.op_type in MULTIPLY or needed & set(node.output):
            needed.update(node.input)
        else:
            names.append(node.name)
    return names


def key(path, case):
    digest = hashlib.sha256(path.read_bytes())
    for part in (Path(__file__).read_bytes(), importlib.metadata.version("onnxruntime").encode(), case.name.encode()):
        digest.update(part)
    return digest.hexdigest()


def quantise(case, folder, feeds):
    """Writes quantised.onnx beside model.onnx, unless it is there already."""
    source, target, mark = (folder / name for name in ("model.onnx", "quantised.onnx", "quantised.key"))
    wanted = key(source, case)
    if target.exists() and mark.exists() and mark.read_text() == wanted:
        return target
    logging.getLogger().setLevel(logging.ERROR)  # the quantisers recommend what `fold` does
    write_dynamic(source, target) if case.dynamic else write_static(case, source, target, feeds)
    mark.write_text(wanted)
    return target


def write_dynamic(source, target):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(source, target, op_types_to_quantize=DYNAMIC, per_channel=True, weight_type=QuantType.QInt8)


def write_static(case, source, target, feeds):
    import onnx
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    with tempfile.TemporaryDirectory() as aside:
        folded = onnx.load(fold(source, Path(aside) / "folded.onnx"))
        for number, node in enumerate(folded.graph.node):
            node.name = f"{node.op_type}{number}"  # those without a name would be left out together
        quantize_static(folded, target, Samples(feeds), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                        op_types_to_quantize=STATIC[case.kind], nodes_to_exclude=tail(folded))


def fold(source, target):
    """Batch normalisations become part of convolutions, as any quantiser wants it."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return target
