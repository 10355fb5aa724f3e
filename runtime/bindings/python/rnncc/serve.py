# SPDX-License-Identifier: MIT
"""Streams as a Ray Serve application: each has its states on one replica, and those that have something to run at the same
time share a run.

    serve.run(rnncc.serve.streams("tagger.so", shards=4))

    PUT    /KEY   a stream begins                       201, or 409 if it is open
    POST   /KEY   a step: an array as numpy.save() writes it, or several as numpy.savez() does, by the inputs' names
                                                        200 and the outputs likewise, or 404 if it is not open
    DELETE /KEY   it ends                               200, or 404

400: what was sent is wrong, in words. A shard that dies begins again without streams, and says 404: no stream goes on from
zeros unknown to its client. Programs of Ray call `handle.step.remote(key, {"x": x})`, and open and close."""
from __future__ import annotations

import asyncio
import importlib
import io
import zipfile
import zlib
from math import prod
from typing import Any, Dict, Mapping, Optional, Tuple

from .batcher import Batcher
from .dtypes import numpy
from .errors import ArgumentError, Error
from .module import load
from .native import Path
from .rows import BY_NAME, Arrays
from .streams import Streams

Answer = Tuple[int, bytes]
HEADER = 1 << 16  # of an array in a file of numpy.save(), at most


class Shard:
    """The streams of one replica."""

    def __init__(self, path: Path, network: Optional[str], threads: int, wait: float, batches: Mapping[str, Any]):
        module = load(path, network, threads=threads)
        self.streams = Streams(module, **batches)
        self.room = sum(HEADER + prod(it.max_shape) * BY_NAME[it.dtype].size for it in module.inputs)  # that a row unpacks to
        self.batcher = Batcher(self.streams.step, self.streams.most, wait)

    async def open(self, key: str) -> None:
        await asyncio.to_thread(self.streams.open, key)  # it may wait for a run

    async def close(self, key: str) -> None:
        await asyncio.to_thread(self.streams.close, key)

    async def step(self, key: str, row: Mapping[str, Any]) -> Arrays:
        result: Arrays = await self.batcher((key, row))
        return result

    async def answer(self, method: str, key: str, body: bytes) -> Answer:
        """A request of HTTP's."""
        if method not in ("PUT", "POST", "DELETE"):
            return 405, b"expected PUT, POST or DELETE"
        if (key in self.streams) == (method == "PUT"):
            return (409, b"the stream is open") if method == "PUT" else (404, b"no such stream is open")
        try:
            if method == "POST":
                return 200, _packed(await self.step(key, _unpacked(body, self.streams.inputs, self.room)))
            await (self.open(key) if method == "PUT" else self.close(key))
        except Error as error:
            return 400, str(error).encode()
        return (201 if method == "PUT" else 200), b""


def _check_unpacked(body: bytes, room: int) -> None:
    """A few bytes that are packed may be gigabytes. zipfile holds members to the size they state, but not those of bzip2 and
    LZMA: of these it unpacks what comes at once."""
    with zipfile.ZipFile(io.BytesIO(body)) as file:
        for it in file.infolist():
            if it.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f"{it.filename} is packed by method {it.compress_type}; expected stored or deflated ones")
        if sum(it.file_size for it in file.infolist()) > room:
            raise ValueError(f"they unpack to more than the {room} of a row")


def _unpacked(body: bytes, names: "list[str]", room: int) -> Arrays:
    try:
        if body.startswith(b"PK"):
            _check_unpacked(body, room)
        found = numpy.load(io.BytesIO(body), allow_pickle=False)
        return dict(found) if isinstance(found, numpy.lib.npyio.NpzFile) else {names[0]: found}
    except Exception as error:  # of many kinds: bytes from anywhere
        raise ArgumentError(f"expected a file of numpy.save() or numpy.savez(), found {len(body)} bytes ({error})") from None


def _packed(arrays: Arrays) -> bytes:
    file = io.BytesIO()
    if len(arrays) == 1:
        numpy.save(file, next(iter(arrays.values())))
    else:
        numpy.savez(file, **arrays)
    return file.getvalue()


class Router:
    """Sends each stream to its shard, by its key alone."""

    def __init__(self, *shards: Any):
        self._shards = shards

    def shard(self, key: str) -> Any:
        return self._shards[zlib.crc32(key.encode()) % len(self._shards)]

    async def open(self, key: str) -> None:
        await self.shard(key).open.remote(key)

    async def close(self, key: str) -> None:
        await self.shard(key).close.remote(key)

    async def step(self, key: str, row: Mapping[str, Any]) -> Arrays:
        result: Arrays = await self.shard(key).step.remote(key, row)
        return result

    async def __call__(self, request: Any) -> Any:
        key = request.url.path.rsplit("/", 1)[-1]
        status, body = await self.shard(key).answer.remote(request.method, key, await request.body())
        kind = "application/octet-stream" if status == 200 and body else "text/plain"
        return importlib.import_module("starlette.responses").Response(body, status, media_type=kind)


def streams(path: Path, network: Optional[str] = None, *, shards: int = 1, cpus: int = 1, wait: float = 0.0,
            ongoing: int = 1000, batch: str = "B", pad: Optional[Mapping[str, str]] = None,
            most: Optional[int] = None) -> Any:
    """The application, for serve.run().

    path: of the module, on every machine. shards: replicas, among which the streams are divided. cpus: of each, and as many
    threads. wait: see rnncc.batcher.Batcher. ongoing: requests that a shard takes at once; further ones wait at their sender.
    batch, pad, most: see rnncc.rows.Rows."""
    serve: Any = importlib.import_module("ray.serve")
    if shards < 1:
        raise ArgumentError(f"shards: expected a number from 1 on, found {shards}")
    batches: Dict[str, Any] = {"batch": batch, "pad": pad, "most": most}
    shard = serve.deployment(Shard, num_replicas=1, max_ongoing_requests=ongoing, ray_actor_options={"num_cpus": cpus})
    bound = [shard.options(name=f"shard{k}").bind(path, network, cpus, wait, batches) for k in range(shards)]
    router = serve.deployment(Router, max_ongoing_requests=ongoing * shards, ray_actor_options={"num_cpus": 0})
    return router.bind(*bound)
