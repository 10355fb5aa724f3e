# SPDX-License-Identifier: MIT
"""Modules in Ray Data: each worker has one, with as many threads as Ray gives it CPUs.

    rows.map_batches(rnncc.ray.Scorer, fn_constructor_args=["net.so"], batch_size=256, num_cpus=2,
                     compute=ray.data.ActorPoolStrategy(size=4))"""
from __future__ import annotations

import importlib
from typing import Any, Dict, List, Mapping, Optional

from .dtypes import numpy
from .module import load
from .native import Path
from .tables import Columns


def assigned_cpus() -> int:
    """How many CPUs Ray gives this worker; it limits no one to them."""
    ray: Any = importlib.import_module("ray")
    return max(1, int(ray.get_runtime_context().get_assigned_resources().get("CPU", 1)))


class Scorer:
    """A class for map_batches().

    path: of the module, on every machine. inputs, outputs: name in the network -> column; default: the same. The columns of
    inputs go, all others stay. errors: a column for what is wrong with a row, "" where nothing is; its outputs are then
    zeros, of floats NaN, and nothing where the extents are the row's own. Without it, a wrong row fails the task. batch,
    pad, most: see rnncc.rows.Rows. threads: default: the worker's CPUs."""

    def __init__(self, path: Path, network: Optional[str] = None, *, threads: Optional[int] = None,
                 inputs: Optional[Mapping[str, str]] = None, outputs: Optional[Mapping[str, str]] = None,
                 errors: Optional[str] = None, batch: str = "B", pad: Optional[Mapping[str, str]] = None,
                 most: Optional[int] = None):
        self.module = load(path, network, threads=threads or assigned_cpus())
        self._columns = Columns(self.module, inputs, outputs, errors, batch=batch, pad=pad, most=most)

    def __call__(self, table: Dict[str, Any]) -> Dict[str, Any]:
        found, words = self._columns.score(table)
        used = self._columns.inputs.values()
        result = {name: column for name, column in table.items() if name not in used}
        for name, column in self._columns.outputs.items():
            result[column] = self._column(name, found[column])
        if self._columns.errors is not None:
            result[self._columns.errors] = numpy.array([it or "" for it in words], object)
        return result

    def _column(self, name: str, values: List[Any]) -> Any:
        """Rows of one shape as one array, which Ray keeps as a tensor; others as an array of arrays."""
        absent = self._columns.absent(name)
        present = [absent if it is None else it for it in values]
        if self._columns.fixed(name):
            return numpy.stack(present) if present else absent[None][:0]
        column = numpy.empty(len(present), object)
        for place, value in enumerate(present):  # numpy.array() would stack those that happen to have one shape
            column[place] = value
        return column
