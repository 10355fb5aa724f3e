# SPDX-License-Identifier: MIT
"""Threads of the host's: its parallel_for by steps, which runs the workers of a step in any order on any threads, and a pool
that modules of two files share. Results are bit for bit those of one thread, of networks with all kinds of barriers."""
import ctypes
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
import rnncc
from rnncc import abi, native
from rnncc.context import Context

from support.model_builder import Model
from support.stacks import STACKS, feeds_of, model_of

BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)
PARALLEL_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, BODY, ctypes.c_void_p)


def draw(*shape):
    return numpy.random.default_rng(1).standard_normal(shape).astype(numpy.float32) / 8


def recurrent(op, batch, hidden, directions=1, **attributes):
    model, gates = Model(), {"LSTM": 4, "GRU": 3}[op]
    w, r = (model.constant(draw(directions, gates * hidden, depth)) for depth in (24, hidden))
    direction = "bidirectional" if directions == 2 else "forward"
    x = model.input("x", "f32", [5, batch, 24])
    model.output(model.node(op, [x, w, r], hidden_size=hidden, direction=direction, **attributes))
    return model, {"x": draw(5, batch, 24)}


def convolutions():
    model = Model()
    x = model.input("x", "f32", [1, 16, 20, 20])
    y = model.node("Conv", [x, model.constant(draw(32, 16, 3, 3))], pads=[1, 1, 1, 1])
    y = model.node("Conv", [model.node("Relu", [y]), model.constant(draw(24, 32, 1, 1))])
    model.output(model.node("Softmax", [model.node("MatMul", [y, model.constant(draw(20, 9))])], axis=-1))
    return model, {"x": draw(1, 16, 20, 20)}


def wavefront():
    return model_of(STACKS, 7, 3), feeds_of(STACKS, 7, 3)


# Kinds of barriers -> the network, and how it is compiled.
CASES = {
    "before each step": (lambda: recurrent("LSTM", 2, 96), "--rnn=workers=4"),
    "in halves": (lambda: recurrent("LSTM", 1, 64), "--rnn=workers=2,hide=1"),
    "halfway through each step": (lambda: recurrent("GRU", 3, 48, 2), "--rnn=workers=4,batch_parts=2"),
    "of integers, within a kernel": (lambda: recurrent("LSTM", 2, 64, precision="int8-dynamic"), "--threads=4"),
    "between chunks of layers": (wavefront, "--rnn=batch_parts=1,hide=0,depth_block=0,input=ahead,chunk=3"),
    "between kernels": (convolutions, "--threads=4"),
}


class Host:
    """A parallel_for that counts its calls."""

    def __init__(self, run):
        self.steps, self.errors, self.run = 0, [], run
        self.function = PARALLEL_FOR(self.parallel_for)

    def parallel_for(self, _host, n, body, arg):
        self.steps += 1
        try:
            self.run(n, lambda index: body(arg, index))
        except BaseException as error:  # in C there is no way for it
            self.errors.append(error)


def in_order(n, body):
    for index in range(n):
        body(index)


def at_random(n, body):
    for index in random.Random(n).sample(range(n), n):
        body(index)


def on_three_threads(n, body):
    with ThreadPoolExecutor(3) as executor:
        list(executor.map(body, range(n)))


def outputs(library, feeds, **options):
    model = native.Model(library, library.tables[0], None, share_all=1, **options)
    return {name: array.tobytes() for name, array in Context(model).run(feeds).items()}


@pytest.mark.every_case
@pytest.mark.parametrize("case", CASES)
def test_steps_in_any_order_give_the_same_bits(case, compile, tmp_path):
    make, option = CASES[case]
    model, feeds = make()
    library = native.Library(compile(model.write(tmp_path), option, optimised=False))
    alone = outputs(library, feeds, threads=1)
    for threads in (2, 4, 5):
        steps = set()
        for run in (in_order, at_random, on_three_threads):
            host = Host(run)
            got = outputs(library, feeds, threads=threads, by_steps=1,
                          parallel_for=ctypes.cast(host.function, ctypes.c_void_p))
            assert host.errors == [] and got == alone, (case, threads, run)
            steps.add(host.steps)
        assert len(steps) == 1 and steps.pop() >= 2, "a step for each barrier, and the last"


def test_two_files_share_a_pool(compile, tmp_path):
    """From four threads at once, whose runs wait, or go on alone."""
    names, failures = ("before each step", "between kernels"), []
    folders = [tmp_path / str(i) for i in range(2)]
    networks = []
    for name, folder in zip(names, folders):
        folder.mkdir()
        model, feeds = CASES[name][0]()
        networks.append((compile(model.write(folder), CASES[name][1], optimised=False), feeds))
    pool = rnncc.Pool(networks[0][0], threads=3)

    def repeat(path, feeds, waits):
        with rnncc.load(path, threads=1) as alone, rnncc.load(path, pool=pool, waits=waits, share_all=True) as shared:
            expected = {name: array.tobytes() for name, array in alone.run(feeds).items()}
            for _ in range(200):
                if {name: array.tobytes() for name, array in shared.run(feeds).items()} != expected or shared.threads != 3:
                    failures.append(path)

    threads = [threading.Thread(target=repeat, args=(*networks[i % 2], i < 2)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and pool.waiting == 0
