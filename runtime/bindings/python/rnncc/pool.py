# SPDX-License-Identifier: MIT
"""Threads that modules share, those of different files, too."""
from __future__ import annotations

from typing import Any, Callable, List, Optional

from . import native


class Pool:
    """Threads for the modules that `rnncc.load(..., pool=it)` loads.

    `of`: any module's file; the threads run its code, so it stays loaded as long as they live. threads: with the caller of
    a run; 0: as many as the machine allows. thread_start: called on each worker when it starts, with its number from 1
    on, such as lambda number: os.sched_setaffinity(0, {number}); what it raises, Pool() raises. The threads end when
    neither the pool nor a module that has it is held any more."""

    def __init__(self, of: native.Path, *, threads: int = 0, bind_threads: bool = False, steer_threads: bool = True,
                 thread_start: Optional[Callable[[int], Any]] = None):
        errors: List[BaseException] = []

        def started(number: int) -> None:
            try:
                if thread_start is not None:
                    thread_start(number)
            except BaseException as error:  # in C there is no way for it
                errors.append(error)

        self._pool = native.Pool(native.Library(of), started if thread_start else None, threads=threads,
                                 bind_threads=int(bind_threads), steer_threads=0 if steer_threads else -1)
        if errors:
            raise errors[0]

    @property
    def threads(self) -> int:
        """How many there are, the caller of a run among them."""
        return int(self._pool.struct.threads)

    @property
    def waiting(self) -> int:
        """How many runs wait for the threads now."""
        return int(self._pool.struct.waiting(self._pool.handle))

    def __repr__(self) -> str:
        return f"<rnncc.Pool of {self.threads} threads>"
