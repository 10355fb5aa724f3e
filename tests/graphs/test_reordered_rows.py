# SPDX-License-Identifier: MIT
"""Rows of what a loop carries are reordered where they stand: by each map of a few rows, with repeats, cycles and rows
that stay, and by random ones of many."""
import itertools

import numpy
import pytest

from support.bodies import Body
from support.model_builder import Model
from support.module import Module, ModuleError

MOST = 300  # turns
THREADS = (1, 3, 8)


def network(shape, axis, read_later=False, index_type="i64"):
    """Each turn takes what is carried from `base`, and of its rows those that the turn's indices say. read_later: what was
    there before is read behind that."""
    model = Model()
    turns = model.dim("T", 1, 20, MOST)
    base, first = model.input("base", "f32", shape), model.input("first", "f32", shape)
    indices = model.input("indices", index_type, [turns, shape[axis]])
    body = Body(model, x="f32", sources=index_type)
    carried, sources = body.inputs
    fresh = body.node("Sub", [base, carried])
    moved = body.node("Gather", [fresh, sources], axis=axis)
    collected = body.node("Sub", [fresh, moved] if read_later else [moved, base])
    body.output(moved, collected)
    model.output(*model.node("Scan", [first, indices], ["last", "turns"], body=body, num_scan_inputs=1))
    return model


def expected(feeds, axis, read_later):
    x, turns = feeds["first"], []
    for sources in feeds["indices"]:
        fresh = feeds["base"] - x
        x = fresh.take(sources, axis)
        turns.append(fresh - x if read_later else x - feeds["base"])
    return {"last": x, "turns": numpy.array(turns)}


def feeds_of(rng, shape, indices):
    return {"indices": indices, **{name: rng.integers(-9, 9, shape).astype(numpy.float32) for name in ("base", "first")}}


def maps(rows, index_type):
    """All of four rows; else random ones, of which some rows stay, and permutations; some count from the end."""
    rng = numpy.random.default_rng(rows)
    if rows == 4:
        found = list(itertools.product(range(4), repeat=4))
    else:
        found = [numpy.where(rng.random(rows) < part, range(rows), rng.integers(0, rows, rows)) for part in (0, .5, .9) * 6]
        found += [rng.permutation(rows) for _ in range(12)]
    found = rng.permutation(numpy.array(found, dtype=numpy.int32 if index_type == "i32" else numpy.int64))
    return numpy.where(rng.random(found.shape) < .2, found - rows, found).astype(found.dtype)


CASES = [([4, 130], 0, "i64"), ([3, 4, 40], 1, "i64"), ([57, 16], 0, "i32"), ([2, 20, 1100], 1, "i64"), ([64, 9, 2], -2, "i64")]


def reorders_in_place(rnncc, path):
    done = rnncc("inspect", path)
    assert done.returncode == 0, done.stderr
    return "gather_in_place" in done.stdout


@pytest.mark.every_case
@pytest.mark.parametrize("shape, axis, index_type", CASES)
@pytest.mark.parametrize("read_later", [False, True])
def test_rows_come_from_where_the_indices_say(compile, rnncc, tmp_path, shape, axis, index_type, read_later):
    path = network(shape, axis, read_later, index_type).write(tmp_path)
    assert reorders_in_place(rnncc, path)
    feeds = feeds_of(numpy.random.default_rng(1), shape, maps(shape[axis], index_type))
    due = expected(feeds, axis, read_later)
    with Module(compile(path)) as module:
        for threads in THREADS:
            with module.context(threads) as context:
                got = context.run(feeds)
                assert all(numpy.array_equal(got[name], due[name]) for name in due), threads


BEAM, SIZE = 8, 10000
STATE = 4 * BEAM * SIZE  # bytes


def search(twice):
    """Of the likeliest of 20 tokens, in 12 steps; a hypothesis has a state of SIZE floats, or two, which a step leaves equal."""
    model = Model()
    start, table, h = (model.input(*given) for given in (("start", "i64", [1]), ("table", "f32", [20]), ("h", "f32", [1, SIZE])))
    body = Body(model, token="i64", h="f32", **{"g": "f32"} if twice else {})
    one = body.constant(numpy.array([1]))
    last = body.node("Unsqueeze", [body.node("Cast", [body.inputs[0]], to="f32"), one])
    after = body.node("Sin", [body.node("Add", [body.inputs[-1], last])])
    total = body.node("ReduceSum", [after, one], keepdims=1)
    body.output(body.node("LogSoftmax", [body.node("Mul", [total, table])]), after, *[after] * twice)
    model.output(model.node("BeamSearch", [start, h, *[h] * twice], body=body, beam_size=BEAM, end_token=0, max_length=12))
    return model


def arena(rnncc, path):
    done = rnncc("inspect", path)
    assert done.returncode == 0, done.stderr
    return int(next(line for line in done.stdout.splitlines() if line.startswith("arena")).split()[1])


@pytest.mark.parametrize("twice", [False, True])
def test_a_state_of_a_search_is_in_memory_twice(rnncc, tmp_path, twice):
    """What a step begins with, and what it leaves, which is reordered there."""
    places = 4 if twice else 2
    assert places * STATE < arena(rnncc, search(twice).write(tmp_path)) < (places + 0.1) * STATE


def test_an_index_out_of_range_is_told(compile, tmp_path):
    """The run ends, and the next one is as if it had not been."""
    feeds = feeds_of(numpy.random.default_rng(2), [5, 40], numpy.array([[0, 1, 2, 3, 4], [4, 0, 0, 3, 1]]))
    wrong = {**feeds, "indices": numpy.array([[0, 1, 2, 3, 4], [4, 5, -6, 3, 1]])}
    with Module(compile(network([5, 40], 0).write(tmp_path))) as module, module.context(2) as context:
        for _ in range(2):
            with pytest.raises(ModuleError):
                context.run(wrong)
            assert numpy.array_equal(context.run(feeds)["last"], expected(feeds, 0, False)["last"])


def test_a_loop_leaves_alone_what_others_read(compile, tmp_path):
    """A loop in a branch begins with a value from outside of it that is read behind it, too."""
    model = Model()
    x, condition = model.input("x", "f32", [9]), model.input("condition", "bool", [])
    start, turns = model.node("Add", [x, x]), model.constant(numpy.array(40))
    branches = {}
    for name, op in (("then_branch", "Add"), ("else_branch", "Sub")):
        branch, turn = Body(model), Body(model, i="i64", c="bool", y="f32")
        turn.output(turn.inputs[1], turn.node(op, [turn.inputs[2], x]))
        branches[name] = branch.output(branch.node("Loop", [turns, None, start], body=turn))
    model.output(model.node("Add", [model.node("If", [condition], **branches), start], ["y"]))
    x = numpy.arange(9, dtype=numpy.float32)
    with Module(compile(model.write(tmp_path))) as module, module.context(2) as context:
        for condition, due in ((True, 44), (False, -36)):
            assert (context.run({"x": x, "condition": numpy.array(condition)})["y"] == due * x).all()
