# SPDX-License-Identifier: MIT
"""What no iteration of a loop changes, matrices of products and of recurrent layers, is packed before the loop: of loops in
loops before the outermost that it stays the same in."""
import re

import numpy
import pytest

from support.bodies import Body
from support.model_builder import Model
from support.module import rnncc as package

H, B = 20, 3
MOST = 9  # turns


def loop(outer, turns, carried, step, model):
    """A Loop whose body makes of what is carried, as a list, the next."""
    body = Body(model, i="i64", c="bool", **{f"carried{k}": "f32" for k in range(len(carried))})
    results = step(body, *body.inputs[2:])
    body.output(body.inputs[1], *results)
    found = outer.node("Loop", [turns, None, *carried], len(carried), body=body)
    return found if isinstance(found, (list, tuple)) else [found]


def turns_of(model, name):
    return model.node("Min", [model.input(name, "i64", []), model.constant(numpy.array(MOST))])


def branches(body, model, condition, value, matrix):
    """The value times the matrix, or as it is."""
    taken, other = Body(model), Body(model)
    taken.output(taken.node("MatMul", [value, matrix]))
    other.output(other.node("Identity", [value]))
    return body.node("If", [condition], then_branch=taken, else_branch=other)


def products():
    """W stays in both loops, V, too, in a branch; U in the inner one alone."""
    model = Model()
    h, w, v, u = (model.input(name, "f32", shape) for name, shape in {"h": [B, H], "W": [H, H], "V": [H, H], "U": [H, H]}.items())
    outer_turns, inner_turns, choice = turns_of(model, "n"), turns_of(model, "m"), model.input("c", "bool", [])
    half = model.constant(numpy.float32(0.5))

    def inner(u):
        def step(body, h):
            h = body.node("Tanh", [body.node("MatMul", [h, w])])
            return [body.node("MatMul", [branches(body, model, choice, h, v), u])]
        return step

    def outer(body, h, u):
        return [*loop(body, inner_turns, [h], inner(u), model), body.node("Mul", [u, half])]

    last, _ = loop(model, outer_turns, [h, u], outer, model)
    model.output(last)
    return model


def expected(feeds):
    h, u = feeds["h"].astype(float), feeds["U"].astype(float)
    for _ in range(min(int(feeds["n"]), MOST)):
        for _ in range(min(int(feeds["m"]), MOST)):
            h = numpy.tanh(h @ feeds["W"])
            h = (h @ feeds["V"] if feeds["c"] else h) @ u
        u = u / 2
    return h


def depths(rnncc, path):
    """Of each packing in the schedule, in how many loops it is."""
    done = rnncc("inspect", path, "--dump-after=lower")
    assert done.returncode == 0, done.stderr
    found, loops = [], []
    for line in done.stderr.splitlines():
        indent = len(line) - len(line.lstrip())
        while loops and line.strip() and indent <= loops[-1]:
            loops.pop()
        if re.match(r"\s*loop ", line):
            loops.append(indent)
        elif re.match(r"\s*k\d+_pack_panels ", line):
            found.append(len(loops))
    return found


def test_products(rnncc, compile, tmp_path):
    rng = numpy.random.default_rng(1)
    path = products().write(tmp_path)
    assert sorted(depths(rnncc, path)) == [0, 0, 1]
    feeds = {name: rng.uniform(-0.6, 0.6, (B if name == "h" else H, H)).astype(numpy.float32) for name in "hWVU"}
    module = compile(path)
    for threads in (1, 2):
        with package.load(module, threads=threads, share_all=True) as loaded:
            for n, m, c in ((0, 3, True), (1, 1, False), (3, 2, True), (MOST, 0, True)):
                feeds |= {"n": numpy.array(n), "m": numpy.array(m), "c": numpy.array(c)}
                (y,) = loaded.run(feeds).values()
                assert numpy.abs(y - expected(feeds)).max() <= 1e-5, (n, m, c)


def test_at_most_one_iteration(rnncc, tmp_path):
    """A branch packs in its own place: it may not be taken."""
    model = Model()
    h, w, choice = model.input("h", "f32", [B, H]), model.input("W", "f32", [H, H]), model.input("c", "bool", [])
    turns = model.node("Min", [model.input("n", "i64", []), model.constant(numpy.array(1))])
    model.output(*loop(model, turns, [h], lambda body, h: [branches(body, model, choice, h, w)], model))
    assert depths(rnncc, model.write(tmp_path)) == [1]


T = 4


def layer(model, body, x, inputs):
    """[T, B, H] of [T, B, H]."""
    y, _ = body.node("GRU", [x, *inputs], 2, hidden_size=H)
    return body.node("Squeeze", [y, model.constant(numpy.array([1]))])


def recurrent(looped):
    model = Model()
    x = model.input("x", "f32", [T, B, H])
    inputs = [model.input(name, "f32", shape) for name, shape in {"W": [1, 3 * H, H], "R": [1, 3 * H, H], "b": [1, 6 * H]}.items()]
    if looped:
        (x,) = loop(model, turns_of(model, "n"), [x], lambda body, x: [layer(model, body, x, inputs)], model)
    model.output(x if looped else layer(model, model, x, inputs))
    return model


def test_recurrent_layers(rnncc, compile, tmp_path):
    """The same bits as of the layer alone, as often, and its memory, once."""
    rng, modules, arenas = numpy.random.default_rng(2), [], []
    for looped in (True, False):
        folder = tmp_path / str(looped)
        folder.mkdir()
        path = recurrent(looped).write(folder)
        assert set(depths(rnncc, path)) == {0}
        modules.append(compile(path))
        arenas.append(int(re.search(r"arena +(\d+)", rnncc("inspect", path).stdout)[1]))
    assert arenas[0] - arenas[1] < 4 * 2 * 3 * H * H  # W and R
    x = rng.uniform(-1, 1, (T, B, H)).astype(numpy.float32)
    feeds = {name: rng.uniform(-0.5, 0.5, shape).astype(numpy.float32)
             for name, shape in {"W": (1, 3 * H, H), "R": (1, 3 * H, H), "b": (1, 6 * H)}.items()}
    with package.load(modules[0], threads=2, share_all=True) as ours, package.load(modules[1], threads=1) as alone:
        due = x
        for _ in range(3):
            (due,) = alone.run({"x": due, **feeds}).values()
        (y,) = ours.run({"x": x, "n": numpy.array(3), **feeds}).values()
    assert y.tobytes() == due.tobytes()


def whole(model, *numbers):
    return model.constant(numpy.array(numbers))


def total(model, body, rows, layer_of_rows):
    """The sums of what is made of the rows, also of none."""
    return body.node("ReduceSum", [layer_of_rows(body, rows), whole(model, 0)], keepdims=0)


def growing(model, x, made):
    """Rows are carried: none at first, one more in each turn."""
    def step(body, sums, rows):
        row = body.node("Gather", [x, body.node("Unsqueeze", [body.inputs[0], whole(model, 0)])])
        return [body.node("Add", [sums, total(model, body, rows, made)]), body.node("Concat", [rows, row], axis=0)]
    return step, [model.constant(numpy.zeros((0, H), numpy.float32))]


def first(model, x, made):
    """As many rows as turns before."""
    def step(body, sums):
        rows = body.node("Slice", [x, whole(model, 0), body.node("Unsqueeze", [body.inputs[0], whole(model, 0)]), whole(model, 0)])
        return [body.node("Add", [sums, total(model, body, rows, made)])]
    return step, []


def chosen(model, x, made):
    """The rows with a positive element in the turn's column."""
    def step(body, sums):
        column = body.node("Relu", [body.node("Gather", [x, body.inputs[0]], axis=1)])
        rows = body.node("Gather", [x, body.node("Squeeze", [body.node("NonZero", [column]), whole(model, 0)])])
        return [body.node("Add", [sums, total(model, body, rows, made)])]
    return step, []


def product(model):
    w = model.input("W", "f32", [H, H])
    return lambda body, rows: body.node("MatMul", [rows, w])


def samples(model):
    """Of a layer: its last states, of two equal steps."""
    inputs = [model.input(name, "f32", [1, 3 * H, H]) for name in "WR"]

    def of_rows(body, rows):
        x = body.node("Unsqueeze", [rows, whole(model, 0)])
        _, y = body.node("GRU", [body.node("Concat", [x, x], axis=0), *inputs], 2, hidden_size=H)
        return body.node("Squeeze", [y, whole(model, 0)])
    return of_rows


def gru(x, w, r):
    h = numpy.zeros(x.shape)
    (wz, wr, wh), (rz, rr, rh) = (numpy.split(matrix[0].astype(float), 3) for matrix in (w, r))
    for _ in range(2):
        z, reset = (1 / (1 + numpy.exp(-x @ a.T - h @ b.T)) for a, b in ((wz, rz), (wr, rr)))
        h = (1 - z) * numpy.tanh(x @ wh.T + reset * h @ rh.T) + z * h
    return h


FROM_ROWS = {product: lambda rows, feeds: rows @ feeds["W"], samples: lambda rows, feeds: gru(rows, feeds["W"], feeds["R"])}


@pytest.mark.parametrize("made", FROM_ROWS)
@pytest.mark.parametrize("rows", [growing, first, chosen])
def test_extents_that_iterations_change(rnncc, compile, tmp_path, rows, made):
    """What is packed before the loop waits for no extent of an iteration, and is there though the first has no rows."""
    model = Model()
    x, turns = model.input("x", "f32", [MOST, H]), turns_of(model, "n")
    step, carried = rows(model, x, made(model))
    sums, *_ = loop(model, turns, [model.constant(numpy.zeros(H, numpy.float32)), *carried], step, model)
    model.output(sums)
    path, rng = model.write(tmp_path), numpy.random.default_rng(3)
    assert set(depths(rnncc, path)) == {0}
    feeds = {it["name"]: rng.uniform(-0.5, 0.5, it["shape"]).astype(numpy.float32) for it in model.inputs if it["name"] != "n"}
    feeds["x"][:, 0] = -1
    module, x = compile(path), feeds["x"].astype(float)
    of_turns = [FROM_ROWS[made](x[x[:, i] > 0] if rows is chosen else x[:i], feeds).sum(axis=0) for i in range(MOST)]
    for threads in (1, 2):
        with package.load(module, threads=threads, share_all=True) as loaded:
            for n in (0, 1, 2, MOST):
                (y,) = loaded.run(feeds | {"n": numpy.array(n)}).values()
                due = sum(of_turns[:n], numpy.zeros(H))
                assert numpy.abs(y - due).max() <= 1e-5 * max(1, numpy.abs(due).max()), n
