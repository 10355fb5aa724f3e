# SPDX-License-Identifier: MIT
"""A context: one stream of runs, with its states and working memory."""
from __future__ import annotations

import contextlib
import ctypes
import threading
from functools import partial
from typing import Any, Dict, Iterator, List, Mapping, NoReturn, Optional, Sequence, Tuple, Union

from . import abi, arrays, native
from .again import Run, again, with_torch
from .describe import ProfileEntry, Slot, profile_of, slot as slot_of
from .dtypes import numpy, numpy_dtype
from .errors import ArgumentError, BusyError, ClosedError, ShapeError, of_status

Out = Union[Any, Sequence[Any], Mapping[str, Any], None]


class Context:
    """Runs of one stream. One thread at a time may use it: another one gets a BusyError.

        y = context(x)                       # arrays in the order of the inputs, or by name
        results = context.run({"x": x})      # by name
    """

    def __init__(self, model: native.Model):
        info = model.api.info.contents
        self._api = model.api
        self._memory = native.Context(model)
        self._lock = threading.Lock()
        self._closed = False
        self._inputs = [slot_of("input", it) for it in abi.inputs(info)]
        self._outputs = [slot_of("output", it) for it in abi.outputs(info)]
        self._input_names, self._output_names = ([slot.name for slot in slots] for slots in (self._inputs, self._outputs))
        self._fixed = all(slot.fixed for slot in self._outputs)
        self._states = [slot_of("state", it.tensor.contents) for it in abi.states(info)]
        self._dims = [dim.max for dim in abi.dims(info)]
        self._batches = [(it.batch_axis, it.slots) for it in abi.states(info)]
        self._prepare()

    def _prepare(self) -> None:
        """What all runs share: the arrays of tensors, and the arguments of the call."""
        self._in = abi.tensors([it.dtype.code for it in self._inputs])
        self._out = abi.tensors([it.dtype.code for it in self._outputs])
        self._call = partial(self._api.run, self._memory.handle, ctypes.addressof(self._in), len(self._inputs),
                             ctypes.addressof(self._out), len(self._outputs))
        self._again: Optional[Run] = None  # after a run on NumPy's arrays

    # ---- who uses it ----

    def _refuse(self) -> NoReturn:
        if self._closed:
            raise ClosedError("the context is closed")
        raise BusyError("the context is in use by another thread, or was when this process was forked; each stream "
                        "needs one of its own")

    @contextlib.contextmanager
    def _use(self) -> Iterator[None]:
        if not self._lock.acquire(False):
            self._refuse()
        try:
            yield
        finally:
            self._lock.release()

    def _check(self, status: int) -> None:
        if status:
            raise of_status(status, self._api.last_error(self._memory.handle).decode("utf-8", "replace"))

    def close(self) -> None:
        """Gives its memory back. It is not for runs any more."""
        if self._closed:
            return
        if not self._lock.acquire(False):  # from now on for ever
            self._refuse()
        self._closed = True
        self._memory.destroy()

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a context cannot be pickled: its process has its memory; send its states, by state()")

    # ---- runs ----

    def __call__(self, *inputs: Any, out: Out = None, **named: Any) -> Any:
        """Runs on arrays in the order of the inputs, or by name. Returns the output's array, or a tuple of all in their
        order.

        Arrays may be NumPy's, of any kind that has DLPack (PyTorch's), or buffers. None is copied unless it is not
        row-major or not aligned. Results are PyTorch's where an input is, else NumPy's. `out`: arrays that the results are
        written to, one or a sequence or by name, of at least their size; what is returned are these, or of larger ones the
        leading elements."""
        if not self._lock.acquire(False):
            self._refuse()
        try:
            results = self._again(inputs, out) if self._again and not named else None
            if results is None:
                results = self._run_on(self._in_order(inputs, named), self._outs(out))
        finally:
            self._lock.release()
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, inputs: Mapping[str, Any], out: Out = None) -> Dict[str, Any]:
        """The same by name: results are, too."""
        if not self._lock.acquire(False):
            self._refuse()
        try:
            given, outs = self._in_order((), inputs), self._outs(out)
            results = self._again(given, outs) if self._again else None
            if results is None:
                results = self._run_on(given, outs)
        finally:
            self._lock.release()
        return dict(zip(self._output_names, results))

    def _run_on(self, inputs: List[Any], outs: Optional[List[Any]]) -> List[Any]:
        self._again = None
        views = self._views(inputs)
        for tensor, slot, view in zip(self._in, self._inputs, views):
            set_tensor(tensor, slot, view)
        shapes = self._room([view.shape for view in views])
        torch = arrays.torch_of(inputs) if outs is None else None
        results = outs or [arrays.empty(slot, shape, torch) for slot, shape in zip(self._outputs, shapes)]
        rooms = [arrays.view(slot, array, writable=True) for slot, array in zip(self._outputs, results)]
        for tensor, slot, view in zip(self._out, self._outputs, rooms):
            set_tensor(tensor, slot, view)
        self._check(self._call())
        self._remember(inputs, views, shapes)
        return self._trimmed(results, [view.shape for view in rooms], outs is not None)

    def _views(self, inputs: List[Any]) -> List[arrays.View]:
        return [arrays.view(slot, array) for slot, array in zip(self._inputs, inputs)]

    def _remember(self, inputs: List[Any], _views: List[arrays.View], shapes: List[arrays.Shape]) -> None:
        if numpy is None:
            return
        torch = arrays.torch_of(inputs)
        as_numpy = arrays.as_numpy(inputs, torch)
        if as_numpy is None or (torch and not (self._fixed and arrays.numpy_has(self._outputs))):
            return
        ins = [(tensor, array.dtype, array.shape) for tensor, array in zip(self._in, as_numpy)]
        outs = [(tensor, numpy_dtype(slot.dtype), shape) for tensor, slot, shape in zip(self._out, self._outputs, shapes)]
        run = again(self._call, ins, outs)
        if self._fixed:
            self._again = with_torch(run, torch) if torch else run
            return

        def trimmed(inputs: Sequence[Any], out: Out) -> Optional[Sequence[Any]]:
            results = run(inputs, out)
            return None if results is None else self._trimmed(results, shapes, out is not None)

        self._again = trimmed

    def _room(self, shapes: Sequence[arrays.Shape]) -> List[arrays.Shape]:
        """What the outputs need: the run's shapes, but where the data decide them. The run checks the inputs' shapes, so
        that extents above their bounds ask for no memory here."""
        dims: Dict[int, int] = dict(enumerate(self._dims))
        for slot, shape in zip(self._inputs, shapes):
            dims.update((dim, min(extent, self._dims[dim])) for dim, extent in zip(slot.dim, shape) if dim >= 0)
        if not self._fixed:
            found = abi.output_shapes(self._api, self._memory.handle, list(dims.values()),
                                      [len(slot.shape) for slot in self._outputs])
            if found:
                return found
        return [tuple(dims[dim] if dim >= 0 else most for dim, most in zip(slot.dim, slot.max_shape))
                for slot in self._outputs]

    def _trimmed(self, results: Sequence[Any], rooms: Sequence[arrays.Shape], given: bool) -> List[Any]:
        """The results in the run's shapes; of those that the caller gave, the leading elements."""
        trimmed = []
        for slot, tensor, result, room in zip(self._outputs, self._out, results, rooms):
            shape = tuple(tensor.shape[:tensor.rank])
            if room != shape:
                result = arrays.leading(slot, result, shape)
                result = result if given else arrays.owned(result)
            trimmed.append(result)
        return trimmed

    # ---- arguments ----

    def _in_order(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> List[Any]:
        names = self._input_names
        if not inputs and len(named) == len(names):
            try:
                return [named[name] for name in names]
            except KeyError:
                pass
        found = dict(zip(names, inputs))
        twice = [name for name in named if name in found]
        unknown = [name for name in named if name not in names]
        if len(inputs) > len(names) or unknown or twice or len(found) + len(named) != len(names):
            given = [f"{len(inputs)} in order"] * bool(inputs) + list(map(str, named))
            raise ArgumentError(f"expected the inputs {', '.join(names) or 'none'}, found {', '.join(given) or 'none'}")
        found.update(named)
        return [found[name] for name in names]

    def _outs(self, out: Out) -> Optional[List[Any]]:
        if out is None:
            return None
        names = self._output_names
        if isinstance(out, Mapping):
            if set(out) != set(names):
                raise ArgumentError(f"out: expected {', '.join(names)}, found {', '.join(map(str, out)) or 'none'}")
            return [out[name] for name in names]
        given = list(out) if isinstance(out, (list, tuple)) else [out]
        if len(given) != len(names):
            raise ArgumentError(f"out: expected {len(names)} arrays ({', '.join(names)}), found {len(given)}")
        return given

    # ---- states ----

    def _state(self, name: str) -> int:
        names = [slot.name for slot in self._states]
        if name not in names:
            raise ArgumentError(f"the model has no state {name}; it has {', '.join(names) or 'none'}")
        return names.index(name)

    def state(self, name: str, slot: Optional[int] = None) -> Any:
        """A copy of a state: of all slots, or of one, whose batch axis is then of length 1."""
        with self._use():
            index = self._state(name)
            array = arrays.empty(self._states[index], self._state_shape(index, slot))
            view = arrays.view(self._states[index], array, writable=True)
            self._check(self._api.state_get(self._memory.handle, index, _number(slot), view.address, view.bytes))
            return array

    def set_state(self, name: str, value: Any, slot: Optional[int] = None) -> None:
        """Of all slots, or of one."""
        with self._use():
            index = self._state(name)
            view = arrays.view(self._states[index], value)
            due = self._state_shape(index, slot)
            if view.shape != due:
                raise ShapeError(f"{self._states[index].label}: expected the shape {due}, found {view.shape}")
            self._check(self._api.state_set(self._memory.handle, index, _number(slot), view.address, view.bytes))

    def _state_shape(self, index: int, slot: Optional[int]) -> arrays.Shape:
        shape = list(self._states[index].max_shape)
        axis, _slots = self._batches[index]
        if _number(slot) < 0 and slot is not None:
            raise ArgumentError(f"{self._states[index].label}: expected a slot from 0 on, found {slot}")
        if slot is not None and axis >= 0:
            shape[axis] = 1
        return tuple(shape)

    def reset(self, slot: Optional[int] = None) -> None:
        """States of all slots, or of one, are zero again."""
        with self._use():
            self._check(self._api.state_reset(self._memory.handle, _number(slot)))

    # ---- the rest ----

    def warmup(self) -> None:
        """Makes the first run as fast as the next."""
        with self._use():
            self._check(self._api.warmup(self._memory.handle))

    @contextlib.contextmanager
    def profile(self) -> Iterator[List[ProfileEntry]]:
        """A list that has an entry for each kernel at the end of the block, over the runs in it."""
        rows: List[ProfileEntry] = []
        self._profile(True)
        try:
            yield rows
        finally:
            rows.extend(self._profile(False))

    def _profile(self, on: bool) -> List[ProfileEntry]:
        with self._use():
            status, entries = abi.profile(self._api, self._memory.handle, on)
            self._check(status)
            return profile_of(entries)


def _number(slot: Optional[int]) -> int:
    """The ABI's; -1: of all slots."""
    return -1 if slot is None else abi.int32("slot", slot)


def set_tensor(tensor: Any, slot: Slot, view: arrays.View) -> None:
    if len(view.shape) > abi.MAX_RANK:
        raise ShapeError(f"{slot.label}: expected rank {len(slot.shape)}, found {len(view.shape)}")
    tensor.data, tensor.bytes, tensor.rank = view.address, view.bytes, len(view.shape)
    tensor.shape[:len(view.shape)] = view.shape
