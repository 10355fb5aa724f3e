# SPDX-License-Identifier: MIT
"""A weight that every turn of a loop reads has one gradient of all turns, a product's or a layer's, where turns are small
(compiler/differentiate/over_turns.h), and else sums up those of each: both are right, of any number of turns."""
import re

import numpy
import pytest

from graphs.test_control_gradients import ERROR, H, I, differences, total, weight
from support.bodies import body_of
from support.model_builder import Model
from support.trainers import gradients_of, trainer_of


def behind_the_last_loop(rnncc, path, op):
    """How many nodes of this operator follow the last body, whose outputs the dump has before those of the network."""
    done = rnncc("inspect", path, "--train", "--dump-after=differentiate")
    assert done.returncode == 0, done.stderr
    return len(re.findall(rf" = {op}\(", re.split(r"\noutput .*\n(?!output)", done.stderr)[-2]))


# ---- products ----

TURNS_MOST = 9


def multiplying_loop(rows):
    """h = tanh(h U' + b + v R), v = tanh(v R) a vector, as often as `turns` says, and while i < `limit`. U is turned over in
    the body, and read twice; all h are collected."""
    rng = numpy.random.default_rng(rows)
    model = Model("products")
    turns = model.node("Min", [model.input("turns", "i64", []), model.constant(numpy.array(TURNS_MOST))])
    limit, scale = model.input("limit", "i64", []), model.input("scale", "f32", [rows, H])
    u, r, b, h0, v0 = (weight(model, name, rng.uniform(-0.6, 0.6, shape)) for name, shape in
                       {"U": (H, H), "R": (H, H), "b": (H,), "h0": (rows, H), "v0": (H,)}.items())
    one, yes = model.constant(numpy.array(1)), model.constant(numpy.array(True))

    def turn(body, i, c, h, v):
        v = body.node("Tanh", [body.node("MatMul", [v, r])])
        half = body.node("Tanh", [body.node("MatMul", [h, body.node("Transpose", [u])])])
        both = body.node("Add", [body.node("Gemm", [half, u, b], transB=1, alpha=0.5), v])
        new = body.node("Tanh", [both])
        return [body.node("Less", [body.node("Add", [i, one]), limit]), new, v, body.node("Mul", [new, scale])]

    body = body_of(model, turn, i="i64", c="bool", h="f32", v="f32")
    last, vector, collected = model.node("Loop", [turns, yes, h0, v0], 3, body=body)
    return total(model, last, vector, collected)


def loss_of_loop(weights, turns, limit, scale):
    h, v, loss = weights["h0"], weights["v0"], 0
    for i in range(min(turns, TURNS_MOST)):
        v = numpy.tanh(v @ weights["R"])
        h = numpy.tanh(0.5 * numpy.tanh(h @ weights["U"].T) @ weights["U"].T + weights["b"] + v)
        loss += (h * scale).sum()
        if i + 1 >= limit:
            break
    return loss + h.sum() + v.sum()


@pytest.mark.parametrize("rows", [2, 40])
def test_products_over_turns_are_differences_however_often_a_loop_runs(compile, rnncc, tmp_path, rows):
    """Of 2 rows a turn has little to keep beside its sums, of 40 it has more than they are: then each turn adds its own."""
    path = multiplying_loop(rows).write(tmp_path)
    assert behind_the_last_loop(rnncc, path, "Gemm") == (3 if rows == 2 else 1)
    trainers = [trainer_of(compile(path, "--train"), threads) for threads in (1, 4)]
    for turns, limit in ((3, 9), (0, 9), (20, 20), (7, 4)):
        feeds = {"turns": numpy.array(turns), "limit": numpy.array(limit),
                 "scale": numpy.random.default_rng(turns).uniform(-1, 1, (rows, H)).astype(numpy.float32)}
        found = [gradients_of(trainer, feeds)[1] for trainer in trainers]
        due = differences(lambda moved: loss_of_loop(moved, turns, limit, feeds["scale"].astype(float)), trainers[0].weights())
        for name, array in due.items():
            assert numpy.abs(found[0][name] - array).max() < ERROR * max(1, numpy.abs(array).max()), (turns, name)
            assert found[0][name].tobytes() == found[1][name].tobytes()


# ---- recurrent layers ----

LAYERS = {"RNN": (1, {}), "GRU": (3, {}), "GRU_reset_after": (3, {"linear_before_reset": 1}), "LSTM": (4, {})}


def layer(kind, rows, in_turns):
    """A layer of all steps; or a loop over layers of one, of which all weights are read from outside."""
    gates, attributes = LAYERS[kind]
    rng, model, op = numpy.random.default_rng(rows), Model(kind), kind.split("_")[0]
    T = model.dim("T", 1, 5, 9)
    x = model.input("x", "f32", [T, rows, I])
    shapes = {"W": (1, gates * H, I), "R": (1, gates * H, H), "B": (1, 2 * gates * H), "h0": (1, rows, H)}
    if op == "LSTM":
        shapes |= {"c0": (1, rows, H), "P": (1, 3 * H)}
    weights = {name: weight(model, name, rng.uniform(-0.7, 0.7, shape)) for name, shape in shapes.items()}
    scale = model.input("scale", "f32", [T, 1, rows, H])

    def layer_of(at, x, h, *c):
        more = [*c, weights["P"]] if c else []
        return at.node(op, [x, weights["W"], weights["R"], weights["B"], None, h, *more], 3 if c else 2, hidden_size=H, **attributes)

    states = [weights[name] for name in ("h0", "c0") if name in weights]
    if not in_turns:
        y, *last = layer_of(model, x, *states)
        return total(model, model.node("Mul", [y, scale]), *last)
    zero = model.constant(numpy.array([0]))

    def turn(body, *inputs):
        y, *last = layer_of(body, body.node("Unsqueeze", [inputs[-1], zero]), *inputs[:-1])
        return [*last, body.node("Squeeze", [y, zero])]

    body = body_of(model, turn, **dict.fromkeys(("h", "c")[:len(states)], "f32"), x="f32")
    found = model.node("Scan", [*states, x], len(states) + 1, body=body, num_scan_inputs=1)
    return total(model, model.node("Mul", [found[-1], scale]), *found[:-1])


@pytest.mark.every_case
@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("rows", [2, 30])
def test_a_layer_of_each_turn_has_the_gradients_of_one_of_all_steps(compile, rnncc, tmp_path, kind, rows):
    """Of 2 samples a turn has less to keep than its weights' gradients are; of 30 it has more."""
    modules = []
    for name, in_turns in (("whole", False), ("turns", True)):
        (tmp_path / name).mkdir()
        path = layer(kind, rows, in_turns).write(tmp_path / name)
        modules.append(compile(path, "--train"))
    assert behind_the_last_loop(rnncc, path, kind.split("_")[0] + "Gradient") == (rows == 2)
    rng = numpy.random.default_rng(1)
    for steps in (1, 9):
        feeds = {"x": rng.uniform(-1, 1, (steps, rows, I)).astype(numpy.float32),
                 "scale": rng.uniform(-1, 1, (steps, 1, rows, H)).astype(numpy.float32)}
        due, found, same = (gradients_of(trainer_of(module, threads), feeds)[1] for module, threads in
                            ((modules[0], 1), (modules[1], 1), (modules[1], 4)))
        for name, array in due.items():
            assert numpy.abs(found[name] - array).max() < ERROR * max(1, numpy.abs(array).max()), (steps, name)
            assert found[name].tobytes() == same[name].tobytes()
