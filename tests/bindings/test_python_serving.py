# SPDX-License-Identifier: MIT
"""What serves streams, without Ray, which tests/distributed has: requests that wait together share a call, and each is
answered by itself."""
import asyncio
import io
import threading
import zipfile

import numpy
import pytest

from support import streaming
from support.module import rnncc
from support.streaming import close, expected, sound

from rnncc.batcher import Batcher
from rnncc.serve import Router, Shard

STREAMS, PIECE = 200, 10


@pytest.fixture(scope="module")
def path(compile, tmp_path_factory):
    return compile(streaming.listener().write(tmp_path_factory.mktemp("listener")))


# ---- batcher ----

def test_what_waits_together_is_one_call_and_each_has_its_own_result():
    called, go = [], threading.Event()

    def function(requests):
        called.append(list(requests))
        go.wait(10)
        return [2 * it if it != 3 else rnncc.DataError("three") for it in requests]

    async def ask():
        batcher = Batcher(function, 4)
        first = asyncio.ensure_future(batcher(0))
        while not called:
            await asyncio.sleep(0.001)
        rest = [asyncio.ensure_future(batcher(k)) for k in range(1, 8)]
        await asyncio.sleep(0)
        rest[4].cancel()
        go.set()
        return await asyncio.gather(first, *rest, return_exceptions=True), batcher

    found, batcher = asyncio.run(ask())
    assert called == [[0], [1, 2, 3, 4], [6, 7]] and (batcher.calls, batcher.requests) == (3, 7)
    assert found[:3] + found[4:5] + found[6:] == [0, 2, 4, 8, 12, 14]
    assert isinstance(found[3], rnncc.DataError) and isinstance(found[5], asyncio.CancelledError)


def test_a_call_that_is_not_full_waits_as_long_as_it_is_told():
    async def ask(batcher):
        async def later(k):
            await asyncio.sleep(0.01 * k)
            return await batcher(k)
        return await asyncio.gather(*(later(k) for k in range(3)))

    batcher = Batcher(lambda requests: requests, 3, wait=10.0 ** -9)
    assert asyncio.run(ask(batcher)) == [0, 1, 2] and batcher.calls > 1
    batcher = Batcher(lambda requests: requests, 9, wait=1.0)
    assert asyncio.run(ask(batcher)) == [0, 1, 2] and batcher.calls == 1


def test_a_function_that_fails_is_told_to_all_who_asked_and_asked_again():
    def function(requests):
        if 1 in requests:
            raise ValueError("no ones")
        return requests

    async def ask():
        batcher = Batcher(function, 9)
        return await asyncio.gather(batcher(1), batcher(1), return_exceptions=True), await batcher(2)

    (first, second), third = asyncio.run(ask())
    assert str(first) == str(second) == "no ones" and third == 2


# ---- shards ----

class Remote:
    """Ray's handle of a method."""

    def __init__(self, method):
        self.remote = method


class Handle:
    def __init__(self, shard):
        for name in ("open", "close", "step", "answer"):
            setattr(self, name, Remote(getattr(shard, name)))


class Request:
    """Starlette's."""

    def __init__(self, method, path, body):
        self.method, self.url, self._body = method, type("URL", (), {"path": path}), body

    async def body(self):
        return self._body


def saved(**arrays):
    file = io.BytesIO()
    numpy.save(file, arrays["x"]) if len(arrays) == 1 else numpy.savez(file, **arrays)
    return file.getvalue()


def packed(count):
    """As many zeros take a thousandth of their bytes."""
    file = io.BytesIO()
    numpy.savez_compressed(file, x=numpy.zeros(count, numpy.float32))
    return file.getvalue()


def packed_by(method):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("x.npy", saved(x=sound(1)))
    return file.getvalue()


def test_200_streams_at_once_compute_what_each_does_alone(path):
    async def listen(router, key):
        await router.open(key)
        pieces = [(await router.step(key, {"x": sound(int(key))[at:at + PIECE]}))["y"] for at in range(0, 30, PIECE)]
        await router.close(key)
        return numpy.concatenate(pieces)[:, 0]

    async def all_of_them():
        shards = [Shard(path, None, 1, 0.0, {}) for _ in range(2)]
        router = Router(*map(Handle, shards))
        return await asyncio.gather(*(listen(router, str(k)) for k in range(STREAMS))), shards

    found, shards = asyncio.run(all_of_them())
    with rnncc.load(path, threads=1) as module:
        assert all(close(result, expected(module, k)) for k, result in enumerate(found))
    assert all(len(shard.streams) == 0 and shard.batcher.calls < shard.batcher.requests / 2 for shard in shards)
    assert sum(shard.batcher.requests for shard in shards) == 3 * STREAMS


def test_http_says_what_went_wrong(path):
    shard = Shard(path, None, 1, 0.0, {})
    asked = [("POST", saved(x=sound(1)), 404, "no such stream is open"), ("DELETE", b"", 404, "no such stream is open"),
             ("PUT", b"", 201, ""), ("PUT", b"", 409, "the stream is open"), ("GET", b"", 405, "expected PUT, POST or DELETE"),
             ("POST", b"noise", 400, "expected a file of numpy.save() or numpy.savez(), found 5 bytes"),
             ("POST", b"", 400, "found 0 bytes"),
             ("POST", saved(x=sound(1).astype("f8")), 400, "input x: expected f32, found float64"),
             ("POST", saved(x=sound(1), k=sound(1)), 400, "expected the inputs x, found x, k"),
             ("POST", saved(x=numpy.array([{}])), 400, "allow_pickle=False"),
             ("POST", packed(10 << 20), 400, "they unpack to more than the "),
             ("POST", packed_by(zipfile.ZIP_BZIP2), 400, "x.npy is packed by method 12; expected stored or deflated ones"),
             ("POST", packed_by(zipfile.ZIP_LZMA), 400, "x.npy is packed by method 14"),
             ("POST", saved(x=sound(1)), 200, None),
             ("DELETE", b"", 200, ""), ("DELETE", b"", 404, "no such")]

    async def ask():
        return [await shard.answer(method, "a", body) for method, body, *_ in asked]

    for (method, _, status, words), (found, body) in zip(asked, asyncio.run(ask())):
        assert found == status and (words is None or words in body.decode()), (method, found, body)
        if words is None:
            with rnncc.load(path, threads=1) as module:
                assert close(numpy.load(io.BytesIO(body))[:, 0], expected(module, 1))


def test_a_stream_has_one_shard(path):
    router = Router(*"abcd")
    assert {router.shard(str(k)) for k in range(STREAMS)} == set("abcd") and router.shard("x") == router.shard("x")
