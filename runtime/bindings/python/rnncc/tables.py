# SPDX-License-Identifier: MIT
"""Columns of a table through a network: which are its inputs, what becomes of its outputs, and of rows that it refuses.
ray.py and spark.py are this for their kinds of tables."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from .dtypes import numpy, numpy_dtype
from .errors import ArgumentError, Error
from .module import Module
from .rows import BY_NAME, Arrays, Rows


class Columns:
    """inputs and outputs: name in the network -> column; default: the same. errors: a column of words, None where a row is
    well; without it a row that is refused is an exception."""

    def __init__(self, module: Module, inputs: Optional[Mapping[str, str]] = None,
                 outputs: Optional[Mapping[str, str]] = None, errors: Optional[str] = None, **batches: Any):
        self.rows = Rows(module, **batches)
        self.inputs = _renamed("inputs", [it.name for it in self.rows.inputs], inputs)
        self.outputs = _renamed("outputs", [it.name for it in module.outputs], outputs)
        self.errors = errors

    def score(self, columns: Mapping[str, Sequence[Any]]) -> "tuple[Dict[str, List[Any]], List[Optional[str]]]":
        """The outputs' columns, in which a row that was refused has None, and the column of errors."""
        absent = [column for column in self.inputs.values() if column not in columns]
        if absent:
            raise ArgumentError(f"expected the column {absent[0]}, found {', '.join(map(str, columns)) or 'none'}")
        names = list(self.inputs)
        rows = [dict(zip(names, values)) for values in zip(*(columns[self.inputs[name]] for name in names))]
        results = self.rows.score(rows)
        words = [str(it) if isinstance(it, Error) else None for it in results]
        for place, result in enumerate(results):
            if isinstance(result, Error) and self.errors is None:
                raise type(result)(f"row {place} of {len(rows)}: {result}")
        found: List[Arrays] = [{} if isinstance(it, Error) else it for it in results]
        return {column: [it.get(name) for it in found] for name, column in self.outputs.items()}, words

    def absent(self, name: str) -> Any:
        """What stands for an output that is not there: floats are NaN, other types 0, and an extent is 0 where it is the
        row's own."""
        (tensor,) = (it for it in self.rows.module.outputs if it.name == name)
        dtype = numpy_dtype(BY_NAME[tensor.dtype])
        shape = [it if isinstance(it, int) else 0 for it in self.rows.shape(tensor)]
        return numpy.full(shape, numpy.nan if dtype.kind == "f" else 0, dtype)

    def fixed(self, name: str) -> bool:
        """Do all rows of an output have one shape?"""
        (tensor,) = (it for it in self.rows.module.outputs if it.name == name)
        return all(isinstance(it, int) for it in self.rows.shape(tensor))


def _renamed(kind: str, names: Sequence[str], given: Optional[Mapping[str, str]]) -> Dict[str, str]:
    unknown = set(given or {}) - set(names)
    if unknown:
        raise ArgumentError(f"{kind}: expected names of {', '.join(names)}, found {', '.join(sorted(unknown))}")
    return {name: (given or {}).get(name, name) for name in names}
