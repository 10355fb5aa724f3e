# SPDX-License-Identifier: MIT
"""Kernels that lay out their own scratch memory run under ThreadSanitizer: what one thread writes, no other reads or
writes without a barrier between. The module and the rnnrun that runs it are built with ThreadSanitizer."""
import platform

import numpy
import pytest

from kernels.test_detection_kernels import suppression
from support.amount import long_tests
from support.bodies import Body
from support.hard_networks import control, convolutional, recurrent
from support.model_builder import Model
from support.watched import SEEN, ended, watched_module, watching_rnnrun

RUNS = 5 if long_tests() else 2


@pytest.fixture(scope="module")
def watching(module_cache):
    return watching_rnnrun(module_cache, "thread")


def detection():
    """Several boxes and classes for each thread."""
    return suppression([(1500, 7, 300, 50), (40, 2, 40, 40), (500, 5, 0, 9)])


def best_of_rows():
    model, rng = Model(), numpy.random.default_rng(1)
    x = model.input("x", "f32", [9, 700, 3])
    for axis, k in ((1, 40), (0, 4), (2, 2), (1, 700)):
        model.output(*model.node("TopK", [x, model.constant(numpy.array([k]))], 2, axis=axis))
    return model, {x: rng.integers(0, 50, (9, 700, 3)).astype(numpy.float32)}


def layers_of_integers():
    """Layers of one and two directions, whose workers share each sample: each quantises what all write."""
    model, rng, feeds = Model(), numpy.random.default_rng(2), {}
    for op, gates, directions in (("LSTM", 4, 1), ("GRU", 3, 2)):
        x = model.input(f"x{gates}", "f32", [20, 3, 30])
        W, R = (model.constant(rng.uniform(-1, 1, (directions, gates * 70, n)).astype(numpy.float32)) for n in (30, 70))
        model.output(model.node(op, [x, W, R], hidden_size=70, precision="int8-dynamic",
                                direction="bidirectional" if directions == 2 else "forward"))
        feeds[x] = rng.uniform(-1, 1, (20, 3, 30)).astype(numpy.float32)
    return model, feeds


def loops_of_computed_length():
    """What a loop ends by is read by all workers, some of which are behind the loop: its result takes that memory."""
    model, feeds = Model(), {"x": numpy.ones(105, numpy.float32)}
    value = model.input("x", "f32", [105])
    for k in range(4):
        feeds[f"n{k}"] = numpy.array(k)
        most = model.node("Min", [model.input(f"n{k}", "i64", []), model.constant(numpy.array(4))])
        body = Body(model, i="i64", go="bool", x="f32")
        model.node("Loop", [most, None, value], [f"y{k}"], body=body.output(
            body.node("Identity", [body.inputs[1]]), body.node("Identity", [body.inputs[2]])))
        value = model.node("Exp", [f"y{k}"])
    model.output(value)
    return model, feeds


def statuses(watching, folder, feeds):
    """The exit codes of some runs of the emitted folder's module."""
    inputs = []
    for name, array in feeds.items():
        numpy.save(folder / f"{name}.npy", array)
        inputs += ["--input", f"{name}=@{folder / name}.npy"]
    return {status for status, _ in ended(watching, "thread", watched_module(folder / "c", "thread"), inputs, RUNS)}


# ThreadSanitizer sees accesses of up to 16 bytes: no wider vectors.
NARROW = ["--target=x86-64"] if platform.machine() == "x86_64" else []


@pytest.mark.parametrize("build, options", [
    (detection, []), (best_of_rows, []), (loops_of_computed_length, NARROW), (layers_of_integers, [*NARROW, "--rnn=workers=4"]),
    (recurrent, [*NARROW, "--rnn=workers=4"]), (convolutional, NARROW), (control, NARROW)])
def test_no_two_threads_race(rnncc, watching, tmp_path, build, options):
    model, feeds = build()
    done = rnncc(model.write(tmp_path), "--emit=c", "-o", tmp_path / "c", "--threads=4", *options)
    assert done.returncode == 0, done.stderr
    assert statuses(watching, tmp_path, feeds) == {0}


def test_a_barrier_that_is_missing_is_seen(rnncc, watching, tmp_path):
    model, feeds = detection()
    done = rnncc(model.write(tmp_path), "--emit=c", "-o", tmp_path / "c", "--threads=4")
    assert done.returncode == 0, done.stderr
    network = tmp_path / "c" / "network.c"
    without = network.read_text().replace("\n  module_barrier(run, team);", "")
    assert without != network.read_text()
    network.write_text(without)
    assert SEEN["thread"] in statuses(watching, tmp_path, feeds)
