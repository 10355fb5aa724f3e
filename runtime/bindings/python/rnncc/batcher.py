# SPDX-License-Identifier: MIT
"""Requests that wait at the same time become one call, in an asyncio program.

    from rnncc.batcher import Batcher
    batcher = Batcher(streams.step, most=64)
    result = await batcher(("alice", {"x": x}))"""
from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, List, Optional, Sequence, Tuple

Function = Callable[[List[Any]], Sequence[Any]]


class Batcher:
    """Of a function that takes a list of requests and returns as many results; those that are exceptions are raised where
    they were asked for. It runs in a thread of its own, one call at a time; what comes meanwhile is the next call.

    most: requests of a call. wait: seconds for which a call that is not full waits for more: without load it is what
    each request takes longer."""

    def __init__(self, function: Function, most: int, wait: float = 0.0):
        self._function, self._most, self._wait = function, most, wait
        self._waiting: List[Tuple[Any, "asyncio.Future[Any]"]] = []
        self._thread = ThreadPoolExecutor(1, "rnncc-batcher")
        self._task: Optional["asyncio.Task[None]"] = None
        self.calls = self.requests = 0  # so far; a mean of requests to a call is what sharing them brings

    async def __call__(self, request: Any) -> Any:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._waiting.append((request, future))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._drain())
        return await future

    async def _drain(self) -> None:
        while self._waiting:
            if self._wait and len(self._waiting) < self._most:
                await asyncio.sleep(self._wait)
            asked = [it for it in self._waiting if not it[1].done()]  # the others were cancelled
            taken, self._waiting = asked[:self._most], asked[self._most:]
            if taken:
                await self._call(taken)

    async def _call(self, taken: Sequence[Tuple[Any, "asyncio.Future[Any]"]]) -> None:
        results: Sequence[Any]
        try:
            results = await asyncio.get_running_loop().run_in_executor(
                self._thread, self._function, [request for request, _ in taken])
        except Exception as error:  # of the function: those who asked are told
            results = [error] * len(taken)
        self.calls, self.requests = self.calls + 1, self.requests + len(taken)
        for (_, future), result in zip(taken, results):
            if future.done():
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
