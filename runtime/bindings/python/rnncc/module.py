# SPDX-License-Identifier: MIT
"""A network of a module's file, to be called."""
from __future__ import annotations

import threading
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import native
from .context import Context, Out
from .describe import Dim, Info, State, Tensor, info_of
from .errors import BusyError, ClosedError
from .pool import Pool
from .training import Trainer
from .weights import Weights


class Module:
    """One network of a compiled module, with a model of it.

    `module(x)` runs in a context of the module's own, `default`, which one thread at a time may use; context() makes more,
    for other threads and streams. They share weights and workers. The file stays loaded until nothing uses it."""

    def __init__(self, library: native.Library, network: Optional[str], pool_of: Optional[native.Model],
                 options: Mapping[str, int], pool: Optional[native.Pool] = None):
        table = library.table(network)
        self._library, self._network, self._options = library, network, dict(options)
        self._model: Optional[native.Model] = native.Model(library, table, pool_of, pool, **options)
        self._default: Optional[Context] = None
        self._lock = threading.Lock()  # of making `_default`
        self.info: Info = info_of(table.info.contents)

    @property
    def path(self) -> str:
        """The file."""
        return self._library.path

    @property
    def name(self) -> str:
        """The network's name."""
        return self.info.name

    @property
    def networks(self) -> List[str]:
        """The names of all networks of the file."""
        return self._library.names

    @property
    def dims(self) -> Dict[str, Dim]:
        return {dim.name: dim for dim in self.info.dims}

    @property
    def inputs(self) -> Tuple[Tensor, ...]:
        return self.info.inputs

    @property
    def outputs(self) -> Tuple[Tensor, ...]:
        return self.info.outputs

    @property
    def states(self) -> Tuple[State, ...]:
        return self.info.states

    @property
    def threads(self) -> int:
        """How many the model has, the caller's among them."""
        model = self._open()
        return int(model.api.model_threads(model.handle))

    def _open(self) -> native.Model:
        if self._model is None:
            raise ClosedError(f"{self.path}: the module is closed")
        return self._model

    @property
    def weights(self) -> Weights:
        """Of a module of --weights=mutable: the model's weights by name, to be read and set."""
        return Weights(self._open())

    def context(self) -> Context:
        """A new context: its states are zero."""
        return Context(self._open())

    def trainer(self) -> Trainer:
        """A new context that trains: of a module of `rnncc --train`. All trainers share the model's weights."""
        return Trainer(self._open())

    @property
    def default(self) -> Context:
        """The context in which module(x) runs."""
        if self._default is None:
            with self._lock:
                if self._default is None:
                    self._default = Context(self._open())
        return self._default

    def network(self, name: str) -> "Module":
        """Another network of the file, which shares this one's workers."""
        return Module(self._library, name, self._open(), self._options)

    def __call__(self, *inputs: Any, out: Out = None, **named: Any) -> Any:
        """See Context.__call__()."""
        return (self._default or self.default)(*inputs, out=out, **named)

    def run(self, inputs: Mapping[str, Any], out: Out = None) -> Dict[str, Any]:
        """See Context.run()."""
        return (self._default or self.default).run(inputs, out)

    def close(self) -> None:
        """Its own context is given back at once; model and file are, when no other context, and no Weights,
        is left."""
        if self._default is not None:
            try:
                self._default.close()
            except BusyError:
                raise BusyError(f"{self.path}: the module runs in another thread") from None
        self._model = None

    def __enter__(self) -> "Module":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Tuple[Any, ...]:
        """To another process it goes by its path, without states."""
        return _load_again, (self.path, self._network, self._options)

    def __repr__(self) -> str:
        return f"<rnncc.Module {self.name} of {self.path}{', closed' if self._model is None else ''}>"


def _load_again(path: str, network: Optional[str], options: Mapping[str, int]) -> Module:
    return Module(native.Library(path), network, None, options)


def load(path: native.Path, network: Optional[str] = None, *, threads: int = 0, bind_threads: bool = False,
         steer_threads: bool = True, share_all: bool = False, pool_of: Optional[Module] = None,
         pool: Optional[Pool] = None, waits: bool = False, priority: int = 0,
         check_weights: bool = False) -> Module:
    """Loads a module that rnncc compiled.

    network: which of several; default: the first. threads: 0: as many as the machine allows. pool_of: a module of the same
    file, whose workers it has, too. pool: whose threads it has, of any file. waits: a run waits for threads that another
    run has, in the order of `priority`, instead of going on with its own thread alone. check_weights: UnsupportedError where
    they are not those that were compiled. The others: see rnncc_options of rnncc.h."""
    options = {"threads": threads, "bind_threads": int(bind_threads), "steer_threads": 0 if steer_threads else -1,
               "share_all": int(share_all), "waits": int(waits), "priority": priority,
               "check_weights": int(check_weights)}
    return Module(native.Library(path), network, pool_of._open() if pool_of else None, options,
                  pool._pool if pool else None)
