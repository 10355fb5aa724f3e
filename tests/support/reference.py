# SPDX-License-Identifier: MIT
"""The reference interpreter from Python: runs a written model on arrays, by the program reference_run."""
import functools
import tempfile
from pathlib import Path

import numpy

from support.forking import Forking
from support.model_builder import TYPES

MAX_SECONDS = 120  # a run may take


class ValueOutOfRange(Exception):
    """The reference refuses the values: an index out of range, a division by zero."""


def dims_of(model, feeds):
    """The values of the named dims in these inputs."""
    described = {i["name"]: i["shape"] for i in model.inputs} | {s["input"]: s["shape"] for s in model.states}
    return {axis: extent for name, array in feeds.items() for axis, extent in zip(described[name], array.shape)
            if isinstance(axis, str)}


@functools.cache
class ManyRuns(Forking):
    def __init__(self, program):
        super().__init__(program, MAX_SECONDS)

    def run(self, folder, arguments):
        """The exit status, and what the run said."""
        status = self.ask([*arguments, ""], arguments)
        return status, (folder / "stdout").read_text(), (folder / "stderr").read_text()


class Reference:
    def __init__(self, program):
        self.runs = ManyRuns(program)

    def run(self, model, path, feeds, simplified=False):
        """model: the Model that was written to path. Returns outputs by name, then the states' new values."""
        names = [i["name"] for i in model.inputs] + [s["input"] for s in model.states]
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            for k, name in enumerate(names):
                (folder / f"in{k}").write_bytes(numpy.ascontiguousarray(feeds[name]).tobytes())
            dims = [f"{name}={extent}" for name, extent in dims_of(model, feeds).items()]
            options = ["--simplified"] if simplified else []
            status, said, wrong = self.runs.run(folder, [*options, path, folder, *dims])
            if status == 1:
                raise ValueOutOfRange(wrong)
            assert status == 0, f"reference_run: exit {status}\n{wrong}"
            outputs = model.outputs + [s["output"] for s in model.states]
            return {name: read_output(folder / f"out{k}", line)
                    for k, (name, line) in enumerate(zip(outputs, said.splitlines(), strict=True))}


def read_output(path, description):
    dtype, *shape = description.split()
    return numpy.frombuffer(path.read_bytes(), TYPES[dtype][0]).reshape([int(extent) for extent in shape])
