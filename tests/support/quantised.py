# SPDX-License-Identifier: MIT
"""What `rnncc quantize` writes and prints, for tests."""
import json
import re

import numpy as np
import safetensors.numpy


def quantise(rnncc, model, output, *options, data=None, timeout=300, **arguments):
    """The completed process; it must end well."""
    data = [] if data is None else [f"--data={data}"]
    done = rnncc("quantize", model, *data, "-o", output, *options, timeout=timeout, **arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def error(done):
    """The error of all that is chosen, as printed."""
    return float(re.search(r"error of the outputs (\S+),", done.stdout)[1])


def rows(done):
    """name -> (op, least, most, scale, error alone, precision) of the table."""
    table = {}
    for line in done.stdout.splitlines()[1:]:
        found = re.match(r"(\S+)  +(\w+) +(\S+) +(\S+) +(\S+) +(\S+)  (int8 weights|int8|f32)", line)
        if found:
            name, op, *numbers, precision = found.groups()
            table[name] = (op, *(None if n == "-" else float(n) for n in numbers), precision)
    return table


class Written:
    """A written model: its nodes, and its constants as arrays."""

    def __init__(self, path):
        self.model = json.loads(path.read_text())
        self.arrays = safetensors.numpy.load_file(path.with_suffix(".safetensors"))
        for name, inline in self.model.get("constants", {}).items():
            self.arrays[name] = np.array(inline["data"]).reshape(inline["shape"])
        self.producer = {name: node for node in self.model["nodes"] for name in node["outputs"]}

    def node(self, name, op):
        (found,) = [node for node in self.model["nodes"] if node["name"] == name and node["op"] == op]
        return found

    def dequantised(self, value):
        """(integers, scale) of a constant behind a DequantizeLinear."""
        node = self.producer[value]
        assert node["op"] == "DequantizeLinear", node
        return self.arrays[node["inputs"][0]], self.arrays[node["inputs"][1]]

    def grid(self, value):
        """(scale, zero point) of data behind QuantizeLinear and DequantizeLinear."""
        back = self.producer[value]
        there = self.producer[back["inputs"][0]]
        assert (back["op"], there["op"]) == ("DequantizeLinear", "QuantizeLinear")
        assert back["inputs"][1:] == there["inputs"][1:]
        return float(self.arrays[back["inputs"][1]]), int(self.arrays[back["inputs"][2]])


def save(directory, name, arrays):
    """One file an array; the pattern of them."""
    for k, array in enumerate(arrays):
        np.save(directory / f"{name}{k:03}.npy", array)
    return directory / f"{name}*.npy"


def relative_error(got, expected):
    got, expected = np.asarray(got, float), np.asarray(expected, float)
    return float(np.sqrt(((got - expected) ** 2).sum() / (expected ** 2).sum()))
