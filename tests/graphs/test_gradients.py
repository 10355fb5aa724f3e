# SPDX-License-Identifier: MIT
"""Gradients of compiled training steps: the differences of the loss on both sides of each weight, in double precision by
ONNX's own reference."""
import math
import re

import numpy
import onnx
import onnx.reference.op_run
import pytest

from graphs.gradient_models import GRADIENTS, built
from support import reading_blocks
from support.model_builder import Model
from support.module import rnncc

STEP = 2.0**-20  # of a weight: the difference is off by STEP^2 times the third derivative, and 2^-52 / STEP of the loss
ERROR = 2.0**-18  # of the largest gradient of a weight: some 60 roundings in f32
GROUPS = 6


def erf(x):
    return numpy.vectorize(math.erf, otypes=[x.dtype])(x)


class Erf(onnx.reference.op_run.OpRun):
    """ONNX's own rounds to single precision."""

    def _run(self, x):
        return (erf(x),)


class Gelu(onnx.reference.op_run.OpRun):
    """As Erf."""

    def _run(self, x, approximate=None):
        tanh = numpy.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
        return (x * (1 + (tanh if approximate == "tanh" else erf(x / math.sqrt(2)))) / 2,)


class GroupNormalization(onnx.reference.op_run.OpRun):
    """ONNX's own fails. Scale and bias have a number for each channel or, as before opset 21, for each group."""

    def _run(self, x, scale, bias, epsilon=None, num_groups=None, stash_type=None):
        rows = x.reshape(len(x), num_groups, -1)
        normal = (rows - rows.mean(2, keepdims=True)) / numpy.sqrt(rows.var(2, keepdims=True) + epsilon)
        by_channel = (numpy.repeat(values, x.shape[1] // len(values)).reshape(-1, *[1] * (x.ndim - 2)) for values in (scale, bias))
        return (normal.reshape(x.shape) * next(by_channel) + next(by_channel),)


class ConvTranspose(onnx.reference.op_run.OpRun):
    """ONNX's own knows no groups and not all pads."""

    def _run(self, x, w, bias=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, output_padding=None,
             output_shape=None, pads=None, strides=None):
        n = x.ndim - 2
        strides, dilations, longer, pads = strides or [1] * n, dilations or [1] * n, output_padding or [0] * n, pads or [0] * 2 * n
        written = [(size - 1) * s + (k - 1) * d + 1 + more
                   for size, s, k, d, more in zip(x.shape[2:], strides, w.shape[2:], dilations, longer)]
        x, w = x.reshape(len(x), group, -1, *x.shape[2:]), w.reshape(group, -1, *w.shape[1:])
        whole = numpy.zeros((len(x), group, w.shape[2], *written))
        for tap in numpy.ndindex(*w.shape[3:]):
            places = tuple(slice(t * d, t * d + (size - 1) * s + 1, s) for t, d, size, s in zip(tap, dilations, x.shape[3:], strides))
            whole[(slice(None),) * 3 + places] += numpy.einsum("ngc...,gcm->ngm...", x, w[(slice(None),) * 3 + tap])
        if output_shape or auto_pad == "SAME_LOWER":
            wanted = output_shape or [size * s for size, s in zip(x.shape[3:], strides)]
            cut = [max(has - to, 0) for has, to in zip(written, wanted)]
            pads = [*(c - c // 2 for c in cut), *(c // 2 for c in cut)]
            whole = numpy.pad(whole, [(0, 0)] * 3 + [(0, max(to - has, 0)) for has, to in zip(written, wanted)])
        inside = tuple(slice(begin, size - end) for begin, end, size in zip(pads[:n], pads[n:], whole.shape[3:]))
        y = whole[(slice(None),) * 3 + inside].reshape(len(x), -1, *(s.stop - s.start for s in inside))
        return (y + bias.reshape(-1, *[1] * n),)


def own_op(name, formula):
    """An operator of the project's own, for the reference."""
    def run(self, *arrays, **attributes):
        return (formula(*arrays, **{key: value for key, value in attributes.items() if value is not None}),)

    return type(name, (onnx.reference.op_run.OpRun,), {"_run": run})


OWN_OPS = [own_op("Highway", reading_blocks.highway), own_op("AdditiveAttention", lambda *x: reading_blocks.additive(*x)[0]),
           own_op("AttentionFlow", reading_blocks.flow), own_op("AttentionSum", reading_blocks.attention_sum)]


def loss_in_double(model):
    """The loss as a function of the weights and inputs, all in double precision."""
    proto = model.onnx()
    for value in proto.graph.input:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    for tensor in proto.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor).astype(numpy.float64), tensor.name))
    session = onnx.reference.ReferenceEvaluator(proto, new_ops=[Erf, Gelu, GroupNormalization, ConvTranspose, *OWN_OPS])

    def loss(feeds):
        return float(session.run(None, feeds)[0])

    return loss


def in_double(arrays):
    return {name: array.astype(numpy.float64) if array.dtype == numpy.float32 else array for name, array in arrays.items()}


def difference(session_of, model, name, array, feeds):
    """The gradient of one weight: the constant becomes an input."""
    as_input = type(model)("difference")
    as_input.__dict__.update({**model.__dict__, "arrays": {k: v for k, v in model.arrays.items() if k != name},
                              "inputs": [*model.inputs, {"name": name, "dtype": "f32", "shape": array.shape}]})
    loss, weight = session_of(as_input), array.astype(numpy.float64)
    result = numpy.zeros_like(weight)
    for place in numpy.ndindex(*array.shape):
        sides = []
        for sign in (1, -1):
            moved = weight.copy()
            moved[place] += sign * STEP
            sides.append(loss({**feeds, name: moved}))
        result[place] = (sides[0] - sides[1]) / (2 * STEP)
    return result


@pytest.mark.every_case
@pytest.mark.parametrize("group", range(GROUPS))
def test_gradients_are_differences_of_the_loss(compile, tmp_path, group):
    names = list(GRADIENTS)[group::GROUPS]
    model, builders = built(names)
    trainer = rnncc.load(compile(model.write(tmp_path), "--train", optimised=False), threads=2, share_all=True).trainer()
    feeds = {name: array for builder in builders for name, array in builder.feeds.items()}
    trainer.run(feeds)
    trainer.backward()
    gradients = trainer.gradients()
    wrong = []
    for name, builder in zip(names, builders):
        alone, _ = built([name])
        for weight, array in builder.weights.items():
            due = difference(loss_in_double, alone, weight, array, in_double(builder.feeds))
            error = numpy.abs(gradients[weight] - due).max() / max(numpy.abs(due).max(), 1)
            if not error < ERROR:
                wrong.append(f"{weight}: off by {error:.2g}\n{gradients[weight]}\nexpected\n{due}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("extents", [["W"], ["H", "W"], ["H", 3, "W"]], ids=["signal", "image", "volume"])
def test_a_maximums_gradient_goes_to_its_place_in_planes_of_extents_of_the_run(compile, tmp_path, extents):
    """Of windows of two, side by side: the largest number has the gradient."""
    model, n = Model(), len(extents)
    model.dim("H", 2, 4, 6)
    model.dim("W", 2, 4, 9)
    x = model.input("x", "f32", [2, 3, *extents])
    scaled = model.node("Mul", [x, model.constant(numpy.ones((1, 3, *[1] * n), "f"))])  # a weight is trained
    model.output(model.node("MaxPool", [scaled], ["y"], kernel_shape=[2] * n, strides=[2] * n))
    trainer = rnncc.load(compile(model.write(tmp_path), "--train", "--outer-loss", optimised=False), threads=2, share_all=True).trainer()
    rng = numpy.random.default_rng(3)
    for sizes in ({"H": 2, "W": 3}, {"H": 5, "W": 9}):
        plane = [sizes.get(extent, extent) for extent in extents]
        data = rng.permutation(6 * math.prod(plane)).reshape(2, 3, *plane).astype("f")
        y = trainer(data)
        d = rng.integers(1, 9, y.shape).astype("f")
        due = numpy.zeros_like(data)
        for largest, gradient in zip(y.flat, d.flat, strict=True):
            due[data == largest] = gradient
        numpy.testing.assert_array_equal(trainer.backward_from({"y": d})["x"], due)


def test_every_row_of_the_table_is_tested(root):
    """By a node of that operator, or of one that becomes it."""
    rows = set(re.findall(r"^GRADIENT\((\w+)", (root / "compiler/differentiate/gradients.def").read_text(), re.MULTILINE))
    model, _ = built(GRADIENTS)
    elsewhere = {"CTCLikelihood", "Cast", "CrossEntropy", "ExpectExtent", "GRU", "Identity", "LSTM", "RMSNormalization", "RNN"}
    assert rows - {node["op"] for node in model.nodes} == elsewhere
