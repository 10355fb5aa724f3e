#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""service.py MODULE.so [--port=8000] [--threads=1]: a network with states as an HTTP service, by Python's own library.

    PUT    /streams/KEY     a stream begins
    POST   /streams/KEY     {"x": [[...], ...]}, by the inputs' names, without the batch: a step; its outputs likewise
    DELETE /streams/KEY     it ends
    POST   /reload          MODULE.so again, which another file has replaced; so does SIGHUP
    GET    /metrics         for Prometheus
    GET    /health          200

Requests that wait together share a run. Streams go on in the new module if its states are as the old one's; else the old one
stays, and the answer says why. SIGTERM: answers what has come, and ends.
"""
import argparse
import asyncio
import json
import math
import signal
import sys
import threading
import time
from collections import Counter

import http_server
import rnncc
from http_server import Answer, Request
from rnncc.batcher import Batcher

MOST_WAITING = 2000  # requests; more are told to come again
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, math.inf)  # seconds


class Network:
    """The module that serves, and its streams. Runs and reloads take turns."""

    def __init__(self, path, threads):
        self.path, self.threads, self.loads = path, threads, 0
        self.lock = threading.Lock()
        self.streams = self.load()

    def load(self):
        streams = rnncc.Streams(rnncc.load(self.path, threads=self.threads))
        self.loads += 1
        return streams

    def step(self, requests):
        with self.lock:
            return self.streams.step(requests)

    def open(self, key):
        with self.lock:
            self.streams.open(key)

    def close(self, key):
        with self.lock:
            self.streams.close(key)

    def reload(self):
        """Loads while the old module serves; then all streams move at once, or none."""
        new = self.load()
        with self.lock:
            for key in self.streams.keys():
                new.open(key, self.streams.state(key))
            self.streams = new


class Metrics:
    def __init__(self):
        self.answers, self.buckets, self.seconds = Counter(), Counter(), 0.0

    def count(self, status, seconds):
        self.answers[status] += 1
        self.buckets[next(bound for bound in BUCKETS if seconds <= bound)] += 1
        self.seconds += seconds

    def text(self, network, batcher):
        lines = [f'requests_total{{status="{status}"}} {count}' for status, count in sorted(self.answers.items())]
        total = 0
        for bound in BUCKETS:
            total += self.buckets[bound]
            lines.append(f'request_seconds_bucket{{le="{"+Inf" if bound == math.inf else bound}"}} {total}')
        lines += [f"request_seconds_sum {self.seconds:.6f}", f"request_seconds_count {total}",
                  f"steps_total {batcher.requests}", f"runs_total {batcher.calls}", f"streams {len(network.streams)}",
                  f"loads_total {network.loads}"]
        return "".join(f"{line}\n" for line in lines).encode()


def said(status, words):
    return Answer(status, json.dumps({"error": words}).encode())


class Service:
    def __init__(self, path, threads):
        self.network, self.metrics, self.waiting = Network(path, threads), Metrics(), 0
        self.batcher = Batcher(self.network.step, self.network.streams.most)

    async def answer(self, request: Request) -> Answer:
        began = time.perf_counter()
        try:
            answer = await self.route(request)
        except rnncc.Error as error:
            answer = said(400, str(error))
        self.metrics.count(answer.status, time.perf_counter() - began)
        return answer

    async def route(self, request):
        if request.path.startswith("/streams/"):
            return await self.stream(request.method, request.path[len("/streams/"):], request.body)
        if (request.method, request.path) == ("POST", "/reload"):
            return await self.reload()
        if (request.method, request.path) == ("GET", "/metrics"):
            return Answer(200, self.metrics.text(self.network, self.batcher), "text/plain; version=0.0.4")
        if (request.method, request.path) == ("GET", "/health"):
            return Answer(200, b"{}")
        return said(404, f"no {request.method} of {request.path[:80]}")

    async def stream(self, method, key, body):
        is_open = key in self.network.streams
        if method == "PUT":
            if is_open:
                return said(409, "the stream is open")
            await asyncio.to_thread(self.network.open, key)
            return Answer(201, b"{}")
        if method not in ("POST", "DELETE"):
            return said(405, "expected PUT, POST or DELETE")
        if not is_open:
            return said(404, "no such stream is open")
        if method == "POST":
            return await self.step(key, body)
        await asyncio.to_thread(self.network.close, key)
        return Answer(200, b"{}")

    async def step(self, key, body):
        try:
            row = json.loads(body)
        except (ValueError, RecursionError) as error:
            return said(400, f"expected JSON: {error}")
        if not isinstance(row, dict):
            return said(400, "expected an object of inputs")
        if self.waiting >= MOST_WAITING:
            return said(503, f"{self.waiting} requests wait")
        self.waiting += 1
        try:
            found = await self.batcher((key, row))
        finally:
            self.waiting -= 1
        return Answer(200, json.dumps({name: array.tolist() for name, array in found.items()}).encode())

    async def reload(self):
        try:
            await asyncio.to_thread(self.network.reload)
        except rnncc.Error as error:
            return said(409, f"{error}; the module before it goes on")
        return Answer(200, b"{}")

    async def reload_and_log(self):
        answer = await self.reload()
        print(f"service.py: reload: {answer.status} {answer.body.decode()}", file=sys.stderr, flush=True)


async def serve(given):
    service, loop, end = Service(given.module, given.threads), asyncio.get_running_loop(), asyncio.Event()
    tasks = []  # asyncio itself holds no reference to what runs
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: tasks.append(asyncio.ensure_future(service.reload_and_log())))
    server = await http_server.listen(service.answer, given.host, given.port)
    print(f"http://{given.host}:{server.sockets[0].getsockname()[1]}", flush=True)
    await end.wait()
    server.close()
    while service.waiting:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)  # the last answers are written


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0: a free one")
    parser.add_argument("--threads", type=int, default=1, help="of the module; 0: all cores")
    given = parser.parse_args()
    try:
        asyncio.run(serve(given))
    except (rnncc.Error, OSError) as error:
        sys.exit(f"service.py: {error}")


if __name__ == "__main__":
    main()
