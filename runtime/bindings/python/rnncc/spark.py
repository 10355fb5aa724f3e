# SPDX-License-Identifier: MIT
"""Modules in PySpark: each Python worker has one, with as many threads as a task has CPUs (spark.task.cpus).

    frame.mapInPandas(rnncc.spark.Scorer("net.so", outputs={"y": "scores"}), "name string, scores array<float>")"""
from __future__ import annotations

import importlib
import os
from functools import lru_cache
from typing import Any, Dict, Iterator, Mapping, Optional

from .errors import LoadError
from .module import Module, load
from .native import Path
from .tables import Columns


def assigned_cpus() -> int:
    """How many CPUs the task has; Spark limits no one to them."""
    context: Any = importlib.import_module("pyspark").TaskContext.get()
    return 1 if context is None else int(context.cpus())


@lru_cache(maxsize=None)
def _module(path: str, network: Optional[str], threads: int) -> Module:
    """One for each process: Spark's workers go from task to task."""
    return load(path, network, threads=threads)


def found(path: str) -> str:
    """The file itself, or as SparkContext.addFile() has brought it here."""
    if os.path.exists(path):
        return path
    files: Any = importlib.import_module("pyspark").SparkFiles
    brought: str = files.get(os.path.basename(path))
    if not os.path.exists(brought):
        raise LoadError(f"{path}: No such file here, nor {brought}, where SparkContext.addFile() would have brought it")
    return brought


class Scorer:
    """A function for mapInPandas().

    path: of the module, on every machine, or its name, if SparkContext.addFile() brings it. inputs, outputs: name in the
    network -> column; default: the same. The columns of inputs go, all others stay: the schema of mapInPandas() names
    them and the outputs, of rank 1 as array<float>, of rank 2 as array<array<float>>. errors: a column for what is wrong
    with a row, null where nothing is; its outputs are then null. Without it, a wrong row fails the task. batch, pad, most:
    see rnncc.rows.Rows. threads: default: the task's CPUs."""

    def __init__(self, path: Path, network: Optional[str] = None, *, threads: Optional[int] = None,
                 inputs: Optional[Mapping[str, str]] = None, outputs: Optional[Mapping[str, str]] = None,
                 errors: Optional[str] = None, batch: str = "B", pad: Optional[Mapping[str, str]] = None,
                 most: Optional[int] = None):
        self._path, self._network, self._threads = os.fspath(path), network, threads
        self._names = inputs, outputs, errors
        self._batches: Dict[str, Any] = {"batch": batch, "pad": pad, "most": most}

    def __call__(self, frames: Iterator[Any]) -> Iterator[Any]:
        module = _module(found(self._path), self._network, self._threads or assigned_cpus())
        columns = Columns(module, *self._names, **self._batches)
        for frame in frames:
            scored, words = columns.score({name: frame[name] for name in frame.columns})
            result = frame.drop(columns=list(columns.inputs.values()))
            for name, values in scored.items():
                result[name] = [_nested(value) for value in values]
            if columns.errors is not None:
                result[columns.errors] = words
            yield result


def _nested(value: Any) -> Any:
    """Arrow takes arrays of rank 1, and lists of them."""
    if value is None or value.ndim == 1:
        return value
    return [_nested(it) for it in value] if value.ndim else value.item()
