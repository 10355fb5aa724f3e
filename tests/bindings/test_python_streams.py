# SPDX-License-Identifier: MIT
"""Streams that share runs: each computes what it would compute alone, whoever runs beside it."""
import threading

import numpy
import pytest

from support import streaming
from support.module import rnncc
from support.streaming import close, expected, sound


@pytest.fixture(scope="module")
def listener(compile, tmp_path_factory):
    with rnncc.load(compile(streaming.listener().write(tmp_path_factory.mktemp("listener"))), threads=1) as module:
        yield module


def random_steps(streams, seed):
    """Requests in several calls: pieces of each stream, in order, of random lengths, some twice in a call."""
    rng, place = numpy.random.default_rng(seed), dict.fromkeys(streams, 0)
    while any(at < 30 for at in place.values()):
        requests = []
        for stream in rng.choice(streams, rng.integers(1, 2 * len(streams))):
            at, steps = place[stream], int(rng.integers(1, 5))
            if at < 30:
                requests.append((int(stream), at, min(at + steps, 30)))
                place[stream] += steps
        yield requests


@pytest.mark.parametrize("count", [1, 3, 20])
def test_each_stream_computes_what_it_does_alone(listener, count):
    streams, found = rnncc.Streams(listener), {k: [] for k in range(count)}
    for key in found:
        streams.open(key)
    for requests in random_steps(list(found), count):
        for (key, *_), result in zip(requests, streams.step([(key, {"x": sound(key)[a:b]}) for key, a, b in requests])):
            found[key].append(result["y"][:, 0])
    assert all(close(numpy.concatenate(found[key]), expected(listener, key)) for key in found)


def test_without_a_batch_streams_take_turns(compile, tmp_path):
    with rnncc.load(compile(streaming.listener("one", False).write(tmp_path)), threads=1) as module:
        streams = rnncc.Streams(module)
        streams.open("a"), streams.open("b")
        results = [streams.step([(key, {"x": sound(k)[a:a + 10][:, None]}) for k, key in enumerate("ab")])
                   for a in (0, 10, 20)]
        for k in range(2):
            assert close(numpy.concatenate([turn[k]["y"][:, 0, 0] for turn in results]), expected(module, k))


def test_a_stream_goes_on_elsewhere(listener, compile, tmp_path):
    """In another module with such states, as when a new one takes over."""
    first = rnncc.Streams(listener)
    first.open("a")
    (begin,) = first.step([("a", {"x": sound(7)[:10]})])
    with rnncc.load(compile(streaming.listener("newer").write(tmp_path)), threads=1) as module:
        second = rnncc.Streams(module)
        second.open("b", first.state("a"))
        (end,) = second.step([("b", {"x": sound(7)[10:]})])
    assert close(numpy.concatenate([begin["y"], end["y"]])[:, 0], expected(listener, 7))


def test_states_of_another_shape_or_type_are_refused(listener):
    streams = rnncc.Streams(listener)
    zeros = numpy.zeros((1, 1, 5), "f4")
    for states in ({"h0": zeros}, {"h0": zeros, "c0": zeros[:, :, 1:]}, {"h0": zeros, "c0": zeros.astype("f8")}, {}):
        with pytest.raises(rnncc.ShapeError, match=r"states: expected h0 of f32\[1, 1, 5\], c0 of f32\[1, 1, 5\], found"):
            streams.open("a", states)
    assert "a" not in streams and len(streams) == 0


def test_a_row_that_is_refused_leaves_its_stream_as_it_was(listener):
    streams = rnncc.Streams(listener)
    streams.open(1), streams.open(2)
    (one, wrong, again, unknown, two) = streams.step([
        (1, {"x": sound(1)[:10]}), (2, {"x": sound(2)[:, :2]}), (1, {"x": sound(1)[10:]}), (3, {"x": sound(3)}),
        (2, {"x": sound(2)})])
    assert isinstance(wrong, rnncc.ShapeError) and str(unknown) == "expected an open stream, found 3"
    assert close(numpy.concatenate([one["y"], again["y"]])[:, 0], expected(listener, 1))
    assert close(two["y"][:, 0], expected(listener, 2))


def test_streams_open_once_and_close_once(listener):
    streams = rnncc.Streams(listener)
    streams.open("a")
    with pytest.raises(rnncc.ArgumentError, match="expected a new stream, found 'a', which is open"):
        streams.open("a")
    assert streams.keys() == ["a"] and "a" in streams
    streams.step([("a", {"x": sound(1)})])
    streams.close("a")
    for use in (streams.close, streams.state):
        with pytest.raises(rnncc.ArgumentError, match="expected an open stream, found 'a'"):
            use("a")
    streams.open("a")
    assert close(streams.step([("a", {"x": sound(1)})])[0]["y"][:, 0], expected(listener, 1))


def test_threads_take_turns(listener):
    streams, wrong = rnncc.Streams(listener), []

    def work(key):
        streams.open(key)
        found = [streams.step([(key, {"x": sound(key)[at:at + 3]})])[0]["y"][:, 0] for at in range(0, 30, 3)]
        if not close(numpy.concatenate(found), expected(listener, key)):
            wrong.append(key)

    threads = [threading.Thread(target=work, args=[key]) for key in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and len(streams) == 12
