# SPDX-License-Identifier: MIT
"""The files of a case of `tools/bench products` for all contestants, its input, and the expected output."""
import json

import numpy as np

from benchmarks import networks, product_networks
from benchmarks.cnn_job import CnnJob, shapes_of

BOUND = 1e-4  # relative to the largest value: ten layers one after the other, each of some 1e-6


def write_model(case, folder, contestants):
    """Writes model.onnx, facts.json, and rnncc's model, whose path is returned."""
    import onnx
    net = product_networks.model(case)
    model = net.onnx()
    onnx.save(model, folder / "model.onnx")
    inputs = {given["name"]: given["shape"] for given in net.inputs}
    shapes = {**shapes_of(model), **inputs}
    facts = {"inputs": inputs, "outputs": {name: shapes[name] for name in net.outputs},
             "multiply_adds": product_networks.multiply_adds(net, shapes),
             "weight_bytes": sum(array.nbytes for array in net.arrays.values())}
    (folder / "facts.json").write_text(json.dumps(facts))
    return net.write(folder)


class ProductJob(CnnJob):
    def __init__(self, case, folder):
        facts = json.loads((folder / "facts.json").read_text())
        rng = np.random.default_rng(2)
        self.case, self.folder, self.bound = case, folder, BOUND
        self.feeds = {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in facts["inputs"].items()}
        self.outputs = {name: np.full(shape, np.nan, np.float32) for name, shape in facts["outputs"].items()}
        self.weight_bytes = facts["weight_bytes"]

    def error(self, outputs, expected):
        return networks.error(outputs, expected)
