# SPDX-License-Identifier: MIT
"""Many streams through one context of a network with states: each has a slot of its own for them, and those that have
something to run at the same time share a run.

    streams = rnncc.Streams(rnncc.load("tagger.so"))
    streams.open("alice"), streams.open("bob")
    results = streams.step([("alice", {"x": a}), ("bob", {"x": b})])

The slots are in Python, as many as there are streams; of the context's own, a run has one for each row."""
from __future__ import annotations

import threading
from typing import Any, Dict, Hashable, List, Mapping, Optional, Sequence, Tuple

from .describe import State
from .dtypes import numpy, numpy_dtype
from .errors import ArgumentError, ShapeError
from .module import Module
from .rows import BY_NAME, Arrays, Result, Rows

Request = Tuple[Hashable, Mapping[str, Any]]
WHOLE_FROM = 4  # rows of a run, by which one call for all slots takes less than a call for each


class Streams:
    """Streams by their keys. Threads take turns.

    batch, pad, most: as rnncc.rows.Rows has them, which also says which rows share a run."""

    def __init__(self, module: Module, *, batch: str = "B", pad: Optional[Mapping[str, str]] = None,
                 most: Optional[int] = None):
        self._rows = Rows(module, batch=batch, pad=pad, most=most)
        self._context, self._kinds = self._rows.context, module.states
        self._states: Dict[Hashable, Arrays] = {}
        self._lock = threading.Lock()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._states

    def __len__(self) -> int:
        return len(self._states)

    @property
    def most(self) -> int:
        """How many streams share a run at most."""
        return self._rows.most

    @property
    def inputs(self) -> List[str]:
        """What a row has."""
        return [it.name for it in self._rows.inputs]

    def keys(self) -> List[Hashable]:
        return list(self._states)

    # ---- streams ----

    def open(self, key: Hashable, states: Optional[Mapping[str, Any]] = None) -> None:
        """A stream begins: with zeros, or with the states of another one, as state() returns them."""
        with self._lock:
            if key in self._states:
                raise ArgumentError(f"expected a new stream, found {key!r}, which is open")
            begin = {it.name: self._zeros(it) for it in self._kinds}
            if states is not None:
                self._check(states)
                begin.update({name: numpy.array(value) for name, value in states.items()})
            self._states[key] = begin

    def close(self, key: Hashable) -> None:
        with self._lock:
            self._of(key)
            del self._states[key]

    def state(self, key: Hashable) -> Arrays:
        """A copy of the stream's states, by their names: they go on wherever a module has such states."""
        with self._lock:
            return {name: value.copy() for name, value in self._of(key).items()}

    def _of(self, key: Hashable) -> Arrays:
        if key not in self._states:
            raise ArgumentError(f"expected an open stream, found {key!r}")
        return self._states[key]

    def _shape(self, state: State) -> List[int]:
        return _slots(state, 1) if self._rows.batched else list(state.max_shape)

    def _zeros(self, state: State) -> Any:
        return numpy.zeros(self._shape(state), numpy_dtype(BY_NAME[state.dtype]))

    def _check(self, states: Mapping[str, Any]) -> None:
        due = {it.name: (it.dtype, tuple(self._shape(it))) for it in self._kinds}
        found = {name: (getattr(value, "dtype", None), getattr(value, "shape", None)) for name, value in states.items()}
        if {name: (numpy_dtype(BY_NAME[dtype]), shape) for name, (dtype, shape) in due.items()} != found:
            raise ShapeError(f"states: expected {_words(due)}, found {_words(found)}")

    # ---- runs ----

    def step(self, requests: Sequence[Request]) -> List[Result]:
        """A row for each request, in their order: arrays by the outputs' names, or the exception that says what is wrong.
        A stream that is asked for twice takes its second row after its first."""
        results: List[Any] = [None] * len(requests)
        with self._lock:
            for turn in self._turns(requests):
                for place, result in zip(turn, self._turn([requests[place] for place in turn])):
                    results[place] = result
            for place, (key, _) in enumerate(requests):
                if key not in self._states:
                    results[place] = ArgumentError(f"expected an open stream, found {key!r}")
        return results

    def _turns(self, requests: Sequence[Request]) -> List[List[int]]:
        """Places of requests, in each turn one of a stream."""
        turns: List[List[int]] = []
        seen: Dict[Hashable, int] = {}
        for place, (key, _) in enumerate(requests):
            if key in self._states:
                turn = seen[key] = seen.get(key, -1) + 1
                turns.extend([] for _ in range(turn + 1 - len(turns)))
                turns[turn].append(place)
        return turns

    def _turn(self, requests: Sequence[Request]) -> List[Result]:
        return self._rows.score_with(
            [row for _, row in requests], lambda rows: self._enter([requests[row.place][0] for row in rows]),
            lambda rows: self._leave([requests[row.place][0] for row in rows]))

    def _enter(self, keys: Sequence[Hashable]) -> None:
        """The states of a run's rows, in the context's slots."""
        for state in self._kinds:
            values = [self._states[key][state.name] for key in keys]
            if not self._rows.batched:
                self._context.set_state(state.name, values[0])
            elif len(keys) < WHOLE_FROM:
                for slot, value in enumerate(values):
                    self._context.set_state(state.name, value, slot=slot)
            else:
                rest = numpy.zeros(_slots(state, state.slots - len(keys)), values[0].dtype)
                self._context.set_state(state.name, numpy.concatenate([*values, rest], state.batch_axis))

    def _leave(self, keys: Sequence[Hashable]) -> None:
        for state in self._kinds:
            if not self._rows.batched:
                self._states[keys[0]][state.name] = self._context.state(state.name)
            elif len(keys) < WHOLE_FROM:
                for slot, key in enumerate(keys):
                    self._states[key][state.name] = self._context.state(state.name, slot=slot)
            else:
                whole = self._context.state(state.name)
                for slot, key in enumerate(keys):
                    self._states[key][state.name] = numpy.take(whole, [slot], state.batch_axis)


def _slots(state: State, count: int) -> List[int]:
    """The shape of so many slots."""
    shape = list(state.max_shape)
    if state.batch_axis is not None:
        shape[state.batch_axis] = count
    return shape


def _words(states: Mapping[str, Tuple[Any, Any]]) -> str:
    return ", ".join(f"{name} of {dtype}{list(shape or ())}" for name, (dtype, shape) in states.items()) or "none"
