# SPDX-License-Identifier: MIT
"""Describes a model once and writes it in two forms: rnncc's JSON, and ONNX for the peer.

    model = Model()
    model.dim("T", 1, 5, 20)
    x = model.input("x", "f32", ["T", 3])
    w = model.constant(numpy.eye(3, dtype=numpy.float32))
    model.output(model.node("MatMul", [x, w]))
    path = model.write(tmp_path)
    expected = model.onnx_run({"x": array})

Ops have ONNX's names, inputs and attributes, in the form of OPSET: Cast's `to` is rnncc's type name here.
"""
import hashlib
import json
from pathlib import Path

import numpy
import onnx
import safetensors.numpy

from support.dtypes import BY_NAME, DTYPES, is_float

OPSET = 22
INLINE_ELEMENTS = 64  # larger constants go to the safetensors file

TYPES = {dtype.name: (dtype.numpy.type, dtype.onnx) for dtype in DTYPES}


def type_name(array):
    return next(name for name, (numpy_type, _) in TYPES.items() if array.dtype == numpy_type)


class Model:
    opset = OPSET  # of the ONNX form; an older one if the peer has no kernel for the newest form of an op

    def __init__(self, name="model"):
        self.name = name
        self.dims, self.inputs, self.outputs, self.states = {}, [], [], []
        self.arrays, self.nodes = {}, []
        self._session = None

    def dim(self, name, smallest, usual, largest, multiple=1):
        self.dims[name] = {"min": smallest, "opt": usual, "max": largest} | ({"multiple": multiple} if multiple > 1 else {})
        return name

    def input(self, name, dtype, shape):
        self.inputs.append({"name": name, "dtype": dtype, "shape": list(shape)})
        return name

    def state(self, name, output, dtype, shape, **fields):
        """An input that the context carries: after each run it takes the value of `output`. A plain input in ONNX."""
        self.states.append({"input": name, "output": output, "dtype": dtype, "shape": list(shape), **fields})
        return name

    def constant(self, array, name=None):
        name = name or f"constant{len(self.arrays)}"
        self.arrays[name] = numpy.asarray(array)
        return name

    def node(self, op, inputs, outputs=1, **attributes):
        """Adds a node. `outputs`: how many, or their names ("" for one that is left out). Returns the name or names."""
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)] if isinstance(outputs, int) else list(outputs)
        attributes = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append({"op": op, "name": f"n{len(self.nodes)}", "inputs": ["" if i is None else i for i in inputs],
                           "outputs": names, "attributes": attributes})
        return names[0] if len(names) == 1 else names

    def output(self, *names):
        self.outputs.extend(names)

    # rnncc

    def write(self, directory, stem=None):
        """Writes STEM.json and, if a constant is large or not finite, STEM.safetensors; a stem of None is the name. Returns
        the JSON's path."""
        directory, stem = Path(directory), stem or self.name
        document = {"format": "rnncc", "version": 1, "name": self.name}
        stored = {name: array for name, array in self.arrays.items() if not inline(array)}
        if self.dims:
            document["dims"] = self.dims
        document["inputs"] = self.inputs
        if self.states:
            document["states"] = self.states
        document["outputs"] = self.outputs
        if stored:
            document["weights"] = [self._write_weights(directory / f"{stem}.safetensors", stored)]
        if len(stored) < len(self.arrays):
            document["constants"] = {name: inline_constant(array) for name, array in self.arrays.items()
                                     if name not in stored}
        document["nodes"] = [{key: value for key, value in node.items() if key != "attributes" or value}
                             for node in self.nodes]
        path = directory / f"{stem}.json"
        path.write_text(json.dumps(document, indent=1, default=json_of))
        return path

    @staticmethod
    def _write_weights(path, arrays):
        data = safetensors.numpy.save({name: numpy.array(array, order="C") for name, array in arrays.items()})
        path.write_bytes(data)
        return {"file": path.name, "sha256": hashlib.sha256(data).hexdigest()}

    # the peer

    def onnx(self):
        info = onnx.helper.make_tensor_value_info
        nodes = [onnx.helper.make_node(node["op"], node["inputs"], node["outputs"], **onnx_attributes(node))
                 for node in self.nodes]
        inputs = [info(i["name"], TYPES[i["dtype"]][1], i["shape"]) for i in self.inputs]
        inputs += [info(s["input"], TYPES[s["dtype"]][1], s["shape"]) for s in self.states]
        outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in
                   dict.fromkeys(self.outputs + [s["output"] for s in self.states])]
        weights = [onnx.numpy_helper.from_array(array, name) for name, array in self.arrays.items()]
        graph = onnx.helper.make_graph(nodes, self.name, inputs, outputs, weights)
        return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", self.opset)], ir_version=10)

    def onnx_run(self, feeds):
        """The outputs by name, then the states' new values by the names of their outputs."""
        if not self._session:
            import onnxruntime  # not needed to write models
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            options.log_severity_level = 4
            self._session = onnxruntime.InferenceSession(self.onnx().SerializeToString(), options,
                                                         providers=["CPUExecutionProvider"])
        names = [output.name for output in self._session.get_outputs()]
        return dict(zip(names, self._session.run(names, feeds)))


def json_of(value):
    """A body of control flow, a tensor, or a number of NumPy's."""
    if isinstance(value, numpy.ndarray):
        return inline_constant(value)
    return value.json() if hasattr(value, "json") else float(value)


def inline(array):
    if not BY_NAME[type_name(array)].safetensors:
        return True
    return array.size <= INLINE_ELEMENTS and (array.dtype != numpy.float32 or numpy.isfinite(array).all())


def inline_constant(array):
    return {"dtype": type_name(array), "shape": list(array.shape), "data": array.flatten().tolist()}


def onnx_attributes(node):
    attributes = {key: value.onnx(onnx_attributes) if hasattr(value, "onnx") else value
                  for key, value in node["attributes"].items()}
    for name, value in attributes.items():
        if isinstance(value, numpy.ndarray):
            attributes[name] = onnx.numpy_helper.from_array(value)
    for name in {"to", "dtype", "output_dtype", "precision"} & set(attributes):
        attributes[name] = TYPES[attributes[name]][1]
    return attributes


def whole(rng, *shape):
    """f32 whose sums of products are exact in any order."""
    return rng.integers(-3, 4, shape).astype(numpy.float32)


def random_array(rng, dtype, shape, low=-8, high=8):
    """Small values: integers of every type, and floats with a fraction."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(numpy.bool_)
    if dtype[0] == "f":
        return rng.uniform(low, high, shape).astype(TYPES[dtype][0])
    return rng.integers(0 if dtype[0] == "u" else low, high, shape).astype(TYPES[dtype][0])
