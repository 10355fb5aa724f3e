# SPDX-License-Identifier: MIT
"""Bodies of If, Loop and Scan for Model: graphs within its graph, whose names differ from all others.

    body = Body(model, i="i64", x="f32")  # inputs and their types, which ONNX Runtime requires; all but f32 and f16 are scalars
    body.output(body.node("Add", [body.inputs[0], outer]))
    model.node("Loop", [trip, None, x], body=body)
"""
import itertools

import onnx

from support.model_builder import TYPES

_numbers = itertools.count()


class Body:
    def __init__(self, model, **inputs):
        self.model, self.prefix = model, f"b{next(_numbers)}_"
        self.inputs, self.types = [self.prefix + name for name in inputs], list(inputs.values())
        self.nodes, self.outputs = [], []

    def constant(self, array):
        return self.model.constant(array)

    def node(self, op, inputs, outputs=1, **attributes):
        names = [f"{self.prefix}v{len(self.nodes)}_{k}" for k in range(outputs)]
        attributes = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append({"op": op, "name": f"{self.prefix}n{len(self.nodes)}", "outputs": names,
                           "inputs": ["" if i is None else i for i in inputs], "attributes": attributes})
        return names[0] if outputs == 1 else names

    def output(self, *names):
        self.outputs += names
        return self

    def json(self):
        return {"inputs": self.inputs, "outputs": self.outputs, "nodes": self.nodes}

    def onnx(self, onnx_attributes):
        inputs = [onnx.helper.make_tensor_value_info(name, TYPES[dtype][1], None if dtype in ("f16", "f32") else [])
                  for name, dtype in zip(self.inputs, self.types)]
        outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in self.outputs]
        nodes = [onnx.helper.make_node(n["op"], n["inputs"], n["outputs"], **onnx_attributes(n)) for n in self.nodes]
        return onnx.helper.make_graph(nodes, self.prefix, inputs, outputs)


def body_of(model, build, **inputs):
    """`build` gets the body and its inputs, and returns its outputs, or the one."""
    body = Body(model, **inputs)
    results = build(body, *body.inputs)
    return body.output(*([results] if isinstance(results, str) else results))
