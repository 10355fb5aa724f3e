# SPDX-License-Identifier: MIT
"""The weights of a module that was compiled with --weights=mutable, by their names."""
from __future__ import annotations

import ctypes
from typing import Any, Iterator, List, Mapping, MutableMapping, Tuple

from . import abi, native
from .arrays import View, _address, empty, view
from .describe import Slot, slot
from .errors import ArgumentError, ShapeError, UnsupportedError, of_status

ROOM = 4096  # of a message


class Weights(MutableMapping[str, Any]):
    """`weights[name] = array` sets one, `weights.update({...})` all of these at once: a run has none of them, or all.

    Runs of other threads go on meanwhile, with the weights that they began with. `weights[name]` is a copy."""

    def __init__(self, model: native.Model):
        self._model = model
        info = model.api.info.contents
        self._slots = {it.name: it for it in (slot("weight", one) for one in abi.weights(info))}

    def _api(self) -> Any:
        if not self._slots:
            raise UnsupportedError(f"{self._model.library.path}: the module's weights are constant; compile it with "
                                   "--weights=mutable")
        return self._model.api

    def _slot(self, name: str) -> Slot:
        self._api()
        if name not in self._slots:
            raise ArgumentError(f"no weight {name}; expected one of: {', '.join(self._slots)}")
        return self._slots[name]

    def _view(self, name: str, array: Any) -> View:
        found = view(self._slot(name), array)
        if found.shape != self._slots[name].shape:
            raise ShapeError(f"weight {name}: expected the shape {list(self._slots[name].shape)}, found "
                             f"{list(found.shape)}")
        return found

    def shape(self, name: str) -> Tuple[int, ...]:
        return self._slot(name).shape

    def dtype(self, name: str) -> str:
        return self._slot(name).dtype.name

    def __getitem__(self, name: str) -> Any:
        at = self._slot(name)
        array = empty(at, at.shape)
        address = array.ctypes.data if hasattr(array, "ctypes") else _address(array)
        why = ctypes.create_string_buffer(ROOM)
        status = self._api().weights_get(self._model.handle, name.encode(), address, array.nbytes, why, ROOM)
        if status:
            raise of_status(status, why.value.decode("utf-8", "replace"))
        return array

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default

    def __setitem__(self, name: str, array: Any) -> None:
        self._set({name: array})

    def update(self, arrays: Any = (), /, **named: Any) -> None:
        self._set({**dict(arrays), **named})

    def _set(self, arrays: Mapping[str, Any]) -> None:
        api = self._api()
        views: List[View] = [self._view(name, array) for name, array in arrays.items()]
        given = (abi.Weight * len(views))()
        for one, name, found in zip(given, arrays, views):
            one.struct_size, one.dtype = ctypes.sizeof(abi.Weight), self._slots[name].dtype.code
            one.name, one.data, one.bytes = name.encode(), found.address, found.bytes
        why = ctypes.create_string_buffer(ROOM)
        status = api.weights_set(self._model.handle, given, len(views), why, ROOM)
        if status:
            raise of_status(status, why.value.decode("utf-8", "replace"))

    def __delitem__(self, name: str) -> None:
        raise ArgumentError(f"weight {name}: a network needs all its weights")

    def __iter__(self) -> Iterator[str]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, name: object) -> bool:
        return name in self._slots

    def __repr__(self) -> str:
        return f"<rnncc.Weights {', '.join(self._slots) or 'constant'}>"
