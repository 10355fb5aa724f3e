# SPDX-License-Identifier: MIT
"""A convolutional case's model files for all contestants, its input, and the expected output."""
import json
import math
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.contestants import Failed, package_file

BOUND = 1e-4  # of networks.compare's error: Winograd convolutions, ncnn's and rnncc's, have larger errors than direct ones


# The files


def write_model(case, folder, contestants):
    """Writes model.onnx, ncnn's model if it takes part, facts.json, and rnncc's model, whose path is returned. All sizes
    are known at compile time, to rnncc and to the peers."""
    import onnx
    from networks import NETWORKS
    net = NETWORKS[case.network]()
    net.inputs[0]["shape"][0] = case.B
    model = net.onnx()
    onnx.save(model, folder / "model.onnx")
    shapes = shapes_of(model)
    total, winograd = multiply_adds(net, shapes)
    facts = {"image": net.inputs[0]["shape"], "outputs": {name: shapes[name] for name in net.outputs},
             "multiply_adds": total, "multiply_adds_3x3": winograd,
             "weight_bytes": sum(array.nbytes for array in net.arrays.values())}
    (folder / "facts.json").write_text(json.dumps(facts))
    if "ncnn" in contestants:
        convert_for_ncnn(facts["image"], folder)
    return net.write(folder)


def shapes_of(model):
    import onnx
    graph = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
    return {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
            for value in [*graph.value_info, *graph.output]}


def multiply_adds(net, shapes):
    """(all, those of dense 3x3 convolutions of stride 1)."""
    counts = {True: 0, False: 0}
    for node in net.nodes:
        if node["op"] in ("Conv", "Gemm"):
            weights, attributes = net.arrays[node["inputs"][1]].shape, node["attributes"]
            winograd = weights[2:] == (3, 3) and attributes["strides"] == [1, 1] and attributes["group"] == 1
            counts[winograd] += math.prod(shapes[node["outputs"][0]]) * math.prod(weights[1:])
    return sum(counts.values()), counts[True]


def convert_for_ncnn(image, folder):
    """Converts model.onnx to model.ncnn.param and .bin. pnnx leaves other files beside its input."""
    with tempfile.TemporaryDirectory(dir=folder) as aside:
        shutil.copy(folder / "model.onnx", aside)
        shape = ",".join(map(str, image))
        done = subprocess.run([package_file("pnnx", "pnnx"), "model.onnx", f"inputshape=[{shape}]", "fp16=0"],
                              cwd=aside, capture_output=True, text=True)
        made = [Path(aside) / f"model.ncnn.{suffix}" for suffix in ("param", "bin")]
        if done.returncode or not all(path.exists() for path in made):
            raise Failed(f"pnnx does not convert {folder / 'model.onnx'}: {done.stderr[-300:]}")
        for path in made:
            path.replace(folder / path.name)


def module_facts(folder):
    """Facts of the case and its compiled module that the page shows besides times."""
    from support.module import Module
    with Module(folder / "module.so") as module:
        info = module.info
        facts = {"packed_bytes": info.weights_bytes, "arena_bytes": info.arena_bytes}
    return {**json.loads((folder / "facts.json").read_text()), **facts,
            "module_bytes": (folder / "module.so").stat().st_size}


# The measured process


class CnnJob:
    """Like contestants.Job, for a convolutional case."""
    near = math.inf  # the page shows every thread count

    def __init__(self, case, folder):
        facts = json.loads((folder / "facts.json").read_text())
        self.case, self.folder, self.bound = case, folder, BOUND
        self.feeds = {"image": np.random.default_rng(2).standard_normal(facts["image"], np.float32)}
        self.outputs = {name: np.full(shape, np.nan, np.float32) for name, shape in facts["outputs"].items()}
        self.weight_bytes = facts["weight_bytes"]

    def reference(self):
        """ONNX Runtime's on one thread, which multiplies directly."""
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(self.folder / "model.onnx", options, providers=["CPUExecutionProvider"])
        return dict(zip(self.outputs, session.run(list(self.outputs), self.feeds)))

    def error(self, outputs, expected):
        from networks.compare import error
        return max(error(outputs[name], values) for name, values in expected.items())

    def bound_of(self, contestant):
        return BOUND
