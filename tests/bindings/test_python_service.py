# SPDX-License-Identifier: MIT
"""The service of tools/examples/service: many clients at once, another module while they are served, bad requests, and its
end."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading

import numpy
import pytest

from conftest import ROOT
from support import streaming
from support.module import PACKAGE, rnncc
from support.streaming import close, expected, sound

SERVICE = ROOT / "tools" / "examples" / "service" / "service.py"
CLIENTS, PIECE = 40, 10


@pytest.fixture(scope="module")
def modules(compile, tmp_path_factory):
    """One; another whose outputs are twice as large; one with other states."""
    folder, doubled = tmp_path_factory.mktemp("modules"), streaming.listener("doubled")
    doubled.outputs = [doubled.node("Mul", [doubled.outputs[0], doubled.constant(numpy.float32(2))], ["twice"])]
    return [compile(model.write(folder)) for model in (streaming.listener(), doubled, streaming.listener("other", units=6))]


class Service:
    def __init__(self, path, *words):
        self.path = path
        self.process = subprocess.Popen([sys.executable, SERVICE, path, "--port=0", *words], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        said = self.process.stdout.readline()
        assert said.startswith("http://127.0.0.1:"), self.process.communicate()
        self.port = int(said.rsplit(":", 1)[1])

    def client(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def replace(self, module):
        shutil.copy(module, f"{self.path}.new")
        os.rename(f"{self.path}.new", self.path)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


def serving(module, folder):
    shutil.copy(module, folder / "m.so")
    service = Service(folder / "m.so")
    yield service
    service.process.kill()
    service.process.communicate()


@pytest.fixture
def service(modules, tmp_path):
    yield from serving(modules[0], tmp_path)


@pytest.fixture(scope="module")
def lasting(modules, tmp_path_factory):
    """One for all that leave it as it is."""
    yield from serving(modules[0], tmp_path_factory.mktemp("lasting"))


def ask(client, method, path, body=None):
    """(status, the answer's JSON, or its text)"""
    client.request(method, path, json.dumps(body) if isinstance(body, dict) else body)
    answer = client.getresponse()
    text = answer.read().decode()
    return answer.status, json.loads(text) if answer.headers["Content-Type"] == "application/json" else text


def step(client, key, x):
    status, found = ask(client, "POST", f"/streams/{key}", {"x": x.tolist()})
    assert status == 200, found
    (result,) = found.values()
    return numpy.array(result, "f4")[:, 0]


def metric(client, name):
    (value,) = re.findall(rf"^{re.escape(name)} (\S+)$", ask(client, "GET", "/metrics")[1], re.MULTILINE)
    return float(value)


def test_clients_at_once_have_a_stream_each_and_another_module_takes_them_over(service, modules):
    """Each client hears what it would hear alone; the module is replaced between two of its pieces."""
    found, halfway = {}, threading.Barrier(CLIENTS + 1)

    def listen(key):
        client = service.client()
        assert ask(client, "PUT", f"/streams/{key}")[0] == 201
        pieces = [step(client, key, sound(key)[at:at + PIECE]) for at in (0, PIECE)]
        halfway.wait(60)
        halfway.wait(60)
        found[key] = numpy.concatenate([*pieces, step(client, key, sound(key)[2 * PIECE:]) / 2])
        assert ask(client, "DELETE", f"/streams/{key}")[0] == 200

    threads = [threading.Thread(target=listen, args=[key]) for key in range(CLIENTS)]
    for thread in threads:
        thread.start()
    halfway.wait(60)
    service.replace(modules[1])
    client = service.client()
    assert ask(client, "POST", "/reload") == (200, {}) and metric(client, "streams") == CLIENTS
    halfway.wait(60)
    for thread in threads:
        thread.join(60)
    with rnncc.load(modules[0], threads=1) as module:
        assert len(found) == CLIENTS and all(close(found[key], expected(module, key)) for key in found)
    assert metric(client, "streams") == 0 and metric(client, "loads_total") == 2
    assert metric(client, "steps_total") == 3 * CLIENTS > metric(client, "runs_total")
    assert metric(client, 'requests_total{status="201"}') == CLIENTS
    assert metric(client, 'request_seconds_bucket{le="+Inf"}') >= 5 * CLIENTS


def test_a_module_that_cannot_take_over_leaves_the_old_one(service, modules):
    client = service.client()
    ask(client, "PUT", "/streams/a")
    first = step(client, "a", sound(1)[:PIECE])
    service.replace(modules[2])
    status, words = ask(client, "POST", "/reload")
    assert status == 409 and "states: expected h0 of f32[1, 1, 6]" in words["error"]
    (service.path.parent / "text").write_text("no module")
    service.replace(service.path.parent / "text")
    service.process.send_signal(signal.SIGHUP)
    assert "not a module of rnncc" in service.process.stderr.readline()
    with rnncc.load(modules[0], threads=1) as module:
        assert close(numpy.concatenate([first, step(client, "a", sound(1)[PIECE:])]), expected(module, 1))


def test_bad_requests_are_answered_in_words(lasting):
    client = lasting.client()
    ask(client, "PUT", "/streams/a")
    x = sound(1).tolist()
    for method, path, body, status, words in (
            ("POST", "/streams/b", {"x": x}, 404, "no such stream is open"), ("PUT", "/streams/a", None, 409, "is open"),
            ("PATCH", "/streams/a", None, 405, "expected PUT, POST or DELETE"), ("GET", "/", None, 404, "no GET of /"),
            ("POST", "/streams/a", "{", 400, "expected JSON"), ("POST", "/streams/a", "[" * 100000, 400, "expected JSON"),
            ("POST", "/streams/a", "[]", 400, "expected an object"), ("POST", "/streams/a", {}, 400, "expected the inputs x"),
            ("POST", "/streams/a", {"x": [["a", "b", "c"]]}, 400, "input x: expected an array of f32"),
            ("POST", "/streams/a", {"x": [[1, 2, 3], [1]]}, 400, "input x: expected parts of one shape"),
            ("POST", "/streams/a", {"x": x * 2}, 400, "T is 60, but was compiled for 1 to 40")):
        found = ask(client, method, path, body)
        assert found[0] == status and words in found[1]["error"], found
    assert ask(client, "POST", "/streams/a", {"x": x})[0] == 200 and ask(client, "GET", "/health") == (200, {})


@pytest.mark.parametrize("data, status, words", [
    (b"\r\n\r\n", 400, "expected METHOD PATH HTTP/1.1"), (b"GET / HTTP/1.1\r\nnoise\r\n\r\n", 400, "expected a header"),
    (b"GET / HTTP/1.1\r\nA: 1\r\na: 2\r\n\r\n", 400, "expected a header once"), (b"GET / HT", 400, "ends within its head"),
    (b"PUT / HTTP/1.1\r\nContent-Length: 9\r\n\r\n123", 400, "ends within its body"),
    (b"PUT / HTTP/1.1\r\nContent-Length: -9\r\n\r\n", 400, "Content-Length: expected a number"),
    (b"PUT / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 413, "expected at most"),
    (b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 501, "found Transfer-Encoding"),
    (b"GET / HTTP/1.1\r\nA: " + b"9" * 99999 + b"\r\n\r\n", 431, "a head of at most"),
    (b"GET / HTTP/1.0\r\n\r\n", 404, "no GET of /"), (b"", None, "")], ids=lambda it: str(it)[:40])
def test_what_is_no_request_ends_its_connection_and_no_other(lasting, data, status, words):
    with socket.create_connection(("127.0.0.1", lasting.port), 60) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            found = b"".join(iter(lambda: connection.recv(9999), b"")).decode()
        except ConnectionError:  # the service has closed before it has read all
            found = None if status == 431 else "?"
    if found is not None:
        assert (found.startswith(f"HTTP/1.1 {status} ") and words in found) if status else found == ""
    assert ask(lasting.client(), "GET", "/health")[0] == 200


def test_it_ends_with_all_answered(service):
    client = service.client()
    ask(client, "PUT", "/streams/a")
    client.request("POST", "/streams/a", json.dumps({"x": sound(1).tolist()}))
    while metric(service.client(), "steps_total") < 1:
        pass
    status, errors = service.end()
    assert client.getresponse().status == 200 and (status, errors) == (0, "")


def test_without_a_module_it_says_why(tmp_path):
    done = subprocess.run([sys.executable, SERVICE, tmp_path / "m.so"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    assert done.returncode == 1 and done.stderr == f"service.py: {tmp_path}/m.so: No such file or directory\n"
