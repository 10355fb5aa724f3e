# SPDX-License-Identifier: MIT
"""Writes a trained network as an rnncc model: a JSON graph with its provenance and a safetensors file beside it.

The graph is described once, with the builder that the tests use, so that ONNX Runtime can run it too and must give
PyTorch's numbers before anything else reads the files. Recurrent weights are stored in ONNX's gate order.
"""

import json
import pathlib
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests"))
from support import model_builder  # noqa: E402  (a program's path comes first)

# Positions of ONNX's gates in PyTorch's weights, whose LSTM has ifgo and GRU rzn.
IOFC, ZRH = (0, 3, 1, 2), (1, 0, 2)


def reordered(matrix, gates):
    blocks = numpy.split(matrix, len(gates))
    return numpy.concatenate([blocks[gate] for gate in gates])


class Model(model_builder.Model):
    def __init__(self, name, provenance):
        super().__init__(name)
        self.provenance = provenance

    def weight(self, name, tensor):
        return self.constant(tensor.detach().numpy(), name)

    def recurrent_weights(self, prefix, module, layer, gates):
        """Names of ONNX's W [D,gH,I], R [D,gH,H] and B [D,2gH], made from one layer of an LSTM or a GRU."""
        suffixes = ("", "_reverse") if module.bidirectional else ("",)

        def directions(part):
            parameters = [getattr(module, f"{part}_l{layer}{suffix}") for suffix in suffixes]
            return numpy.stack([reordered(parameter.detach().numpy(), gates) for parameter in parameters])

        biases = numpy.concatenate([directions("bias_ih"), directions("bias_hh")], axis=1)
        return [self.constant(array, f"{prefix}.{part}") for part, array in
                (("W", directions("weight_ih")), ("R", directions("weight_hh")), ("B", biases))]

    def node(self, op, inputs, output, **attributes):
        """A node with one output besides absent ones (""), named for that output."""
        outputs = [output] if isinstance(output, str) else output
        super().node(op, inputs, outputs, **attributes)
        self.nodes[-1]["name"] = outputs[-1]
        return outputs[-1]

    def write(self, directory):
        """NAME.safetensors with everything in floats, and NAME.json with a line for each tensor and node."""
        directory.mkdir(parents=True, exist_ok=True)
        floats = {name: array for name, array in self.arrays.items() if array.dtype == numpy.float32}
        constants = {name: model_builder.inline_constant(array) for name, array in self.arrays.items()
                     if name not in floats}
        fields = {
            "format": "rnncc", "version": 1, "name": self.name, "x-provenance": self.provenance, "dims": self.dims,
            "inputs": self.inputs, "outputs": self.outputs,
            "weights": [self._write_weights(directory / f"{self.name}.safetensors", floats)],
            "constants": constants,
            "nodes": [{key: value for key, value in node.items() if value or key != "attributes"}
                      for node in self.nodes],
        }
        text = ",\n".join(f'  "{key}": {one_line_each(value)}' for key, value in fields.items() if value)
        (directory / f"{self.name}.json").write_text(f"{{\n{text}\n}}\n")

    def check(self, inputs, expected, tolerance):
        """Checks that ONNX Runtime's output on this graph is `expected` to within tolerance."""
        got = self.onnx_run(inputs)[self.outputs[0]]
        error = numpy.abs(got - expected).max()
        assert got.shape == expected.shape and error <= tolerance, f"{self.name}: off by {error}"
        print(f"{self.name}: ONNX Runtime and PyTorch differ by at most {error:.1e}")


def one_line_each(value):
    """JSON with each item of an object, or of an array of objects, on a line of its own."""
    if isinstance(value, dict):
        return "{\n" + ",\n".join(f"    {json.dumps(key)}: {json.dumps(item)}" for key, item in value.items()) + "\n  }"
    if isinstance(value, list) and isinstance(value[0], dict):
        return "[\n" + ",\n".join(f"    {json.dumps(item)}" for item in value) + "\n  ]"
    return json.dumps(value)
