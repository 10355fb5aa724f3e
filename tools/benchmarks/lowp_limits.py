# SPDX-License-Identifier: MIT
"""The minimum time of a quantised model on this machine.

At best, a product computes and moves at once. Computing: its multiply-adds, at the measured peak of their type. Moving:
its weights, from the cache or memory that holds all of the model's; its inputs and outputs, each from the cache that
holds a core's share of it. A recurrent layer reads its recurrent weights once in each step. All else is left out:
activations, nodes without products, barriers. No model can reach 100%.
"""
import math

from benchmarks.cases import F32, GATES
from benchmarks.contestants import QUANTISED
from benchmarks.machine import bandwidth

INT8 = 1  # bytes


def work(case, folder):
    """The products of a run, of int8 numbers or of floats, each [multiply-adds, bytes of weights, of inputs, of outputs,
    whether int8, how often]."""
    return recurrent(case.base) if case.kind == "recurrent" else of_model(folder / QUANTISED)


def recurrent(base):
    """The input's product of all steps, then each step's. All layers are alike."""
    per_step = base.D * GATES[base.op] * base.H * base.H
    rows = base.D * GATES[base.op] * base.H * base.B * F32
    inputs = [base.T * base.B * per_step, INT8 * per_step, base.T * base.B * base.H * F32, base.T * rows, True, base.layers]
    step = [base.B * per_step, INT8 * per_step, 0, 0, True, base.layers * base.T]
    return [inputs, step]


def of_model(path):
    import onnx
    graph = onnx.shape_inference.infer_shapes(onnx.load(path)).graph
    known = [*graph.value_info, *graph.output, *graph.input]
    shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in known}
    shapes |= {array.name: list(array.dims) for array in graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    constants = {array.name for array in graph.initializer}
    return [product(node, shapes, makers, constants) for node in graph.node
            if node.op_type in ("Conv", "Gemm", "MatMul", "MatMulInteger")]


def product(node, shapes, makers, constants):
    def small(name):
        return node.op_type == "MatMulInteger" or name in makers and makers[name].op_type == "DequantizeLinear"

    def constant(name):
        return name in constants or small(name) and name in makers and makers[name].input[0] in constants

    inputs, (output,) = node.input[:2], node.output
    size = INT8 if all(map(small, inputs)) else F32
    a, b = (shapes[name] for name in inputs)
    depth = math.prod(b[1:]) if node.op_type == "Conv" else a[-1]
    fixed = [size * math.prod(shapes[name]) for name in inputs if constant(name)]
    moved = [size * math.prod(shapes[name]) for name in inputs if not constant(name)]
    results = size * math.prod(shapes[output])
    return [math.prod(shapes[output]) * depth, sum(fixed), sum(moved), results, size == INT8, 1]


def moving(core, size, span):
    """Seconds of all cores for `size` bytes of what takes `span` bytes."""
    cores = core["threads"]
    return size / (cores * bandwidth(core, max(span, 1) / cores) * 1e9) if size else 0


def seconds(core, products):
    """(computing, reading weights, moving inputs and outputs, the sum of each product's longest). What is done as often
    is done in turns: its weights are read from the cache that holds all of them."""
    spans, found = {}, []
    for _, weights, *_, times in products:
        spans[times] = spans.get(times, 0) + weights
    for macs, weights, inputs, outputs, int8, times in products:
        peak = core["threads"] * core["int8_gops" if int8 else "gflops"] * 1e9 / 2
        parts = macs / peak, moving(core, weights, spans[times]), max(moving(core, size, size) for size in (inputs, outputs))
        found.append([times * part for part in (*parts, max(parts))])
    return [sum(column) for column in zip(*found)]
