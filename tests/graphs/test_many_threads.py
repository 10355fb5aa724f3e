# SPDX-License-Identifier: MIT
"""Modules planned for 32 threads, many more than there are CPUs: the same bits on one thread, on 32, on fewer, on more."""
import re

import numpy
import pytest

from support.model_builder import Model
from support.module import Module

THREADS = (5, 31, 32, 40)  # flat, and in trees


def draw(*shape):
    return numpy.random.default_rng(1).standard_normal(shape).astype(numpy.float32) / 8


def recurrent(op, batch, hidden, directions):
    model, gates = Model(), {"LSTM": 4, "GRU": 3}[op]
    w, r = (model.constant(draw(directions, gates * hidden, depth)) for depth in (24, hidden))
    direction = "bidirectional" if directions == 2 else "forward"
    model.output(model.node(op, [model.input("x", "f32", [4, batch, 24]), w, r], hidden_size=hidden, direction=direction))
    return model, draw(4, batch, 24)


def convolution():
    model = Model()
    x = model.input("x", "f32", [1, 32, 20, 20])
    y = model.node("Conv", [x, model.constant(draw(48, 32, 3, 3))], pads=[1, 1, 1, 1])
    y = model.node("Conv", [model.node("Relu", [y]), model.constant(draw(40, 48, 1, 1))])
    model.output(model.node("MatMul", [y, model.constant(draw(20, 33))]))
    return model, draw(1, 32, 20, 20)


CASES = {"lstm_b1": lambda: recurrent("LSTM", 1, 512, 1), "gru_b8_both_ways": lambda: recurrent("GRU", 8, 112, 2),
         "lstm_b20": lambda: recurrent("LSTM", 20, 256, 1), "convolution": convolution}


def run(path, x, threads):
    with Module(path) as module, module.context(threads=threads) as context:
        (y,) = context.run({"x": x}).values()
        return y.tobytes()


@pytest.mark.every_case
@pytest.mark.parametrize("case", CASES)
def test_a_module_for_32_threads_computes_the_same_on_any_number(case, compile, tmp_path):
    model, x = CASES[case]()
    path = compile(model.write(tmp_path), "--threads=32", optimised=False)
    alone = run(path, x, 1)
    for threads in THREADS:
        assert run(path, x, threads) == alone, threads


def test_a_module_knows_where_each_of_its_constants_ends(rnncc, tmp_path):
    """warmup() has each worker read its share of each first."""
    model, _ = recurrent("LSTM", 1, 64, 1)
    done = rnncc(model.write(tmp_path), "--emit=c", "-o", tmp_path / "c", "--target=x86-64-v3")
    assert done.returncode == 0, done.stderr
    unit = (tmp_path / "c" / "network.c").read_text()
    ends = [int(end) for end in re.search(r"weight_ends\[\] = {([^}]*)}", unit)[1].split(",")[:-1]]
    assert f".n_weights = {len(ends)}," in unit and len(ends) >= 2
    assert ends == sorted(set(ends)) and all(end % 64 == 0 for end in ends)
    assert ends[-1] == (tmp_path / "c" / "weights.bin").stat().st_size
