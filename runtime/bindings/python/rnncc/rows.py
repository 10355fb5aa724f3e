# SPDX-License-Identifier: MIT
"""Rows, each with its own extents, as runs of a network that takes batches: which rows go into one run, and which part of
the results is whose.

A row is a sample: for each input an array without the batch axis. Rows of equal extents share a run; so do rows whose
lengths differ, if the model has an input of each row's own length (`pad`). They are sorted by their extents, so that
little is padded, and cut where the network's batch ends."""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from .describe import Dim, State, Tensor
from .dtypes import DTYPES, numpy, numpy_dtype
from .errors import ArgumentError, BoundError, DTypeError, Error, ShapeError
from .module import Module

Arrays = Dict[str, Any]
Result = Union[Arrays, Error]
BY_NAME = {dtype.name: dtype for dtype in DTYPES}


class Row(NamedTuple):
    place: int  # among the rows of the call
    arrays: Arrays
    extents: Dict[str, int]  # of the dims that a run's rows may differ in, or must share


Hook = Callable[[Sequence[Row]], None]


def array_of(tensor: Tensor, value: Any, shape: Sequence[Any]) -> Any:
    """The value as an array of the input's type. Numbers of Python's are converted where none is changed, bytes are the
    elements themselves, in this shape, and an array of another type is refused, as a call refuses it."""
    due = numpy_dtype(BY_NAME[tensor.dtype])
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _of_bytes(tensor, value, shape)
    if isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype != object:
        if value.dtype != due:
            raise DTypeError(f"input {tensor.name}: expected {tensor.dtype}, found {value.dtype}")
        return numpy.asarray(value)
    if _has_parts(value):
        if not shape:
            raise ShapeError(f"input {tensor.name}: expected a number, found a {type(value).__name__} with more axes than a row has")
        return _of_parts(tensor, [array_of(tensor, part, shape[1:]) for part in value])
    try:
        if numpy.array(value).dtype.kind in _kinds(tensor.dtype):
            return numpy.array(value, due)
    except (TypeError, ValueError, OverflowError):
        pass
    raise DTypeError(f"input {tensor.name}: expected an array of {tensor.dtype}, found {_brief(value)}")


def _has_parts(value: Any) -> bool:
    """Is it a list of lists, or the like?"""
    is_list = isinstance(value, (list, tuple)) or isinstance(value, numpy.ndarray) and value.ndim > 0
    return is_list and len(value) > 0 and hasattr(value[0], "__len__")


def _kinds(dtype: str) -> str:
    """NumPy's kinds of numbers that the type takes: integers take no fractions."""
    return "b" if dtype == "bool" else "fiub" if dtype.startswith(("f", "bf")) else "iub"


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{type(value).__name__} {text[:40]}..."


def _of_parts(tensor: Tensor, parts: Sequence[Any]) -> Any:
    try:
        return numpy.stack(parts)
    except ValueError:
        raise ShapeError(f"input {tensor.name}: expected parts of one shape, found "
                         f"{', '.join(sorted({str(part.shape) for part in parts}))}") from None


def _of_bytes(tensor: Tensor, value: Any, shape: Sequence[Any]) -> Any:
    """Bytes have no shape: one extent may follow from their number."""
    due = numpy_dtype(BY_NAME[tensor.dtype])
    memory = memoryview(value).cast("B")
    if memory.nbytes % due.itemsize:
        raise ShapeError(f"input {tensor.name}: {memory.nbytes} bytes are no whole elements of {tensor.dtype}")
    flat = numpy.frombuffer(memory, due)
    try:
        return flat.reshape([extent if isinstance(extent, int) else -1 for extent in shape])
    except ValueError:
        raise ShapeError(f"input {tensor.name}: {flat.size} elements have no shape {_words(shape)}") from None


def _words(shape: Sequence[Any]) -> str:
    return f"({', '.join('*' if it in (None, -1) else str(it) for it in shape)})"


class Rows:
    """Runs rows through a module's own context.

    batch: the dim that counts samples; a network whose inputs, outputs and states do not all have it takes a row a run, of
    whole inputs. pad: dim -> the input that takes each row's own extent of it, such as {"T": "sequence_lens"}: rows are
    padded with zeros to the longest of their run, and results that have the dim are cut to the row's own. most: how
    many rows share a run; default: as many as the module takes."""

    def __init__(self, module: Module, *, batch: str = "B", pad: Optional[Mapping[str, str]] = None,
                 most: Optional[int] = None):
        if numpy is None:
            raise ArgumentError("rows: expected NumPy, found none")
        self.module, self.context = module, module.context()
        self._pad = dict(pad or {})
        names = [it.name for it in module.inputs]
        for dim, name in self._pad.items():
            if dim not in module.dims or name not in names:
                raise ArgumentError(f"pad: expected a dim ({', '.join(module.dims)}) and an input ({', '.join(names)}), found "
                                    f"{dim!r}: {name!r}")
        self.batched = batch in module.dims and all(
            batch in it.shape for it in (*module.inputs, *module.outputs)) and all(
            it.batch_axis is not None for it in module.states)
        self._batch = batch
        count = module.dims[batch] if self.batched else Dim(batch, 1, 1, 1, 1)
        if most is not None and most < 1:
            raise ArgumentError(f"most: expected a number of rows from 1 on, found {most}")
        self._count, self.most = count, min(most or count.max, count.max)
        self.inputs = [it for it in module.inputs if it.name not in self._pad.values()]
        if self._pad and not self.batched:
            raise ArgumentError(f"pad: the network has no batch {batch}: each row is a run of its own")

    def axis(self, tensor: Tensor) -> Optional[int]:
        """The batch axis of an input, output or state."""
        if isinstance(tensor, State):
            return tensor.batch_axis
        return tensor.shape.index(self._batch) if self.batched else None

    def shape(self, tensor: Tensor) -> List[Any]:
        """A row's: without the batch axis."""
        shape = list(tensor.shape)
        axis = self.axis(tensor)
        return shape if axis is None else shape[:axis] + shape[axis + 1:]

    # ---- which rows go together ----

    def row(self, place: int, values: Mapping[str, Any]) -> Row:
        """A row that the network takes, or an exception."""
        names = [it.name for it in self.inputs]
        if set(values) != set(names):
            raise ArgumentError(f"expected the inputs {', '.join(names)}, found {', '.join(map(str, values)) or 'none'}")
        arrays: Arrays = {}
        extents: Dict[str, int] = {}
        for tensor in self.inputs:
            due = self.shape(tensor)
            array = arrays[tensor.name] = array_of(tensor, values[tensor.name], due)
            if array.ndim != len(due) or any(isinstance(it, int) and it != found for it, found in zip(due, array.shape)):
                raise ShapeError(f"input {tensor.name}: expected a row of shape {_words(due)}, found {array.shape}")
            for name, extent in zip(due, array.shape):
                if isinstance(name, str) and extents.setdefault(name, extent) != extent:
                    raise ShapeError(f"input {tensor.name}: {name} is {extent}, and {extents[name]} in another input")
        for name, extent in extents.items():
            dim = self.module.dims[name]
            least = 1 if name in self._pad else dim.min
            if not least <= extent <= dim.max:
                raise BoundError(f"{name} is {extent}, but was compiled for {dim.min} to {dim.max}")
        return Row(place, arrays, extents)

    def runs(self, rows: Sequence[Row]) -> Iterator[List[Row]]:
        """The rows of each run."""
        run: List[Row] = []
        for row in sorted(rows, key=self._order):
            if run and (len(run) == self.most or self._shared(row) != self._shared(run[0])):
                yield run
                run = []
            run.append(row)
        if run:
            yield run

    def _shared(self, row: Row) -> List[Tuple[str, int]]:
        return sorted((name, extent) for name, extent in row.extents.items() if name not in self._pad)

    def _order(self, row: Row) -> Tuple[Any, Any]:
        return self._shared(row), [row.extents.get(name, 0) for name in self._pad]

    # ---- one run ----

    def run(self, rows: Sequence[Row]) -> List[Arrays]:
        """Results of rows that runs() put together."""
        if not self.batched:
            return [self.context.run(rows[0].arrays)]
        full = list(rows) + [rows[-1]] * (self._rounded(self._count, len(rows)) - len(rows))
        extents = {name: self._rounded(self.module.dims[name], max(row.extents[name] for row in rows)) if name in self._pad
                   else extent for name, extent in rows[0].extents.items()}
        feeds = {it.name: self._stacked(it, full, extents) for it in self.inputs}
        for dim, name in self._pad.items():
            (tensor,) = (it for it in self.module.inputs if it.name == name)
            feeds[name] = numpy.array([row.extents[dim] for row in full], numpy_dtype(BY_NAME[tensor.dtype]))
        found = self.context.run(feeds)
        return [{it.name: self._own(it, found[it.name], place, row) for it in self.module.outputs}
                for place, row in enumerate(rows)]

    @staticmethod
    def _rounded(dim: Dim, extent: int) -> int:
        return max(dim.min, -(-extent // dim.multiple) * dim.multiple)

    def _stacked(self, tensor: Tensor, rows: Sequence[Row], extents: Mapping[str, int]) -> Any:
        shape = [extents[it] if isinstance(it, str) else it for it in self.shape(tensor)]
        axis = self.axis(tensor) or 0
        stacked = numpy.zeros((*shape[:axis], len(rows), *shape[axis:]), rows[0].arrays[tensor.name].dtype)
        by_row = numpy.moveaxis(stacked, axis, 0)
        for place, row in enumerate(rows):
            array = row.arrays[tensor.name]
            by_row[(place, *map(slice, array.shape))] = array
        return stacked

    def _own(self, tensor: Tensor, found: Any, place: int, row: Row) -> Any:
        """A copy: a view would keep the results of the whole run."""
        part = numpy.moveaxis(found, self.axis(tensor) or 0, 0)[place]
        return part[tuple(slice(row.extents[name]) if name in self._pad and name in row.extents else slice(None)
                          for name in self.shape(tensor))].copy()

    # ---- many ----

    def score(self, rows: Sequence[Mapping[str, Any]]) -> List[Result]:
        """A result for each row, in their order: arrays by the outputs' names, or the exception that says what is wrong
        with it. Each run begins with states that are zero."""
        return self.score_with(rows, lambda _: self.context.reset() if self.module.states else None, lambda _: None)

    def score_with(self, values: Sequence[Mapping[str, Any]], before: Hook, after: Hook) -> List[Result]:
        """`before` and `after` each run: where one fails, its rows are run one by one."""
        results: List[Any] = [None] * len(values)
        rows: List[Row] = []
        for place, value in enumerate(values):
            try:
                rows.append(self.row(place, value))
            except Error as error:
                results[place] = error
            except (TypeError, ValueError) as error:  # of an object that is no row at all
                results[place] = ArgumentError(f"expected a row, found {type(value).__name__}: {error}")
        for run in self.runs(rows):
            for row, result in zip(run, self._run_with(run, before, after)):
                results[row.place] = result
        return results

    def _run_with(self, run: Sequence[Row], before: Hook, after: Hook) -> List[Result]:
        try:
            before(run)
            found: List[Result] = list(self.run(run))
            after(run)
            return found
        except Error as error:
            if len(run) == 1:
                return [error]
            return [result for row in run for result in self._run_with([row], before, after)]
