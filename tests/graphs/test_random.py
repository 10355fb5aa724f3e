# SPDX-License-Identifier: MIT
"""Random numbers: those of the paper's generator, distributed as they should be, the same on every target, number of threads
and part of a batch; other ones in each run, iteration and node."""
import json
import math

import numpy
import pytest

from support import philox
from support.bodies import Body
from support.emitted import TARGETS, run_module
from support.model_builder import Model
from support.module import Module

COUNT = 5003  # no multiple of what is drawn at once
EXIT_INVALID, EXIT_UNSUPPORTED = 2, 3
MIX = 6364136223846793005  # compiler/passes/number_draws.c


def drawing(op, inputs=(), count=COUNT, **attributes):
    """A model of one node; `inputs` are arrays. Returns it and its feeds."""
    model = Model()
    feeds = {model.input(f"x{k}", "f64" if x.dtype == numpy.float64 else "f32", x.shape): x for k, x in enumerate(inputs)}
    if not inputs:
        feeds = {model.input("unread", "f32", [1]): numpy.zeros(1, numpy.float32)}
        attributes["shape"] = [count]
    model.output(model.node(op, list(feeds) if inputs else [], **attributes))
    return model, feeds


def runs_of(path, feeds, count, threads=1):
    with Module(path) as module, module.context(threads) as context:
        return [context.run(feeds) for _ in range(count)]


def only(outputs):
    return next(iter(outputs.values()))


# The generator


def test_the_tests_generator_is_that_of_the_paper():
    """Its authors' known answers: kat_vectors of Random123."""
    counters = numpy.array([[0] * 4, [0xFFFFFFFF] * 4, [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]])
    keys = [(0, 0), (0xFFFFFFFF, 0xFFFFFFFF), (0xA4093822, 0x299F31D0)]
    answers = [[0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
               [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]]
    for counter, key, answer in zip(counters, keys, answers):
        assert philox.philox(counter[None], key).tolist() == [answer]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("seed", [None, 2.5])
def test_uniform_numbers_are_the_generators(compile, tmp_path, dtype, seed):
    model, feeds = drawing("RandomUniform", dtype=dtype, seed=seed)
    key = philox.key_of_place(0) if seed is None else philox.key_of_seed(seed)
    for run, outputs in enumerate(runs_of(compile(model.write(tmp_path)), feeds, 3)):
        assert (only(outputs) == philox.uniform(key, run, COUNT, dtype == "f64")).all(), run


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_normal_numbers_are_the_generators(compile, tmp_path, dtype):
    """The logarithm, the root and the sine have errors of some units in the last place of f64."""
    model, feeds = drawing("RandomNormal", dtype=dtype, mean=0.5, scale=2.0)
    got = only(runs_of(compile(model.write(tmp_path)), feeds, 1)[0])
    expected = 0.5 + 2 * philox.normal(philox.key_of_place(0), 0, COUNT, dtype == "f64")
    numpy.testing.assert_allclose(got, expected, rtol=2.0**-24 if dtype == "f32" else 0, atol=2.0**-47)


def test_a_seed_of_the_command_line_is_part_of_the_key(compile, tmp_path):
    model, feeds = drawing("RandomUniform")
    got = only(runs_of(compile(model.write(tmp_path), "--seed=12345678901234567890"), feeds, 1)[0])
    assert (got == philox.uniform(philox.key_of_place(0, 12345678901234567890), 0, COUNT)).all()


# Distributions


def distance(numbers, distribution):
    """Kolmogorov's and Smirnov's: at most 1.95 / sqrt(n) in 99.9% of draws. Draws here are always the same."""
    ordered = numpy.sort(numbers.ravel().astype(float))
    due, n = numpy.array([distribution(x) for x in ordered]), ordered.size
    return max(abs(due - numpy.arange(n) / n).max(), abs(due - numpy.arange(1, n + 1) / n).max()) * math.sqrt(n)


LAWS = {"RandomUniform": ({"low": -2.0, "high": 6.0}, lambda x: min(max((x + 2) / 8, 0), 1), 2.0, 64 / 12),
        "RandomNormal": ({"mean": 1.0, "scale": 3.0}, lambda x: (1 + math.erf((x - 1) / (3 * math.sqrt(2)))) / 2, 1.0, 9.0)}


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("op", LAWS)
def test_numbers_have_the_distribution(compile, tmp_path, op, dtype):
    attributes, distribution, mean, variance = LAWS[op]
    model, feeds = drawing(op, count=20000, dtype=dtype, **attributes)
    got = only(runs_of(compile(model.write(tmp_path)), feeds, 1)[0]).astype(float)
    # Rounding to 8 bits moves a number by up to 2^-9 of it: where it is 6, the distribution by 6 * 2^-9 of its density.
    assert distance(got, distribution) < 1.95 + (dtype == "bf16") * 6 * 2.0**-9 / 8 * math.sqrt(20000)
    assert abs(got.mean() - mean) < 4 * math.sqrt(variance / 20000) and abs(got.var() / variance - 1) < 0.05
    pairs = numpy.corrcoef(got[:-1], got[1:])[0, 1], numpy.corrcoef(got[::2], got[1::2])[0, 1]
    assert max(abs(numpy.array(pairs))) < 4 / math.sqrt(10000)


def test_bernoulli_is_one_as_often_as_its_input_says(compile, tmp_path):
    p = numpy.repeat(numpy.array([0, 0.125, 0.5, 0.9, 1], numpy.float32), 4000).reshape(5, 4000)
    model, feeds = drawing("Bernoulli", [p], dtype="i32")
    got = only(runs_of(compile(model.write(tmp_path)), feeds, 1)[0])
    assert set(numpy.unique(got)) == {0, 1} and (got[0] == 0).all() and (got[4] == 1).all()
    assert (abs(got.mean(1) - p[:, 0]) <= 4 * numpy.sqrt(p[:, 0] * (1 - p[:, 0]) / 4000)).all()


@pytest.mark.parametrize("numpy_type", [numpy.float32, numpy.float64])
def test_multinomial_chooses_classes_by_their_probabilities(compile, tmp_path, numpy_type):
    p = numpy.array([[0, 0.1, 0.2, 0.3, 0.4, 0], [1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0.5, 0.5]])
    with numpy.errstate(divide="ignore"):
        logits = (numpy.log(p) + 3).astype(numpy_type)
    model, feeds = drawing("Multinomial", [logits], sample_size=5000, dtype="i64")
    got = only(runs_of(compile(model.write(tmp_path)), feeds, 1)[0])
    assert got.dtype == numpy.int64 and got.shape == (3, 5000)
    often = numpy.stack([(got == k).mean(1) for k in range(6)], axis=1)
    assert (often[p == 0] == 0).all() and abs(often.sum(1) - 1).max() < 1e-12
    assert (abs(often - p) <= 4 * numpy.sqrt(p * (1 - p) / 5000)).all()


# The same bits wherever they are drawn

SAME = [("RandomUniform", {"low": -1.0, "high": 0.7}), ("RandomNormal", {"mean": 0.1, "scale": 1.3}),
        ("RandomNormal", {"dtype": "f64", "mean": 0.1, "scale": 1.3}), ("RandomUniform", {"dtype": "f64", "low": 0.1}),
        ("RandomNormal", {"dtype": "f16"})]


@pytest.mark.parametrize("op, attributes", SAME)
def test_every_target_and_number_of_threads_draws_the_references_bits(reference, run_on_target, tmp_path, op, attributes):
    model, feeds = drawing(op, **attributes)
    path = model.write(tmp_path)
    expected = only(reference.run(model, path, feeds))
    assert run_on_target(path, feeds, model.outputs)[model.outputs[0]].tobytes() == expected.tobytes()


@pytest.mark.optimised
@pytest.mark.parametrize("target", TARGETS)
def test_the_optimiser_keeps_the_bits(compile, reference, tmp_path, target):
    model, feeds = drawing("RandomNormal", scale=1.3, mean=0.1)
    path = model.write(tmp_path)
    got = only(run_module(compile(path, f"--target={target}"), feeds, range(1, 9)))
    assert got.tobytes() == only(reference.run(model, path, feeds)).tobytes()


def test_a_part_of_a_batch_draws_what_the_batch_does(compile, tmp_path):
    model = Model()
    x = model.input("x", "f32", [model.dim("N", 1, 4, 9), model.dim("T", 1, 8, 70)])
    model.output(model.node("RandomNormalLike", [x]), model.node("Bernoulli", [model.node("RandomUniformLike", [x])]))
    with Module(compile(model.write(tmp_path))) as module:
        found = {}
        for n in (9, 1, 4):
            with module.context(2) as context:
                found[n] = context.run({"x": numpy.zeros((n, 67), numpy.float32)})
    for n in (1, 4):
        for name in model.outputs:
            assert found[n][name].tobytes() == found[9][name][:n].tobytes()


# Other numbers in each run, node and iteration


def test_each_run_draws_anew_until_its_states_are_reset(compile, tmp_path):
    model, feeds = drawing("RandomUniform")
    with Module(compile(model.write(tmp_path))) as module, module.context() as context, module.context() as other:
        assert [state.name for state in module.states] == ["random_run"]
        first, second = only(context.run(feeds)), only(context.run(feeds))
        assert not (first == second).any()
        assert (only(other.run(feeds)) == first).all()  # each context draws the same
        assert context.state_get("random_run") == 2
        for slot in (-1, 0):
            context.state_reset(slot)
            assert (only(context.run(feeds)) == first).all()
        context.state_set("random_run", numpy.array(1))
        assert (only(context.run(feeds)) == second).all()


def test_nodes_draw_other_numbers_unless_they_share_a_seed(compile, tmp_path):
    model = Model()
    model.input("unread", "f32", [1])
    model.output(*(model.node("RandomUniform", [], shape=[COUNT], seed=seed) for seed in (None, None, 1.0, 1.0, 2.0)))
    outputs = runs_of(compile(model.write(tmp_path)), {"unread": numpy.zeros(1, numpy.float32)}, 1)[0]
    free, other, one, same, two = (outputs[name] for name in model.outputs)
    assert (one == same).all()
    for a, b in [(free, other), (free, one), (one, two)]:
        assert abs(numpy.corrcoef(a, b)[0, 1]) < 4 / math.sqrt(COUNT)


def test_what_is_drawn_by_constants_is_not_a_constant(compile, tmp_path):
    model = Model()
    x = model.input("x", "f32", [COUNT])
    half = model.constant(numpy.full(COUNT, 0.5, numpy.float32))
    model.output(model.node("Add", [x, model.node("Bernoulli", [half])]),
                 model.node("Add", [x, model.node("Bernoulli", [half])]))
    first, second = runs_of(compile(model.write(tmp_path)), {"x": numpy.zeros(COUNT, numpy.float32)}, 2)
    a, b = model.outputs
    assert 0.4 < (first[a] == second[a]).mean() < 0.6 and 0.4 < (first[a] == first[b]).mean() < 0.6


def loop_of_draws(trip):
    """A loop whose body draws three numbers, and in a loop within it again. trip: the constant, or None: as often as x is
    long."""
    model = Model()
    x = model.input("x", "f32", [model.dim("T", 1, 5, 9)])
    length = model.node("Squeeze", [model.node("Shape", [x])])
    body, inner = Body(model, i="i64", c="bool"), Body(model, i="i64", c="bool")
    inner.output(inner.node("Identity", [inner.inputs[1]]), inner.node("RandomUniform", [], shape=[3]))
    own = body.node("RandomUniform", [], shape=[3])
    within = body.node("Loop", [model.constant(numpy.array(2)), None], body=inner)
    body.output(body.node("Identity", [body.inputs[1]]), own, within)
    model.output(*model.node("Loop", [length if trip is None else model.constant(numpy.array(trip)), None], 2, body=body))
    return model


def test_each_iteration_draws_anew(compile, tmp_path):
    model = loop_of_draws(None)
    runs = runs_of(compile(model.write(tmp_path)), {"x": numpy.zeros(5, numpy.float32)}, 2, threads=2)
    own, within = ([run[name] for run in runs] for name in model.outputs)
    assert own[0].shape == (5, 3) and within[0].shape == (5, 2, 3)
    key, inner_key = philox.key_of_place(0), philox.key_of_place(1)
    for run in range(2):
        for i in range(5):
            assert (own[run][i] == philox.uniform(key, run * MIX + i, 3)).all()
            for j in range(2):
                assert (within[run][i, j] == philox.uniform(inner_key, (run * MIX + i) * MIX + j, 3)).all()


def test_an_unrolled_loop_draws_what_the_loop_does(compile, tmp_path):
    feeds = {"x": numpy.zeros(3, numpy.float32)}
    unrolled, rolled = loop_of_draws(3), loop_of_draws(None)
    got, expected = (runs_of(compile(model.write(tmp_path)), feeds, 2) for model in (unrolled, rolled))
    for own, other in zip(got, expected):
        for a, b in zip(unrolled.outputs, rolled.outputs):
            assert own[a].tobytes() == other[b].tobytes()


def test_a_scan_draws_anew_at_each_step(compile, tmp_path):
    model = Model()
    s, x = model.constant(numpy.zeros(4, numpy.float32)), model.input("x", "f32", [model.dim("T", 1, 5, 40), 4])
    body = Body(model, s="f32", x="f32")
    noisy = body.node("Add", [body.inputs[1], body.node("RandomNormalLike", [body.inputs[1]])])
    body.output(body.node("Add", [body.inputs[0], noisy]), noisy)
    total, steps = model.node("Scan", [s, x], 2, body=body, num_scan_inputs=1)
    model.output(total, steps)
    feeds = {"x": numpy.zeros((33, 4), numpy.float32)}
    for run, outputs in enumerate(runs_of(compile(model.write(tmp_path)), feeds, 2, threads=2)):
        for t in range(33):
            expected = philox.normal(philox.key_of_place(0), run * MIX + t, 4)
            numpy.testing.assert_allclose(outputs[steps][t], expected, rtol=2.0**-24)
        numpy.testing.assert_allclose(outputs[total], outputs[steps].astype(float).sum(0), atol=33 * 2.0**-20)


def test_the_branch_that_is_taken_draws(compile, tmp_path):
    model = Model()
    c = model.input("c", "bool", [])
    branches = [Body(model), Body(model)]
    for branch in branches:
        branch.output(branch.node("RandomUniform", [], shape=[9]))
    model.output(model.node("If", [c], then_branch=branches[0], else_branch=branches[1]))
    with Module(compile(model.write(tmp_path))) as module, module.context() as context:
        for run, truth in enumerate([True, False, True]):
            got = only(context.run({"c": numpy.array(truth)}))
            assert (got == philox.uniform(philox.key_of_place(0 if truth else 1), run, 9)).all()


# Dropout in training


def trained(ratio, dtype="f32", mask=True):
    model = Model()
    x = model.input("x", dtype, [COUNT])
    inputs = [x, model.constant(numpy.array(ratio, numpy.float32)), model.constant(numpy.array(True))]
    outputs = model.node("Dropout", inputs, 1 + mask, seed=4)
    model.output(*([outputs] if isinstance(outputs, str) else outputs))
    return model


@pytest.mark.parametrize("ratio", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("dtype, numpy_type", [("f32", numpy.float32), ("f64", numpy.float64), ("f16", numpy.float16)])
def test_dropout_drops_and_scales_in_training(compile, tmp_path, ratio, dtype, numpy_type):
    import onnx
    onnx.save(trained(ratio, dtype).onnx(), tmp_path / "dropout.onnx")
    x = numpy.arange(1, COUNT + 1).astype(numpy_type) / 8
    y, mask = runs_of(compile(tmp_path / "dropout.onnx"), {"x": x}, 1)[0].values()
    assert mask.dtype == bool and abs(mask.mean() - (1 - ratio)) <= 4 * math.sqrt(ratio * (1 - ratio) / COUNT)
    assert (y[~mask] == 0).all()
    # The reciprocal of the share that is kept, and the product, are rounded.
    numpy.testing.assert_allclose(y[mask].astype(float), x[mask].astype(float) / (1 - ratio),
                                  rtol=2 * float(numpy.finfo(numpy.float32 if dtype == "f64" else numpy_type).eps))


# What is refused


@pytest.mark.parametrize("op, attributes, code, said", [
    ("RandomUniform", {"shape": [2], "dtype": "i32"}, EXIT_INVALID, "type of floats"),
    ("RandomNormal", {"shape": [-2]}, EXIT_INVALID, "may be negative"),
    ("RandomNormal", {}, EXIT_INVALID, "needs the attribute `shape`"),
    ("RandomNormal", {"shape": [1] * 9}, EXIT_UNSUPPORTED, "at most 8"),
    ("RandomNormal", {"shape": [2], "dtype": "text"}, EXIT_UNSUPPORTED, "`dtype`"),
    ("RandomUniform", {"shape": [2], "mean": 1.0}, EXIT_UNSUPPORTED, "no attribute `mean`"),
    ("Multinomial", {"sample_size": 0}, EXIT_INVALID, "at least 1"),
    ("Multinomial", {"dtype": "f32"}, EXIT_INVALID, "i32 or i64"),
    ("RandomNormalLike", {"of": 2}, EXIT_INVALID, "exactly 1 input, found 2"),
    ("RandomUniform", {"shape": [2], "of": 1}, EXIT_INVALID, "exactly 0 inputs, found 1"),
    ("Bernoulli", {"of": 3}, EXIT_INVALID, "exactly 1 input, found 3")])
def test_nodes_that_are_wrong_are_refused(rnncc, tmp_path, op, attributes, code, said):
    model = Model()
    x = model.input("x", "f32", [2, 3])
    inputs = [x] * attributes.pop("of", 1 if op in ("Multinomial", "Bernoulli", "RandomNormalLike") else 0)
    model.output(model.node(op, inputs, **attributes))
    done = rnncc(model.write(tmp_path), "-o", tmp_path / "m.so")
    assert done.returncode == code and said in done.stderr, done.stderr


@pytest.mark.parametrize("seed", ["-1", "18446744073709551616", "x", "1.5"])
def test_seeds_that_are_none_are_refused(rnncc, tmp_path, seed):
    model, _ = drawing("RandomUniform")
    done = rnncc(model.write(tmp_path), "-o", tmp_path / "m.so", f"--seed={seed}")
    assert done.returncode == EXIT_INVALID and "a whole number below 2^64" in done.stderr


def test_a_model_may_have_the_states_name(compile, tmp_path):
    model = Model()
    x = model.input("random_run", "f32", [3])
    model.output(model.node("Add", [x, model.node("RandomUniformLike", [x])]))
    with Module(compile(model.write(tmp_path))) as module:
        assert [state.name for state in module.states] == ["random_run_"]


def test_the_graph_that_is_written_draws_the_same(rnncc, compile, tmp_path):
    """The state is no part of the model."""
    model, feeds = drawing("RandomUniform", seed=3.0)
    path, again = model.write(tmp_path), tmp_path / "again.json"
    assert rnncc(path, "--emit=graph", "-o", again).returncode == 0
    assert "states" not in json.loads(again.read_text()) or not json.loads(again.read_text())["states"]
    assert only(runs_of(compile(path), feeds, 1)[0]).tobytes() == only(runs_of(compile(again), feeds, 1)[0]).tobytes()
