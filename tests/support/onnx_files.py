# SPDX-License-Identifier: MIT
"""Small ONNX files for the tests of the reader, and their results by rnncc's reference and by ONNX Runtime."""
from types import SimpleNamespace

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

IR_VERSION = 8
F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def tensor_info(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def model_of(nodes, inputs, outputs, constants=None, opset=17, functions=(), **fields):
    """inputs, outputs: name -> (type, shape); constants: name -> array."""
    graph = helper.make_graph(nodes, "test", [tensor_info(name, *kind) for name, kind in inputs.items()],
                              [tensor_info(name, *kind) for name, kind in outputs.items()],
                              [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()])
    domains = {function.domain for function in functions} | {node.domain for node in nodes if node.domain}
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1) for domain in domains]
    return helper.make_model(graph, ir_version=IR_VERSION, opset_imports=imports, functions=list(functions), **fields)


def write(folder, model, name="model.onnx"):
    path = folder / name
    path.write_bytes(model.SerializeToString() if isinstance(model, onnx.ModelProto) else model)
    return path


def described(model):
    """What support.reference needs of a model."""
    frozen = {tensor.name for tensor in model.graph.initializer}
    inputs = [{"name": i.name, "shape": [d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim]}
              for i in model.graph.input if i.name not in frozen]
    return SimpleNamespace(inputs=inputs, states=[], outputs=[o.name for o in model.graph.output])


def onnxruntime_run(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def random_feeds(model, seed=1):
    generator = numpy.random.default_rng(seed)
    return {i["name"]: generator.standard_normal(i["shape"]).astype(numpy.float32) for i in described(model).inputs}
