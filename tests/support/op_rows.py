# SPDX-License-Identifier: MIT
"""The rows of ops.def, and nodes that fit them or do not, in both of rnncc's formats."""
import math
import re
import subprocess
from types import SimpleNamespace

import numpy
from onnx import AttributeProto, helper, numpy_helper

from support.dtypes import DTYPES
from support.onnx_files import F32, model_of, tensor_info

MACROS = """
#define INT(name, value) (INT name)
#define FLOAT(name, value) (FLOAT name)
#define ONE_OF(name, set) (STRING name)
#define OPTIONAL(kind, name) (kind name)
#define REQUIRED(kind, name) (kind name needed)
#define OP(name, least, most, out_least, out_most, types, layout, shape, reference, family, ...) \\
  ROW name least most out_least out_most types | family | __VA_ARGS__
#include "ir/ops.def"
"""
ROW = re.compile(r"ROW (\w+) (\d+) (-?\d+) (\d+) (-?\d+) TYPES\(\{(.*?)\}, \{(.*?)\}, \{(.*?)\}\) \| (\w+) \|(.*)")
SETS = {"ANY": "f32", "INTEGER": "i64", "SIGNED": "i64", "UNSIGNED": "u32"}
TYPES = {dtype.name: dtype for dtype in DTYPES}

# An attribute of each kind; and what else a number or a list could be.
VALUES = {"INT": 1, "FLOAT": 0.5, "STRING": "i", "INTS": [1, 1], "FLOATS": [0.5, 0.5], "STRINGS": ["a", "b"],
          "TENSOR": numpy.ones(1, numpy.float32), "GRAPH": [], "TYPE": "f32"}
OTHERS = {"INT": [0, -1, 3, 2**31, 2**63 - 1, -2**63], "FLOAT": [0.0, -1.0, 1e30], "STRING": ["", "forward"],
          "INTS": [[], [0, 0], [-1, -1], [2, 3, 1], [2**62, 2**62], [-2**63, 2**63 - 1], [1] * 9], "FLOATS": [[], [0.0] * 9],
          "STRINGS": [[], ["Tanh", "Relu"]], "TENSOR": [], "GRAPH": [], "TYPE": ["i64", "bool", "f16"]}
ALIKE = [("FLOAT", "INT"), ("FLOATS", "INTS"), ("TYPE", "STRING"), ("TYPE", "INT")]  # of JSON, or of ONNX
KINDS = {"INT": AttributeProto.INT, "FLOAT": AttributeProto.FLOAT, "STRING": AttributeProto.STRING,
         "INTS": AttributeProto.INTS, "FLOATS": AttributeProto.FLOATS, "STRINGS": AttributeProto.STRINGS}
FIELDS = {"INT": "i", "FLOAT": "f", "STRING": "s", "INTS": "ints", "FLOATS": "floats", "STRINGS": "strings"}


def type_of(variables, slot):
    """Of the types that the input may have f32, or else the first."""
    allowed = re.search(rf"\[{slot.strip('MAY()')}\] = ([^,]+)", variables)
    names = [SETS.get(name, name.lower()) for name in allowed.group(1).split(" | ")] if allowed else ["f32"]
    return "f32" if "f32" in names else names[0]


def op_rows(root):
    """By name: inputs and outputs at least and at most (-1: any number), types of the inputs, attributes, and the family
    of kernels."""
    text = subprocess.run(["clang-19", "-E", "-P", f"-I{root}/compiler", "-x", "c", "-"], capture_output=True, text=True,
                          check=True, input=MACROS).stdout
    found = {}
    lines = " ".join(text.split()).replace("ROW ", "\nROW ")
    for name, least, most, out_least, _, variables, inputs, _, family, attributes in ROW.findall(lines):
        slots = [slot for slot in inputs.split(", ") if slot != "0"]
        found[name] = SimpleNamespace(name=name, least=int(least), most=int(most), outputs=int(out_least),
                                      family=family,
                                      types=[type_of(variables, slot) for slot in slots],
                                      optional=["MAY" in slot for slot in slots],
                                      kinds={a: kind for kind, a in re.findall(r"\((\w+) (\w+)(?: needed)?\)", attributes)},
                                      needed=re.findall(r"\(\w+ (\w+) needed\)", attributes))
    return found


class Form:
    """One node: names of inputs, "" where absent, and attributes as (kind, value)."""

    def __init__(self, row, inputs=None, **attributes):
        self.row = row
        self.inputs = [True] * most_inputs(row) if inputs is None else list(inputs)
        needed = {name: (row.kinds[name], VALUES[row.kinds[name]]) for name in row.needed}
        self.attributes = {name: given for name, given in {**needed, **attributes}.items() if given}

    def names(self, suffix):
        types = self.row.types
        return [f"{types[min(i, len(types) - 1)]}{suffix}" if here else "" for i, here in enumerate(self.inputs)]


def most_inputs(row):
    return row.most if row.most >= 0 else row.least + 2


def invalid_forms(row):
    """Nodes that the row forbids: too few inputs, one that is needed absent, an attribute missing or of another kind."""
    for n in range(row.least):
        yield Form(row, [True] * n)
    for i in range(row.least if row.most >= 0 else most_inputs(row)):
        if i < row.least and not row.optional[min(i, len(row.optional) - 1)]:
            yield Form(row, [k != i for k in range(most_inputs(row))])
    for name in row.needed:
        yield Form(row, **{name: None})
    for name, kind in row.kinds.items():
        for other in VALUES:
            if other not in (kind, "TYPE") and (kind, other) not in ALIKE:
                yield Form(row, **{name: (other, VALUES[other])})


def forms_of_inputs(row):
    """Each set of optional inputs."""
    free = [i for i in range(most_inputs(row)) if row.optional[min(i, len(row.optional) - 1)]]
    for absent in range(1 << len(free)):
        gone = {i for bit, i in enumerate(free) if absent >> bit & 1}
        yield Form(row, [i not in gone for i in range(most_inputs(row))])


def doubtful_forms(row):
    """Nodes that the row allows: each set of optional inputs, each attribute with any value of its kind."""
    yield from forms_of_inputs(row)
    for name, kind in row.kinds.items():
        for value in OTHERS[kind]:
            yield Form(row, **{name: (kind, value)})


def json_attribute(kind, value):
    if kind == "TENSOR":
        return {"dtype": "f32", "shape": [1], "data": value.tolist()}
    return {"outputs": ["f32_1"], "nodes": []} if kind == "GRAPH" else value


def json_model(forms, inputs, constants):
    """A node of each (form, suffix of its inputs' names), with outputs of its own."""
    nodes = []
    for form, suffix in forms:
        nodes.append({"op": form.row.name, "inputs": form.names(suffix),
                      "outputs": [f"y{len(nodes)}_{k}" for k in range(max(1, form.row.outputs))],
                      "attributes": {name: json_attribute(*given) for name, given in form.attributes.items()}})
    return {"format": "rnncc", "version": 1, "name": "forms",
            "inputs": [{"name": name, "dtype": dtype, "shape": shape} for name, (dtype, shape) in inputs.items()],
            "constants": {name: {"dtype": dtype, "shape": shape, "data": [1] * math.prod(shape)}
                          for name, (dtype, shape) in constants.items()},
            "outputs": [name for node in nodes for name in node["outputs"]], "nodes": nodes}


def fused(model, name, constant):
    """A json_model() whose nodes read a convolution of the input `name`, which has two channels, where they read that, and
    whose first outputs are read by element-wise nodes. The k-th of n nodes has its reader at place n + k."""
    nodes = model["nodes"]
    for node in nodes:
        node["inputs"] = ["before" if given == name else given for given in node["inputs"]]
    readers = [{"op": "Mul", "inputs": [node["outputs"][0], constant], "outputs": [f"after{k}"]} for k, node in enumerate(nodes)]
    others = [output for node in nodes for output in node["outputs"][1:]]
    weights = {"dtype": "f32", "shape": [2, 2, 1, 1], "data": [1, 0, 0, 1]}
    conv = {"op": "Conv", "inputs": [name, "weights"], "outputs": ["before"]}
    return {**model, "nodes": [*nodes, *readers, conv], "outputs": [f"after{k}" for k in range(len(nodes))] + others,
            "constants": {**model["constants"], "weights": weights}}


def onnx_attribute(name, kind, value):
    if kind == "TENSOR":
        return helper.make_attribute(name, numpy_helper.from_array(value, name))
    if kind == "GRAPH":
        return helper.make_attribute(name, helper.make_graph([], "body", [], [tensor_info("f32_1", F32, None)]))
    if kind == "TYPE":
        return helper.make_attribute(name, TYPES[value].onnx)
    made = AttributeProto(name=name, type=KINDS[kind])
    encoded = value.encode() if kind == "STRING" else [text.encode() for text in value] if kind == "STRINGS" else value
    getattr(made, FIELDS[kind]).extend(encoded) if kind.endswith("S") else setattr(made, FIELDS[kind], encoded)
    return made


def onnx_model(forms, inputs, constants, opset):
    nodes = []
    for form, suffix in forms:
        outputs = [f"y{len(nodes)}_{k}" for k in range(max(1, form.row.outputs))]
        node = helper.make_node(form.row.name, form.names(suffix), outputs, f"node{len(nodes)}")
        node.attribute.extend(onnx_attribute(name, *given) for name, given in form.attributes.items())
        nodes.append(node)
    return model_of(nodes, {name: (TYPES[dtype].onnx, shape) for name, (dtype, shape) in inputs.items()},
                    {name: (F32, None) for node in nodes for name in node.output},
                    {name: numpy.ones(shape, TYPES[dtype].numpy) for name, (dtype, shape) in constants.items()}, opset)
