# SPDX-License-Identifier: MIT
"""BeamSearch finds what a search in plain Python finds, with the same bits on any number of threads.

The networks are tables. A hypothesis has two states: `place` f32[N,1], and `seen` f32[2,N,3], whose second axis is that
of the sentences. The next token's log probabilities are the row of a table that its place and its last token say. All
numbers are multiples of 1/64, so that sums are exact and equal scores come often; where lengths are weighed, they are
any, so that no two are near each other.
"""
import numpy
import pytest

from support.beam_search import search
from support.bodies import Body
from support.model_builder import Model
from support.module import Module
from support.refusal import refused

PLACES, MOST = 7, 5  # rows of the table; sentences
THREADS = (1, 2, 3, 8)
OUTPUTS = ["tokens", "lengths", "scores", "settled", "over"]
# beam_size, tokens, max_length, n_best, length_penalty
SEARCHES = [(1, 2, 4, 1, 0), (2, 2, 9, 2, 0), (3, 5, 6, 1, 0), (4, 11, 12, 4, 0), (8, 3, 5, 3, 0), (5, 40, 7, 2, 0),
            (4, 6, 8, 2, 1), (3, 9, 7, 3, 0.7), (2, 5, 6, 2, -0.5), (16, 33, 1, 16, 0)]


def step(body, table):
    """One step for all hypotheses; the table is read from outside of the body."""
    token, place, seen = body.inputs

    def constant(*values, dtype=numpy.float32):
        return body.constant(numpy.array(values, dtype))

    last = body.node("Unsqueeze", [body.node("Cast", [token], to="f32"), constant(1, dtype=numpy.int64)])
    moved = body.node("Add", [body.node("Mul", [place, constant(3)]), last])
    place = body.node("Mod", [moved, constant(PLACES)], fmod=1)
    row = body.node("Cast", [body.node("Squeeze", [place, constant(1, dtype=numpy.int64)])], to="i64")
    seen = body.node("Add", [seen, body.node("Unsqueeze", [place, constant(0, dtype=numpy.int64)])])
    usual = body.node("Gather", [table, row])  # [N*K, tokens]
    used = body.node("ReduceSum", [seen, constant(0, 2, dtype=numpy.int64)], keepdims=0)
    often = body.node("Mod", [body.node("Mul", [used, constant(1 / 64)]), constant(1)], fmod=1)
    body.output(body.node("Sub", [usual, body.node("Unsqueeze", [often, constant(1, dtype=numpy.int64)])]), place, seen)
    return body


def network(beam, tokens, length, best, penalty, sentences, steps=None):
    model = Model()
    n = model.dim("N", 1, 2, MOST) if sentences is None else sentences
    start, table = model.input("start", "i64", [n]), model.input("table", "f32", [PLACES, tokens])
    place, seen = model.input("place", "f32", [n, 1]), model.input("seen", "f32", [2, n, 3])
    doubled = model.node("Add", [table, table])
    body = step(Body(model, token="i64", place="f32", seen="f32"), doubled)
    model.output(*model.node("BeamSearch", [start, place, seen], OUTPUTS[:None if steps else 3], body=body, beam_size=beam,
                             end_token=tokens - 1, max_length=length, n_best=best, length_penalty=float(penalty),
                             state_axes=[0, 1], steps=steps))
    return model


def next_of(table, token, place, seen):
    place = numpy.float32((3 * place + token) % PLACES)
    seen = seen + place
    often = numpy.float32(seen.sum() / 64 % 1)
    return 2 * table[int(place)] - often, place, seen


def found(feeds, n, **options):
    """What a search of sentence n finds."""
    table, states = feeds["table"], (feeds["place"][n, 0], feeds["seen"][:, n])
    return search(lambda token, *states: next_of(table, token, *states), feeds["start"][n], states, table.shape[1] - 1,
                  **options)


def feeds_of(rng, tokens, sentences, exact):
    table = rng.integers(-300, 0, (PLACES, tokens)) / 64 if exact else -5 * rng.random((PLACES, tokens))
    return {"start": rng.integers(0, tokens, sentences), "table": table.astype(numpy.float32),
            "place": rng.integers(0, PLACES, (sentences, 1)).astype(numpy.float32),
            "seen": rng.integers(0, 9, (2, sentences, 3)).astype(numpy.float32)}


def check(got, feeds, beam, length, best, penalty):
    end = feeds["table"].shape[1] - 1
    for n in range(len(feeds["start"])):
        due = found(feeds, n, beam=beam, length=length, best=best, penalty=penalty)
        for k in range(best):
            score, tokens = due[k] if k < len(due) else (-numpy.inf, [])
            assert list(got["tokens"][n, k]) == tokens + [end] * (length - len(tokens)), (n, k)
            assert got["lengths"][n, k] == len(tokens), (n, k)
            numpy.testing.assert_allclose(got["scores"][n, k], score, rtol=1e-6 if penalty else 0)


@pytest.mark.every_case
@pytest.mark.parametrize("sentences", [None, 1])
@pytest.mark.parametrize("which", range(len(SEARCHES)))
def test_the_best_hypotheses_are_found(compile, tmp_path, which, sentences):
    """50 tables a module: 1,000 networks. More threads than cores wait for each other long, so they have few of them."""
    beam, tokens, length, best, penalty = SEARCHES[which]
    rng = numpy.random.default_rng([which, sentences or 0])
    path = compile(network(beam, tokens, length, best, penalty, sentences).write(tmp_path))
    with Module(path) as module:
        contexts = [module.context(threads) for threads in THREADS]
        for table in range(50):
            feeds = feeds_of(rng, tokens, sentences or rng.integers(1, MOST + 1), penalty == 0)
            got = contexts[0].run(feeds)
            check(got, feeds, beam, length, best, penalty)
            other = contexts[1 if table % 5 else 2 + table // 5 % 2].run(feeds)
            assert all(got[name].tobytes() == other[name].tobytes() for name in got)
        for context in contexts:
            context.close()


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("which", [2, 4, 7, 8])
def test_a_search_goes_on_from_run_to_run(compile, tmp_path, which, steps):
    """What has settled stays; at the end the result is that of one run. A context that is reset begins anew."""
    beam, tokens, length, best, penalty = SEARCHES[which]
    rng = numpy.random.default_rng(which)
    path = compile(network(beam, tokens, length, best, penalty, 2, steps).write(tmp_path))
    began, early = 0, 0
    with Module(path) as module, module.context(2) as context:
        for _ in range(10):
            feeds = feeds_of(rng, tokens, 2, penalty == 0)
            runs = [context.run(feeds)]
            while not runs[-1]["over"].all():
                runs.append(context.run(feeds))
                assert len(runs) <= -(-length // steps)
            check(runs[-1], feeds, beam, length, best, penalty)
            assert (runs[-1]["settled"] == runs[-1]["lengths"][:, 0]).all()
            for before, after in zip(runs, runs[1:]):
                assert (before["settled"] <= after["settled"]).all() and (before["over"] <= after["over"]).all()
                for n, count in enumerate(before["settled"]):
                    assert (before["tokens"][n, 0, :count] == runs[-1]["tokens"][n, 0, :count]).all()
            early += sum((run["settled"] > 0).any() for run in runs[:-1])
            began += len(runs) > 1
            context.reset()
    assert began and (early or beam > 3)  # else nothing has settled before an end


# ---- what is refused ----


def set_body(*changes):
    """changes: what is done with the body."""
    def change(node):
        for do in changes:
            do(node["attributes"]["body"])
    return change


def attribute(**values):
    return lambda node: node["attributes"].update(values)


def wrong_outputs(body):
    body.outputs = body.outputs[:2]


def whole_numbers(body):
    body.outputs[0] = body.node("Cast", [body.outputs[0]], to="i64")


def flattened(body):
    body.outputs[0] = body.node("Reshape", [body.outputs[0], body.constant(numpy.array([-1]))])


def other_state(body):
    body.outputs[1] = body.node("Concat", [body.outputs[1]] * 2, axis=1)


def drawing(body):
    body.outputs[1] = body.node("Add", [body.outputs[1], body.node("RandomNormalLike", [body.outputs[1]])])


def drawing_in_a_branch(body):
    branches = {name: Body(body.model) for name in ("then_branch", "else_branch")}
    for branch in branches.values():
        branch.output(branch.node("RandomNormalLike", [body.outputs[1]]))
    body.outputs[1] = body.node("If", [body.constant(numpy.array(True))], **branches)


REFUSED = {
    "no hypothesis": (attribute(beam_size=0), 2, "expected `beam_size` from 1 to 1024, found 0"),
    "too many hypotheses": (attribute(beam_size=1025), 2, "expected `beam_size` from 1 to 1024, found 1025"),
    "more steps in a run than in all": (attribute(steps=7), 2, "expected `steps` from 0 to 6, found 7"),
    "steps of any number of sentences": (attribute(steps=2), 3, "`steps` needs constant extents, found `start` i64[N]"),
    "no step": (attribute(max_length=0), 2, "expected `max_length` from 1 to 65536, found 0"),
    "more returned than open": (attribute(n_best=4), 2, "expected `n_best` from 1 to 3, found 4"),
    "an end that is no token": (attribute(end_token=5), 2, "expected `end_token` from 0 to 4, found 5"),
    "an axis too many": (attribute(state_axes=[0, 1, 0]), 2, "expected 2 entries of `state_axes`, one a state, found 3"),
    "an axis without sentences": (attribute(state_axes=[0, 0]), 2, "axis 0 of state `seen` f32[2, N, 3] must be as long as"),
    "a step without a state": (set_body(wrong_outputs), 2, "the body has 3 inputs and 2 outputs; expected 3 of each"),
    "integers for probabilities": (set_body(whole_numbers), 2, "must be log probabilities, f32[3*N, tokens], found"),
    "a row for all hypotheses": (set_body(flattened), 2, "must be log probabilities, f32[3*N, tokens], found"),
    "a state that changes": (set_body(other_state), 2, "a state goes in as", "they must be the same"),
    "a branch of a step that draws": (set_body(drawing_in_a_branch), 3, "its body draws random numbers"),
    "a step that draws": (set_body(drawing), 3, "its body draws random numbers"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_search_is_refused(rnncc, tmp_path, name):
    change, code, *texts = REFUSED[name]
    model = network(3, 5, 6, 1, 0, None)
    change(model.nodes[-1])
    refused(rnncc, tmp_path, model.write(tmp_path), code, "nodes[1]", *texts)


def test_weights_of_lengths_are_numbers(rnncc, tmp_path):
    text = network(3, 5, 6, 1, 0.5, None).write(tmp_path).read_text().replace('"length_penalty": 0.5', '"length_penalty": 1e999')
    refused(rnncc, tmp_path, text, 2, "length_penalty")
