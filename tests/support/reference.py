# SPDX-License-Identifier: MIT
"""The reference interpreter from Python: runs a written model on arrays, by the program reference_run."""
import subprocess
import tempfile
from pathlib import Path

import numpy

from support.model_builder import TYPES


class ValueOutOfRange(Exception):
    """The reference refuses the values: an index out of range, a division by zero."""


def dims_of(model, feeds):
    """The values of the named dims in these inputs."""
    described = {i["name"]: i["shape"] for i in model.inputs} | {s["input"]: s["shape"] for s in model.states}
    return {axis: extent for name, array in feeds.items() for axis, extent in zip(described[name], array.shape)
            if isinstance(axis, str)}


class Reference:
    def __init__(self, program):
        self.program = program

    def run(self, model, path, feeds, simplified=False):
        """model: the Model that was written to path. Returns outputs by name, then the states' new values."""
        names = [i["name"] for i in model.inputs] + [s["input"] for s in model.states]
        with tempfile.TemporaryDirectory() as folder:
            for k, name in enumerate(names):
                (Path(folder) / f"in{k}").write_bytes(numpy.ascontiguousarray(feeds[name]).tobytes())
            dims = [f"{name}={extent}" for name, extent in dims_of(model, feeds).items()]
            options = ["--simplified"] if simplified else []
            done = subprocess.run([self.program, *options, path, folder, *dims], capture_output=True, text=True,
                                  timeout=120)
            if done.returncode == 1:
                raise ValueOutOfRange(done.stderr)
            assert done.returncode == 0, f"reference_run: exit {done.returncode}\n{done.stderr}"
            outputs = model.outputs + [s["output"] for s in model.states]
            return {name: read_output(Path(folder) / f"out{k}", line)
                    for k, (name, line) in enumerate(zip(outputs, done.stdout.splitlines(), strict=True))}


def read_output(path, description):
    dtype, *shape = description.split()
    return numpy.frombuffer(path.read_bytes(), TYPES[dtype][0]).reshape([int(extent) for extent in shape])
