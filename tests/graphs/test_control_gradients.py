# SPDX-License-Identifier: MIT
"""Gradients through If, Loop and Scan that stay: of run-time lengths, directions, axes and draws, of weights that only
bodies read. Sums over all turns: test_gradients_over_turns.py. Of each operator within them: test_gradients.py, whose differences are ONNX's reference's; here NumPy's, as
that one scans along first axes alone, and forwards."""
import json

import numpy
import pytest

from graphs.gradient_models import Builder
from graphs.test_gradients import difference, in_double, loss_in_double
from support.amount import long_tests
from support.bodies import body_of
from support.model_builder import Model
from support.module import rnncc as package
from support.trainers import gradients_of, trainer_of

STEP = 2.0**-20  # as in test_gradients.py
ERROR = 2.0**-17  # of the largest gradient of a weight: some 100 roundings in f32


def weight(model, name, array):
    return model.constant(numpy.asarray(array, numpy.float32), name)


def total(model, *values):
    sums = [model.node("ReduceSum", [value], keepdims=0) for value in values]
    model.output(sums[0] if len(sums) == 1 else model.node("Sum", sums, ["loss"]))
    return model


# ---- a cell, scanned along any axis in either direction, of any length ----

B, I, H = 3, 4, 5


def scanned_cell(axis, backwards):
    """h = tanh(x W + h R), and a second state that counts in integers; losses of the last h, and of all."""
    rng = numpy.random.default_rng(1)
    model = Model("cell")
    T = model.dim("T", 1, 5, 12)
    x = model.input("x", "f32", [T, B, I] if axis == 0 else [B, T, I] if axis == 1 else [B, I, T])
    w, r, h0 = (weight(model, name, rng.uniform(-0.7, 0.7, shape)) for name, shape in
                {"W": (I, H), "R": (H, H), "h0": (B, H)}.items())
    one = model.constant(numpy.array(1))

    def step(body, h, n, x):
        new = body.node("Tanh", [body.node("Add", [body.node("MatMul", [x, w]), body.node("MatMul", [h, r])])])
        count = body.node("Add", [n, one])
        return [new, count, body.node("Mul", [new, body.node("Cast", [count], to="f32")])]

    body = body_of(model, step, h="f32", n="i64", x="f32")
    last, _, steps = model.node("Scan", [h0, model.constant(numpy.array(0)), x], 3, body=body, num_scan_inputs=1,
                                scan_input_axes=[axis], scan_input_directions=[backwards],
                                scan_output_axes=[axis and 1], scan_output_directions=[1 - backwards])
    scale = model.input("scale", "f32", [T, 1, 1] if axis == 0 else [1, T, 1])
    return total(model, last, model.node("Mul", [steps, scale]))


def loss_of_cell(weights, x, scale, axis, backwards):
    x, scale = numpy.moveaxis(x, axis, 0), scale.reshape(-1)
    h, losses, steps = weights["h0"], [], len(x)
    for t in range(steps):
        h = numpy.tanh((x[::-1] if backwards else x)[t] @ weights["W"] + h @ weights["R"])
        losses.append((t + 1) * h.sum())
    return h.sum() + (numpy.array(losses if backwards else losses[::-1]) * scale).sum()


def differences(loss, weights):
    """Of each element of each weight, in double precision."""
    result = {}
    for name, array in weights.items():
        result[name] = numpy.zeros(array.shape)
        for place in numpy.ndindex(*array.shape):
            sides = []
            for sign in (1, -1):
                moved = {key: it.astype(float) for key, it in weights.items()}
                moved[name][place] += sign * STEP
                sides.append(loss(moved))
            result[name][place] = (sides[0] - sides[1]) / (2 * STEP)
    return result


@pytest.mark.parametrize("axis, backwards", [(0, 0), (0, 1), (1, 1), (-1, 0)])
def test_gradients_of_a_cell_are_differences_at_every_length(compile, tmp_path, axis, backwards):
    module = compile(scanned_cell(axis, backwards).write(tmp_path), "--train")
    trainers, rng = [trainer_of(module, threads) for threads in (1, 4)], numpy.random.default_rng(2)
    for steps in (1, 12, 5):
        shape = [B, I]
        shape.insert(axis % 3, steps)
        x, scale = rng.uniform(-1, 1, shape).astype(numpy.float32), rng.uniform(-1, 1, steps).astype(numpy.float32)
        feeds = {"x": x, "scale": scale.reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))}
        found = [gradients_of(trainer, feeds)[1] for trainer in trainers]
        due = differences(lambda moved: loss_of_cell(moved, x.astype(float), scale.astype(float), axis, backwards),
                          trainers[0].weights())
        for name, array in due.items():
            assert numpy.abs(found[0][name] - array).max() < ERROR * max(1, numpy.abs(array).max()), (steps, name)
            assert found[0][name].tobytes() == found[1][name].tobytes()


def test_steps_of_an_optimiser_change_what_bodies_read(compile, tmp_path):
    """The loss falls, and is the same on any number of threads."""
    module, seen = compile(scanned_cell(0, 0).write(tmp_path), "--train"), []
    rng = numpy.random.default_rng(3)
    feeds = {"x": rng.uniform(-1, 1, (9, B, I)).astype(numpy.float32), "scale": numpy.ones((9, 1, 1), numpy.float32)}
    for threads in (1, 4):
        trainer, losses = trainer_of(module, threads), []
        for _ in range(5):
            losses.append(float(gradients_of(trainer, feeds)[0]["loss"]))
            trainer.step("adam", 0.05)
        seen.append((losses, {name: array.tobytes() for name, array in trainer.weights().items()}))
    assert seen[0] == seen[1] and all(a > b for a, b in zip(seen[0][0], seen[0][0][1:]))


# ---- random bodies within bodies ----

SIZE, TURNS = 4, 3  # of vectors, as ONNX's reference joins what a loop collects of matrices


class Maker:
    """Values of random operators and control flow, of a model or body and what is in scope there."""

    def __init__(self, number):
        self.rng, self.model = numpy.random.default_rng([7, number]), Model("random")
        self.builder = Builder(self.model, "r", number)
        self.weights = [self.builder.weight(SIZE, low=-1, high=1) for _ in range(3)]
        self.square = self.builder.weight(SIZE, SIZE, low=-0.5, high=0.5)
        self.rows = self.builder.weight(TURNS, SIZE, low=-1, high=1)
        self.zero, self.yes, self.one = (self.model.constant(it) for it in (numpy.float32(0), numpy.array(True), numpy.array(1)))
        self.turns = self.model.node("Min", [self.builder.input(numpy.array(TURNS - 1), "i64"), self.model.constant(numpy.array(TURNS))])

    def pick(self, scope):
        return scope[self.rng.integers(len(scope))]

    def value(self, at, scope, depth):
        kind = self.rng.integers(6 if depth else 3)
        a, b = self.pick(scope), self.pick(scope)
        if kind == 0:
            return at.node(str(self.rng.choice(["Tanh", "Sin", "Sigmoid"])), [a])
        if kind == 1:
            return at.node("Tanh", [at.node(str(self.rng.choice(["Add", "Mul", "Sub"])), [a, b])])
        if kind == 2:
            return at.node("MatMul", [a, self.square])
        return (self.branch, self.loop, self.scan)[kind - 3](at, scope, depth - 1, a, b)

    def last_of(self, at, scope, depth, steps=3):
        scope = list(scope)
        for _ in range(steps):
            scope.append(self.value(at, scope, depth))
        return scope[-1], at.node("Add", scope[-2:])

    def branch(self, at, scope, depth, a, b):
        positive = at.node("Greater", [at.node("ReduceSum", [a], keepdims=0), self.zero])
        both = {name: body_of(self.model, lambda e: self.last_of(e, [*scope, b], depth)[1]) for name in ("then_branch", "else_branch")}
        return at.node("If", [positive], **both)

    def collected(self, at, last, all_turns):
        return at.node("Add", [last, at.node("ReduceSum", [all_turns, self.model.constant(numpy.array([0]))], keepdims=0)])

    def loop(self, at, scope, depth, a, b):
        def turn(e, i, c, s, t):
            last, other = self.last_of(e, [*scope, s, t], depth)
            return [e.node("Less", [i, self.one]), e.node("Tanh", [last]), s, other]

        body = body_of(self.model, turn, i="i64", c="bool", s="f32", t="f32")
        last, _, all_turns = at.node("Loop", [self.turns, self.yes, a, b], 3, body=body)
        return self.collected(at, last, all_turns)

    def scan(self, at, scope, depth, a, b):
        def turn(e, s, x):
            last, other = self.last_of(e, [*scope, b, s, x], depth)
            return [e.node("Sin", [other]), last]

        body = body_of(self.model, turn, s="f32", x="f32")
        return self.collected(at, *at.node("Scan", [a, self.rows], 2, body=body, num_scan_inputs=1))


@pytest.mark.parametrize("number", range(60 if long_tests() else 6))
def test_gradients_of_random_bodies_are_differences(compile, tmp_path, number):
    maker = Maker(number)
    control = maker.rng.permutation([maker.branch, maker.loop, maker.scan])
    scope = list(maker.weights)
    for make in control[:2]:
        scope.append(make(maker.model, scope, 1, maker.pick(scope), maker.pick(scope)))
    maker.model.output(maker.builder.loss(maker.model.node("Add", scope[-2:]), (SIZE,)))
    module, feeds = compile(maker.model.write(tmp_path), "--train"), maker.builder.feeds
    found = [gradients_of(trainer_of(module, threads), feeds)[1] for threads in (1, 4)]
    for name, array in maker.builder.weights.items():
        if name not in found[0]:
            continue  # the loss does not depend on it
        due = difference(loss_in_double, maker.model, name, array, in_double(feeds))
        assert numpy.abs(found[0][name] - due).max() < ERROR * max(1, numpy.abs(due).max()), name
        assert found[0][name].tobytes() == found[1][name].tobytes()


# ---- weights that only bodies read ----

def in_a_loop():
    """30 w + x, and a weight that the loop begins with."""
    model = Model()
    x = model.input("x", "f32", [2, 3])
    weight(model, "w", numpy.ones((2, 3)))
    body = body_of(model, lambda b, i, c, y: [c, b.node("Add", [y, "w"])], i="i64", c="bool", y="f32")
    start = weight(model, "start", numpy.zeros((2, 3)))
    return total(model, x, model.node("Loop", [model.constant(numpy.array(30)), None, start], body=body))


def test_a_weight_that_only_a_loop_reads_is_trained(compile, tmp_path):
    trainer = trainer_of(compile(in_a_loop().write(tmp_path), "--train"))
    assert set(trainer.names) == {"w", "start"}
    for rate, due in ((0.1, 180), (0.5, 180 - 6 * (30 * 30 * 0.1 + 0.1))):
        loss, gradients = gradients_of(trainer, {"x": numpy.zeros((2, 3), numpy.float32)})
        assert abs(loss["loss"] - due) < 1e-3
        assert (gradients["w"] == 30).all() and (gradients["start"] == 1).all()
        trainer.step("sgd", rate)


def test_a_weight_that_a_loop_hands_on_as_it_is_has_a_gradient_of_each_turn(compile, tmp_path):
    """By an Identity, as exporters write it."""
    model = Model()
    x, w, start = model.input("x", "f32", [3]), weight(model, "w", numpy.full(3, 2)), weight(model, "start", numpy.zeros(3))
    body = body_of(model, lambda b, i, c, y, s: [c, b.node("Add", [y, s]), b.node("Identity", [s])], i="i64", c="bool", y="f32", s="f32")
    last, _ = model.node("Loop", [model.constant(numpy.array(30)), None, start, w], 2, body=body)
    trainer = trainer_of(compile(total(model, x, last).write(tmp_path), "--train"))
    _, gradients = gradients_of(trainer, {"x": numpy.zeros(3, numpy.float32)})
    assert (gradients["w"] == 30).all() and (gradients["start"] == 1).all()


def in_branches():
    """One weight that both read, also within a branch of a branch, and one that only one does."""
    model = Model()
    model.input("c", "bool", [])
    weight(model, "w", numpy.full((2, 3), 0.5))
    weight(model, "v", numpy.full(3, 2))
    inner = {name: body_of(model, lambda b, op=op: b.node(op, ["w"])) for name, op in
             (("then_branch", "Tanh"), ("else_branch", "Neg"))}
    outer = {"then_branch": body_of(model, lambda b: b.node("Mul", [b.node("If", ["c"], **inner), "v"])),
             "else_branch": body_of(model, lambda b: b.node("Exp", ["w"]))}
    return total(model, model.node("If", ["c"], **outer))


def test_a_branch_that_is_not_taken_hands_back_zeros(compile, tmp_path):
    trainer = trainer_of(compile(in_branches().write(tmp_path), "--train"))
    _, gradients = gradients_of(trainer, {"c": numpy.array(True)})
    assert numpy.allclose(gradients["w"], 2 * (1 - numpy.tanh(0.5)**2), rtol=1e-6)
    assert numpy.allclose(gradients["v"], 2 * numpy.tanh(0.5), rtol=1e-6)
    _, gradients = gradients_of(trainer, {"c": numpy.array(False)})
    assert numpy.allclose(gradients["w"], numpy.exp(0.5), rtol=1e-6) and (gradients["v"] == 0).all()


@pytest.mark.parametrize("option", ["--train", "--train=w"])
def test_bodies_own_weights_of_one_name_are_two(compile, tmp_path, option):
    """Each body declares a `w`, and reads it twice."""
    model = Model()
    x = model.input("x", "f32", [2])
    both = {name: body_of(model, lambda b: b.node("Mul", [b.node("Mul", [x, "w"]), "w"])) for name in ("then_branch", "else_branch")}
    total(model, model.node("If", [model.input("c", "bool", [])], **both))
    path = model.write(tmp_path)
    text = json.loads(path.read_text())
    for number, name in enumerate(both):
        text["nodes"][0]["attributes"][name]["constants"] = {"w": {"dtype": "f32", "shape": [2], "data": [number, 5]}}
    path.write_text(json.dumps(text))
    trainer = trainer_of(compile(path, option))
    assert set(trainer.names) == {"w", "w_"}
    _, gradients = gradients_of(trainer, {"x": numpy.array([2, 3], numpy.float32), "c": numpy.array(False)})
    zero, other = sorted(trainer.names, key=lambda name: trainer.weights()[name][0])
    assert (gradients[zero] == 0).all() and (gradients[other] == [4, 30]).all()


@pytest.mark.parametrize("outside", [False, True])
def test_a_weight_that_a_branch_reads_once_its_loop_is_written_out_is_trained(compile, tmp_path, outside):
    """What three turns begin with: the first turn's If reads it; the loss, too, or not."""
    model = Model()
    start, c = weight(model, "start", numpy.full(2, 0.5)), model.input("c", "bool", [])

    def turn(b, i, go_on, y):
        both = {name: body_of(model, lambda e, op=op: e.node(op, [y])) for name, op in
                (("then_branch", "Tanh"), ("else_branch", "Neg"))}
        return [go_on, b.node("If", [c], **both)]

    body = body_of(model, turn, i="i64", c="bool", y="f32")
    total(model, model.node("Loop", [model.constant(numpy.array(3)), None, start], body=body), *[start] * outside)
    trainer = trainer_of(compile(model.write(tmp_path), "--train"))
    _, gradients = gradients_of(trainer, {"c": numpy.array(False)})
    assert (gradients["start"] == outside - 1).all()
    _, gradients = gradients_of(trainer, {"c": numpy.array(True)})
    due, y = 1, 0.5
    for _ in range(3):
        y = numpy.tanh(y)
        due *= 1 - y * y
    assert numpy.allclose(gradients["start"], due + outside, rtol=1e-6)


def an_extent(b, x):
    return b.node("Gather", [b.node("Shape", [b.node("NonZero", [x])]), b.constant(numpy.array(1))])


def a_sum_of_floats(b, x):
    """The loop alone knows how often it has run."""
    count = b.node("ReduceSum", [b.node("Sign", [x])], keepdims=0)
    return b.node("Min", [b.node("Cast", [count], to="i64"), b.constant(numpy.array(8))])


@pytest.mark.every_case
@pytest.mark.parametrize("within", ["Scan", "If"])
@pytest.mark.parametrize("turns_of", [an_extent, a_sum_of_floats])
def test_a_loop_in_a_body_runs_as_often_as_the_body_finds(compile, tmp_path, within, turns_of):
    """It adds w for each element of x that is not 0."""
    model = Model()
    w, start = weight(model, "w", numpy.ones(3)), model.constant(numpy.zeros(3, numpy.float32))

    def added(b, x):
        turns = turns_of(b, x)
        return b.node("Loop", [turns, None, start], body=body_of(model, lambda e, i, c, y: [c, e.node("Add", [y, w])],
                                                                 i="i64", c="bool", y="f32"))

    x = model.input("x", "f32", [2, 4])
    if within == "Scan":
        body = body_of(model, lambda b, s, row: b.node("Add", [s, added(b, row)]), s="f32", row="f32")
        y = model.node("Scan", [start, x], body=body, num_scan_inputs=1)
    else:
        both = {name: body_of(model, build) for name, build in
                (("then_branch", lambda b: added(b, x)), ("else_branch", lambda b: b.node("Neg", [w])))}
        y = model.node("If", [model.input("c", "bool", [])], **both)
    trainer = trainer_of(compile(total(model, y).write(tmp_path), "--train=w"))
    feeds = {"x": numpy.array([[0, 1, 2, 0], [3, 0, 0, 0]], numpy.float32)}
    _, gradients = gradients_of(trainer, feeds | ({} if within == "Scan" else {"c": numpy.array(True)}))
    assert (gradients["w"] == 3).all()


@pytest.mark.optimised_here
def test_a_loop_may_have_no_turn(compile, tmp_path):
    model = Model()
    w = weight(model, "w", numpy.ones(3))
    body = body_of(model, lambda b, i, c, y: [c, b.node("Sin", [b.node("Mul", [y, w])])], i="i64", c="bool", y="f32")
    most = model.node("Min", [model.input("turns", "i64", []), model.constant(numpy.array(20))])
    total(model, model.node("Loop", [most, None, weight(model, "start", numpy.full(3, 2))], body=body))
    trainer = trainer_of(compile(model.write(tmp_path), "--train"))
    _, gradients = gradients_of(trainer, {"turns": numpy.array(0)})
    assert (gradients["w"] == 0).all() and (gradients["start"] == 1).all()
    _, gradients = gradients_of(trainer, {"turns": numpy.array(1)})
    assert numpy.allclose(gradients["w"], 2 * numpy.cos(2), rtol=1e-6)
    assert numpy.allclose(gradients["start"], numpy.cos(2), rtol=1e-6)


def test_gradients_of_inputs_go_through_loops(compile, tmp_path):
    """With the loss outside of the module; the condition ends the loop."""
    model = Model()
    x, x2 = model.input("x", "f32", [4]), weight(model, "scale", numpy.full(4, 2))
    limit = model.constant(numpy.array(3))

    def step(b, i, c, y):
        return [b.node("Less", [i, limit]), b.node("Mul", [y, x2])]

    body = body_of(model, step, i="i64", c="bool", y="f32")
    model.output(model.node("Loop", [None, model.constant(numpy.array(True)), x], ["y"], body=body))
    trainer = trainer_of(compile(model.write(tmp_path), "--train", "--outer-loss"))
    x = numpy.arange(4, dtype=numpy.float32)
    assert (trainer(x) == 16 * x).all()
    found = trainer.backward_from({"y": numpy.ones(4, numpy.float32)})
    assert (found["x"] == 16).all() and (trainer.gradients()["scale"] == 32 * x).all()


# ---- draws ----

@pytest.mark.parametrize("op", ["Loop", "Scan"])
def test_what_a_turn_drops_its_gradient_drops(compile, tmp_path, op):
    """The sum of what all turns keep of w is w's gradient, as w is 1; each turn and run drops other elements."""
    model = Model()
    w, ratio = weight(model, "w", numpy.ones(40)), model.constant(numpy.float32(0.5), "ratio")
    start, feeds = model.constant(numpy.zeros(40, numpy.float32), "start"), {"ones": numpy.ones((20, 1), numpy.float32)}
    ones = model.input("ones", "f32", [20, 1])

    def turn(b, s, one):
        kept = b.node("Dropout", [b.node("Mul", [w, one]), ratio])
        return [b.node("Add", [s, kept]), b.node("Identity", [kept])]

    if op == "Scan":
        last, all_turns = model.node(op, [start, ones], 2, body=body_of(model, turn, s="f32", one="f32"), num_scan_inputs=1)
    else:
        body = body_of(model, lambda b, i, c, s: [c, *turn(b, s, b.node("Gather", [ones, i]))], i="i64", c="bool", s="f32")
        turns = model.node("Min", [model.input("turns", "i64", []), model.constant(numpy.array(20))])
        last, all_turns = model.node(op, [turns, None, start], 2, body=body)
        feeds["turns"] = numpy.array(20)
    model.output(model.node("ReduceSum", [last], ["loss"], keepdims=0), model.node("Identity", [all_turns], ["turned"]))
    trainer = trainer_of(compile(model.write(tmp_path), "--train=w"))
    seen = []
    for _ in range(2):
        results, gradients = gradients_of(trainer, feeds)
        assert (gradients["w"] == results["turned"].sum(0)).all()
        seen += [turn.tobytes() for turn in results["turned"]]
    assert len(set(seen)) == 40


# ---- what is not finite ----

def test_a_branch_that_is_not_taken_gives_no_nan(compile, tmp_path):
    """log(0) in the other branch, of each turn."""
    model = Model()
    w, x = weight(model, "w", numpy.ones(2)), model.input("x", "f32", [3, 2])
    zero = model.constant(numpy.float32(0))

    def turn(b, s, x):
        positive = b.node("Greater", [b.node("ReduceSum", [x], keepdims=0), zero])
        both = {"then_branch": body_of(model, lambda e: e.node("Log", [e.node("Mul", [x, w])])),
                "else_branch": body_of(model, lambda e: e.node("Mul", [w, w]))}
        return b.node("Add", [s, b.node("If", [positive], **both)])

    start = model.constant(numpy.zeros(2, numpy.float32), "start")
    total(model, model.node("Scan", [start, x], body=body_of(model, turn, s="f32", x="f32"), num_scan_inputs=1))
    trainer = trainer_of(compile(model.write(tmp_path), "--train=w"))
    _, gradients = gradients_of(trainer, {"x": numpy.array([[1, 2], [0, 0], [3, 3]], numpy.float32)})
    assert (gradients["w"] == 4).all()  # 1 / w, 2 w, 1 / w
    _, gradients = gradients_of(trainer, {"x": numpy.array([[1, 2], [0, numpy.nan], [1, 1]], numpy.float32)})
    assert (gradients["w"] == 4).all()  # NaN is not above 0
    gradients_of(trainer, {"x": numpy.array([[1, 2], [3, numpy.inf], [1, 1]], numpy.float32)})
    with pytest.raises(package.DataError, match="gradient of 'w' has a number that is not finite"):
        trainer.step("sgd", 0.1)
    assert (trainer.weights()["w"] == 1).all()


# ---- what is refused ----

def looped(model, step, trip, *carried, condition=None, **types):
    body = body_of(model, step, i="i64", c="bool", **types)
    return model.node("Loop", [trip, condition, *carried], len(carried), body=body)


def growing():
    model = Model()
    turns = model.node("Min", [model.input("turns", "i64", []), model.constant(numpy.array(9))])
    step = lambda b, i, c, y: [c, b.node("Concat", [y, y[:0] or "w"], axis=0)]
    weight(model, "w", numpy.ones((1, 3)))
    return total(model, looped(model, step, turns, weight(model, "start", numpy.ones((1, 3))), y="f32"))


def without_a_bound():
    model = Model()
    weight(model, "w", numpy.ones(3))
    step = lambda b, i, c, y: [c, b.node("Mul", [y, "w"])]
    return total(model, looped(model, step, model.input("turns", "i64", []), weight(model, "start", numpy.ones(3)), y="f32"))


def without_a_count():
    model = Model()
    weight(model, "w", numpy.ones(3))
    yes, limit = model.constant(numpy.array(True)), model.input("limit", "f32", [])
    step = lambda b, i, c, y: [b.node("Less", [b.node("ReduceSum", [y], keepdims=0), limit]), b.node("Add", [y, "w"])]
    return total(model, looped(model, step, None, weight(model, "start", numpy.ones(3)), condition=yes, y="f32"))


def operators_within():
    """One in a branch of a loop, one in the loop, one outside; one that the loss does not depend on."""
    model = Model()
    w = weight(model, "w", numpy.eye(3))
    both = {name: body_of(model, lambda b, op=op: b.node(op, [w])) for name, op in
            (("then_branch", "LpNormalization"), ("else_branch", "Neg"))}

    def step(b, i, c, y, z):
        product = b.node("Mul", [y, b.node("If", [c], **both)])
        return [c, b.node("Mul", [product, b.node("Det", [w])]), b.node("Det", [product])]

    most = model.node("Min", [model.input("turns", "i64", []), model.constant(numpy.array(9))])
    start = weight(model, "start", numpy.eye(3))
    y, _ = looped(model, step, most, start, model.constant(numpy.float32(1)), y="f32", z="f32")
    return total(model, model.node("LpNormalization", [y]))


def of_doubles():
    model = Model()
    w = weight(model, "w", numpy.ones(3))
    step = lambda b, i, c, y: [c, b.node("Add", [y, b.node("Cast", [w], to="f64")])]
    start = model.constant(numpy.zeros(3))
    most = model.node("Min", [model.input("turns", "i64", []), model.constant(numpy.array(9))])
    return total(model, model.node("Cast", [looped(model, step, most, start, y="f64")], to="f32"))


def with_statistics():
    model = Model()
    w, x = weight(model, "w", numpy.ones(3)), model.input("x", "f32", [4, 2, 3])
    statistics = [weight(model, name, numpy.ones(3)) for name in ("mean", "variance")]

    def step(b, s, x):
        normal, _, _ = b.node("BatchNormalization", [x, w, w, *statistics], 3, training_mode=1)
        return b.node("Add", [s, normal])

    start = model.constant(numpy.zeros((2, 3), numpy.float32), "start")
    return total(model, model.node("Scan", [start, x], body=body_of(model, step, s="f32", x="f32"), num_scan_inputs=1))


def with_doubles_beside():
    """A loop carries doubles of w that the loss does not depend on."""
    model = Model()
    w = weight(model, "w", numpy.ones(3))
    wide = model.node("Cast", [w], to="f64")
    step = lambda b, i, c, y, z: [c, b.node("Mul", [y, w]), b.node("Add", [z, wide])]
    most = model.node("Min", [model.input("turns", "i64", []), model.constant(numpy.array(9))])
    y, z = looped(model, step, most, weight(model, "start", numpy.ones(3)), wide, y="f32", z="f64")
    model.output(model.node("Identity", [z], ["z"]))
    return total(model, y)


def test_doubles_that_the_loss_does_not_depend_on_are_not_refused(compile, tmp_path):
    _, gradients = gradients_of(trainer_of(compile(with_doubles_beside().write(tmp_path), "--train")), {"turns": numpy.array(4)})
    assert (gradients["w"] == 4).all() and (gradients["start"] == 1).all()


@pytest.mark.parametrize("model, words", [
    (growing, ["`n1`, Loop, has no gradient for a carried value that grows"]),
    (without_a_bound, ["`n0`, Loop, has no gradient for a number of iterations, `turns`, that has no maximum", "Min(turns, LIMIT)"]),
    (without_a_count, ["`n0`, Loop, has no gradient for iterations that nothing bounds"]),
    (operators_within, ["`n2`, LpNormalization, has no gradient"]),
    (of_doubles, ["has no gradient for elements of f64"]),
    (with_statistics, ["`mean` is a running statistic of a node in a body", "`variance` is a running"])])
def test_what_has_no_gradient_is_named_with_its_reason(rnncc, tmp_path, model, words):
    done = rnncc(model().write(tmp_path), "--train", "-o", tmp_path / "step.so")
    assert done.returncode == 3 and all(it in done.stderr for it in words), done.stderr
    assert not (tmp_path / "step.so").exists()


def test_operators_in_bodies_are_named_as_those_outside(rnncc, tmp_path):
    told = rnncc(operators_within().write(tmp_path), "--train", "-o", tmp_path / "step.so").stderr
    assert told.count("LpNormalization, has no gradient") == 2 and told.count("Det, has no gradient") == 1, told
