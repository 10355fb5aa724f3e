# SPDX-License-Identifier: MIT
"""Streams as a Ray Serve application on this machine, by HTTP over loopback: 200 at once, each of which hears what it would
hear alone; and a shard that is killed."""
import asyncio
import io
import os
import signal
from pathlib import Path

import numpy
import pytest

from support import machine, streaming
from support.module import PACKAGE, rnncc
from support.streaming import close, expected, sound
from support.time_limit import limit  # noqa: F401

machine.need_package("ray")
STREAMS, SHARDS, PIECE = 200, 2, 10
MARK = "RNNCC_CLUSTER_OF"


@pytest.fixture(scope="module")
def path(compile, tmp_path_factory):
    return str(compile(streaming.listener().write(tmp_path_factory.mktemp("listener"))))


@pytest.fixture(scope="module")
def address(path):
    import ray
    import rnncc.serve
    from ray import serve
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(PACKAGE))
        patch.setenv(MARK, str(os.getpid()))
        patch.setenv("RAY_memory_monitor_refresh_ms", "0")
        ray.init(num_cpus=6, include_dashboard=False, object_store_memory=200 << 20, logging_level="ERROR")
        try:
            serve.start(http_options={"host": "127.0.0.1", "port": 18432})
            serve.run(rnncc.serve.streams(path, shards=SHARDS, wait=0.002), route_prefix="/streams")
            yield "http://127.0.0.1:18432/streams"
        finally:
            serve.shutdown()
            ray.shutdown()


def saved(x):
    file = io.BytesIO()
    numpy.save(file, x)
    return file.getvalue()


async def step(session, url, x):
    async with session.post(url, data=saved(x)) as answer:
        assert answer.status == 200, await answer.text()
        return numpy.load(io.BytesIO(await answer.read()))[:, 0]


def shard_processes():
    """A replica's process is called as its deployment; those of this test have inherited MARK."""
    def is_shard(process):
        try:
            name, marks = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
        except OSError:
            return False
        return b"ray::ServeReplica" in name and b"shard" in name and f"{MARK}={os.getpid()}".encode() in marks

    return [int(process.name) for process in Path("/proc").glob("[0-9]*") if is_shard(process)]


def run(work):
    """`work`, with a session of HTTP's."""
    import aiohttp

    async def with_session():
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=STREAMS)) as session:
            return await work(session)

    return asyncio.run(with_session())


def test_200_streams_at_once_hear_what_each_hears_alone(address, path):
    async def listen(session, key):
        url = f"{address}/{key}"
        assert (await session.put(url)).status == 201
        pieces = [await step(session, url, sound(key)[at:at + PIECE]) for at in range(0, streaming.STEPS, PIECE)]
        assert (await session.delete(url)).status == 200
        return numpy.concatenate(pieces)

    found = run(lambda session: asyncio.gather(*(listen(session, key) for key in range(STREAMS))))
    with rnncc.load(path, threads=1) as module:
        assert all(close(result, expected(module, key)) for key, result in enumerate(found))


def test_a_shard_that_is_killed_knows_no_stream_and_begins_again(address, path):
    begin = sound(1)

    async def listen(session):
        url = f"{address}/a"
        assert (await session.put(url)).status == 201
        await step(session, url, begin[:PIECE])
        killed = shard_processes()
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        status = 500
        while status == 500 or status == 503:
            await asyncio.sleep(0.1)
            async with session.post(url, data=saved(begin)) as answer:
                status = answer.status
        assert status == 404, "a stream that went on from zeros"
        assert (await session.put(url)).status == 201
        return killed, await step(session, url, begin)

    killed, found = run(listen)
    with rnncc.load(path, threads=1) as module:
        assert len(killed) == SHARDS and close(found, expected(module, 1))
