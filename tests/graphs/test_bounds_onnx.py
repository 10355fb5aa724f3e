# SPDX-License-Identifier: MIT
"""Ranges and loops whose length depends on data, where a maximum can be shown: what ONNX Runtime computes, for every
length from 0 to the maximum; where none can be shown, a message that says so."""
import numpy
import pytest

from support.bodies import Body
from support.flow import same_at_all_threads
from support.model_builder import Model
from support.module import Module, ModuleError


def i64(*numbers):
    return numpy.array(numbers[0] if len(numbers) == 1 else numbers, numpy.int64)


def number(model):
    return model.input("n", "i64", [])


# Integers computed from n or xs [T], T from 1 to 6, that are at most 9 and at least -9: each rule of the analysis.
BOUNDED = {
    "min": lambda m: m.node("Min", [number(m), m.constant(i64(9))]),
    "clip": lambda m: m.node("Clip", [number(m), m.constant(i64(-3)), m.constant(i64(9))]),
    "clip_to_the_left": lambda m: m.node("Clip", [number(m), m.constant(i64(12)), m.constant(i64(9))]),
    "max_of_bounded": lambda m: m.node("Max", [m.node("Min", [number(m), m.constant(i64(9))]), m.constant(i64(2))]),
    "below_a_shape": lambda m: m.node("Min", [number(m), m.node("Squeeze", [m.node("Shape", ["xs"])])]),
    "sum_of_bools": lambda m: m.node("ReduceSum", [m.node("Cast", [m.node("Greater", ["xs", m.constant(i64(0))]), ], to="i64")], keepdims=0),
    "largest": lambda m: m.node("ReduceMax", [m.node("Clip", ["xs", m.constant(i64(0)), m.constant(i64(9))])], keepdims=0),
    "picked": lambda m: m.node("Gather", [m.node("Mod", ["xs", m.constant(i64(10))]), m.constant(i64(-1))]),
    "smallest": lambda m: m.node("ReduceMin", [m.node("Min", ["xs", m.constant(i64(9))])], keepdims=0),
    "place": lambda m: m.node("ArgMax", ["xs"], axis=0, keepdims=0),
    "arithmetic": lambda m: m.node("Sub", [m.node("Add", [m.node("Div", [
        m.node("Mul", [m.node("Clip", [number(m), m.constant(i64(0)), m.constant(i64(7))]), m.constant(i64(3))]),
        m.constant(i64(2))]), m.constant(i64(-4))]), m.constant(i64(-3))]),
    "absolute": lambda m: m.node("Abs", [m.node("Clip", [number(m), m.constant(i64(-9)), m.constant(i64(4))])]),
    "sign": lambda m: m.node("Neg", [m.node("Sign", [number(m)])]),
    "chosen": lambda m: m.node("Where", [m.node("Less", [number(m), m.constant(i64(0))]), m.constant(i64(9)),
                                         m.node("Min", ["n", m.constant(i64(4))])]),
    "narrow": lambda m: m.node("Cast", [m.node("Mod", [m.node("Cast", [m.node("Cast", [number(m)], to="u8")], to="i64"),
                                                       m.constant(i64(10))])], to="i64"),
    "cast": lambda m: m.node("Cast", [m.node("Min", [m.node("Cast", [number(m)], to="i32"), m.constant(numpy.int32(9))])], to="i64"),
}


def bounded(kind):
    model = Model()
    model.input("xs", "i64", [model.dim("T", 1, 3, 6)])
    return model, BOUNDED[kind](model)


def feeds(model, seed=0):
    """Runs with n and xs around and beyond the maximum, and at the ends of i64 where ONNX Runtime's arithmetic is defined."""
    rng = numpy.random.default_rng(seed)
    inputs = {entry["name"] for entry in model.inputs}
    far = [] if any(node["op"] in ("Cast", "Abs") for node in model.nodes) else [2**62, -2**62]
    runs = []
    for n in [*range(-4, 12), 300, *far]:
        xs = numpy.clip(rng.integers(n - 2, n + 3, rng.integers(1, 7)), -2**62, 2**62)
        runs.append({name: array for name, array in (("n", i64(n)), ("xs", xs)) if name in inputs})
    return runs


@pytest.mark.parametrize("kind", BOUNDED)
def test_a_range_is_as_long_as_the_data_says(compile, tmp_path, kind):
    model, n = bounded(kind)
    zero, one = model.constant(i64(0)), model.constant(i64(1))
    places = model.node("Range", [zero, n, one])
    model.output(places, model.node("Range", [n, model.constant(i64(-5)), model.constant(i64(-3))]),
                 model.node("Range", [model.constant(i64(12)), model.node("Max", [n, model.constant(i64(-9))]), model.constant(i64(-1))]),
                 model.node("ReduceSum", [model.node("Mul", [places, places])], keepdims=0))
    same_at_all_threads(compile, model, tmp_path, feeds(model))


def test_a_step_may_depend_on_data(compile, tmp_path):
    model = Model()
    step = model.node("Clip", [number(model), model.constant(i64(2)), model.constant(i64(5))])
    down = model.node("Sub", [model.constant(i64(0)), step])
    model.output(model.node("Range", [model.constant(i64(-7)), model.constant(i64(13)), step]),
                 model.node("Range", [model.constant(i64(13)), model.constant(i64(-7)), down]))
    same_at_all_threads(compile, model, tmp_path, [{"n": i64(n)} for n in range(0, 8)])


@pytest.mark.parametrize("dtype", ["i16", "i32"])
def test_ranges_of_narrow_types(compile, tmp_path, dtype):
    of = {"i16": numpy.int16, "i32": numpy.int32}[dtype]
    model = Model()
    n = model.node("Cast", [model.node("Clip", [number(model), model.constant(i64(0)), model.constant(i64(40))])], to=dtype)
    model.output(model.node("Range", [model.constant(of(3)), n, model.constant(of(2))]))
    same_at_all_threads(compile, model, tmp_path, [{"n": i64(n)} for n in (-1, 0, 3, 4, 5, 39, 40, 41)])


def test_a_mask_of_the_longest_length(compile, tmp_path):
    """arange(min(lengths.max(), T)) < lengths, and rows that are picked by it."""
    model = Model()
    lengths, x = model.input("lengths", "i64", [model.dim("B", 1, 3, 5)]), model.input("x", "f32", ["B", model.dim("T", 1, 5, 9)])
    steps = model.node("Gather", [model.node("Shape", [x]), model.constant(i64(1))])
    longest = model.node("Min", [model.node("ReduceMax", [lengths], keepdims=0), steps])
    places = model.node("Range", [model.constant(i64(0)), longest, model.constant(i64(1))])
    column = model.node("Unsqueeze", [lengths, model.constant(i64(1)[None])])
    mask = model.node("Less", [model.node("Unsqueeze", [places, model.constant(i64(0)[None])]), column])
    model.output(mask, model.node("Gather", [x, places], axis=1),
                 model.node("Where", [mask, model.node("Gather", [x, places], axis=1), model.constant(numpy.float32(-1))]))
    rng = numpy.random.default_rng(1)
    feeds = [{"lengths": rng.integers(0, T + 1, B), "x": rng.standard_normal((B, T), numpy.float32)}
             for B in (1, 3, 5) for T in (1, 5, 9)]
    feeds += [{"lengths": i64(0, 0), "x": numpy.ones((2, 4), numpy.float32)}, {"lengths": i64(9, 2), "x": numpy.ones((2, 4), numpy.float32)}]
    same_at_all_threads(compile, model, tmp_path, feeds)


def collecting(model, trips, conditional=False):
    """h [3] is doubled and counted in each iteration; all of it is collected, and a value grows by a row each time."""
    body = Body(model, i="i64", c="bool", h="f32", rows="f32")
    i, c, h, rows = body.inputs
    more = body.node("Add", [h, body.node("Cast", [i], to="f32")])
    row = body.node("Unsqueeze", [more, body.constant(i64(0)[None])])
    go = body.node("Less", [body.node("ReduceMax", [more], keepdims=0), body.constant(numpy.float32(9))]) if conditional else \
        body.node("Identity", [c])
    body.output(go, more, body.node("Concat", [rows, row], axis=0), body.node("Neg", [more]))
    x = model.input("x", "f32", [3])
    return model.node("Loop", [trips, None, x, model.constant(numpy.zeros((0, 3), numpy.float32))], 3, body=body)


@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("kind", ["min", "clip", "below_a_shape", "sum_of_bools", "arithmetic"])
def test_a_loop_collects_as_often_as_the_data_says(compile, tmp_path, kind, conditional):
    model, n = bounded(kind)
    model.output(*collecting(model, n, conditional))
    x = numpy.array([1, -2, 0.5], numpy.float32)
    same_at_all_threads(compile, model, tmp_path, [{**feed, "x": x} for feed in feeds(model)])


UNBOUNDED = {
    "an input": lambda m: number(m),
    "only from below": lambda m: m.node("Max", [number(m), m.constant(i64(0))]),
    "what wraps around": lambda m: m.node("Mul", [m.node("Clip", [number(m), m.constant(i64(0)), m.constant(i64(2**40))]),
                                                  m.constant(i64(2**40))]),
    "too much": lambda m: m.node("Min", [number(m), m.constant(i64(2**40))]),
    "cast from a float": lambda m: m.node("Cast", [m.node("Clip", [m.input("x0", "f32", []), m.constant(numpy.float32(0)),
                                                                   m.constant(numpy.float32(9))])], to="i64"),
    "the largest of none": lambda m: m.node("ReduceMax", [m.node("Min", [m.input("e", "i64", [m.dim("E", 0, 1, 2)]),
                                                                         m.constant(i64(4))])], keepdims=0),
}


@pytest.mark.parametrize("kind", UNBOUNDED)
@pytest.mark.parametrize("op", ["Range", "Loop"])
def test_what_has_no_maximum_is_refused(rnncc, tmp_path, kind, op):
    model = Model()
    n = UNBOUNDED[kind](model)
    model.output(model.node("Range", [model.constant(i64(0)), n, model.constant(i64(1))]) if op == "Range" else
                 collecting(model, n)[2])
    done = rnncc(model.write(tmp_path), "-o", tmp_path / "m.so")
    assert done.returncode == 3 and "a maximum: Min or Clip with a constant shows one, or --bound NAME=MIN..MAX says it" in done.stderr, done.stderr
    assert op == "Loop" or f"`{n}`" in done.stderr, done.stderr


def gives(b, build):
    """A branch that returns what `build` makes around it."""
    branch = Body(b.model)
    return branch.output(branch.node("Identity", [build(branch)]))


# Conditions of a loop without a useful trip count; `i` rises by 1 from 0, `j` by 2 from 3, `number` is the iteration's.
CONDITIONS = {
    "below": lambda b, limit, number, i, j, i2, j2: b.node("Less", [i2, limit]),
    "before the step": lambda b, limit, number, i, j, i2, j2: b.node("Less", [i, limit]),
    "at most": lambda b, limit, number, i, j, i2, j2: b.node("LessOrEqual", [j2, limit]),
    "above": lambda b, limit, number, i, j, i2, j2: b.node("Greater", [limit, j]),
    "at least": lambda b, limit, number, i, j, i2, j2: b.node("GreaterOrEqual", [limit, i2]),
    "the iteration": lambda b, limit, number, i, j, i2, j2: b.node("Less", [number, limit]),
    "a constant more": lambda b, limit, number, i, j, i2, j2: b.node("Less", [b.node("Add", [number, b.constant(i64(2))]), limit]),
    "if not, then false": lambda b, limit, number, i, j, i2, j2: b.node(
        "If", [b.node("Less", [i2, limit])], then_branch=gives(b, lambda c: b.node("Less", [j, b.constant(i64(9))])),
        else_branch=gives(b, lambda c: b.constant(numpy.array(False)))),
    "cast": lambda b, limit, number, i, j, i2, j2: b.node("Cast", [b.node("Less", [i2, limit])], to="bool"),
}


def decoding(model, condition, limit, trips):
    """As exporters write a greedy decoder: what was found grows by one in each iteration, until a number is reached."""
    body = Body(model, number="i64", go="bool", i="i64", j="i64", found="f32", h="f32")
    number, _, i, j, found, h = body.inputs
    i2 = body.node("Add", [i, body.constant(i64(1))])
    j2 = body.node("Identity", [body.node("Add", [body.constant(i64(2)), j])])
    h2 = body.node("Sub", [h, body.constant(numpy.float32(0.5))])
    best = body.node("ReduceMax", [h2])
    going = body.node("Greater", [body.node("Squeeze", [best]), body.constant(numpy.float32(-3.75))])
    below = CONDITIONS[condition](body, limit, number, i, j, i2, j2)
    body.output(body.node("And", [going, below]), i2, j2, body.node("Concat", [found, best], axis=0), h2, best)
    nothing = model.constant(numpy.zeros((0,), numpy.float32))
    return model.node("Loop", [trips and model.constant(i64(trips)), model.constant(numpy.array(True)), model.constant(i64(0)),
                               model.constant(i64(3)), nothing, model.input("h", "f32", [3])], 5, body=body)


@pytest.mark.parametrize("trips", [None, 2**63 - 1])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_bounds_a_loop(compile, tmp_path, condition, trips):
    model = Model()
    limit = model.node("Min", [number(model), model.constant(i64(7))])
    outputs = decoding(model, condition, limit, trips)
    model.output(outputs[0], outputs[2], outputs[4], model.node("Range", [model.constant(i64(0)), limit, model.constant(i64(1))]))
    same_at_all_threads(compile, model, tmp_path, [{"n": i64(n), "h": numpy.array([0, high, -1], numpy.float32)}
                                                   for n in range(-2, 11) for high in (-9, 0, 9)])


@pytest.mark.parametrize("first", [0, -2, 5])
def test_a_loop_that_counts_to_a_limit_with_a_maximum(compile, tmp_path, first):
    """What it collects has room for the limit's maximum, whatever else the limit is."""
    model = Model()
    body = Body(model, number="i64", go="bool", i="i64", h="f32")
    _, _, i, h = body.inputs
    i2 = body.node("Add", [i, body.constant(i64(1))])
    h2 = body.node("Add", [h, body.node("Cast", [i], to="f32")])
    limit = model.node("Min", [number(model), model.constant(i64(7))])
    body.output(body.node("Less", [i2, limit]), i2, h2, body.node("Identity", [h2]))
    starts = model.constant(i64(first))
    model.output(*model.node("Loop", [None, model.node("Less", [starts, limit]), starts, model.input("h", "f32", [3])], 3, body=body))
    feeds = [{"n": i64(n), "h": numpy.zeros(3, numpy.float32)} for n in (-2**62, -2, -1, 0, 4, 6, 7, 40)]
    same_at_all_threads(compile, model, tmp_path, feeds)


@pytest.mark.parametrize("step", [258, 0.9, 2.5])
def test_a_step_that_a_conversion_changes_bounds_nothing(rnncc, tmp_path, step):
    """As a byte 258 is 2: there are more iterations than steps of 258. And .9 is 0, with which the number never rises."""
    model = Model()
    body = Body(model, number="i64", go="bool", i="i64", h="f32")
    _, _, i, h = body.inputs
    changed = body.node("Cast", [body.constant(numpy.array(step, type(step)))], to="u8")
    i2 = body.node("Add", [i, body.node("Cast", [changed], to="i64")])
    h2 = body.node("Add", [h, body.constant(numpy.float32(1))])
    limit = model.node("Min", [number(model), model.constant(i64(7))])
    body.output(body.node("Less", [i2, limit]), i2, h2, body.node("Identity", [h2]))
    model.output(*model.node("Loop", [None, model.constant(numpy.array(True)), model.constant(i64(0)), model.input("h", "f32", [3])],
                             3, body=body))
    done = rnncc(model.write(tmp_path), "-o", tmp_path / "m.so")
    assert done.returncode == 3 and "nothing bounds them" in done.stderr, done.stderr


@pytest.mark.parametrize("name, condition", [
    ("no limit", lambda b, limit, number, i, j, i2, j2: b.node("Less", [i2, "n"])),
    ("a limit that changes", lambda b, limit, number, i, j, i2, j2: b.node("Less", [i2, b.node("Add", [j2, limit])])),
    ("what does not rise", lambda b, limit, number, i, j, i2, j2: b.node("Less", [b.node("Sub", [i, j]), limit])),
    ("if not, then true", lambda b, limit, number, i, j, i2, j2: b.node(
        "If", [b.node("Less", [i2, limit])], then_branch=gives(b, lambda c: b.node("Less", [j, "n"])),
        else_branch=gives(b, lambda c: b.constant(numpy.array(True))))),
    ("either of two", lambda b, limit, number, i, j, i2, j2: b.node("Or", [b.node("Less", [i2, limit]), b.node("Less", [j, "n"])])),
])
def test_a_condition_that_bounds_nothing_is_refused(rnncc, tmp_path, monkeypatch, name, condition):
    monkeypatch.setitem(CONDITIONS, name, condition)
    model = Model()
    limit = model.node("Min", [number(model), model.constant(i64(7))])
    model.output(decoding(model, name, limit, None)[2])
    done = rnncc(model.write(tmp_path), "-o", tmp_path / "m.so")
    assert done.returncode == 3 and "in a bounded number of iterations" in done.stderr, done.stderr
