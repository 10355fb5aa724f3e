# SPDX-License-Identifier: MIT
"""softmax(Q K') V runs as one kernel however exporters write it, wherever Q, K and V stand, and computes what ONNX Runtime
does; what only resembles it stays as it is."""
import re

import numpy
import pytest

from support.emitted import TARGETS, run_module
from support.model_builder import Model

B, H, T, S, D = 2, 3, 19, 21, 8
EPS = 2.0**-23


def bound(depth=D, keys=S, scale=1.0):
    """Elements are below 1: a score errs by depth roundings of depth, and 4 of what it is shifted by; weights by as much
    twice, sums by the number of keys. Both sides err."""
    return 2 * (2 * (depth + 6) * depth * scale + keys + 16) * EPS


class Network:
    """q, k, v are values of [B, H, T, D], [B, H, S, D] and [B, H, S, D]."""

    def __init__(self, seed=1):
        self.model, self.feeds, self.rng = Model(), {}, numpy.random.default_rng(seed)

    def input(self, name, *shape, dims=None):
        self.feeds[name] = self.rng.uniform(-1, 1, shape).astype(numpy.float32)
        return self.model.input(name, "f32", dims or shape)

    def node(self, op, *inputs, **attributes):
        return self.model.node(op, list(inputs), **attributes)

    def number(self, value):
        return self.model.constant(numpy.float32(value))

    def integers(self, *values):
        return self.model.constant(numpy.array(values, numpy.int64))

    def operands(self, batch=(B, H), queries=T):
        return (self.input("q", *batch, queries, D), self.input("k", *batch, S, D), self.input("v", *batch, S, D))

    def keys_turned(self, k):
        return self.node("Transpose", k, perm=[0, 1, 3, 2])

    def finish(self, weights, v):
        self.model.output(self.node("MatMul", weights, v))
        return self

    def attend(self, q, k_turned, v, scaled=lambda net, scores: scores, masked=lambda net, scores: scores):
        scores = masked(self, scaled(self, self.node("MatMul", q, k_turned)))
        return self.finish(self.node("Softmax", scores, axis=-1), v)


def plain(queries=T, **options):
    net = Network()
    q, k, v = net.operands(queries=queries)
    return net.attend(q, net.keys_turned(k), v, **options)


def mask_from(*shape, first=False):
    def masked(net, scores):
        mask = net.input("mask", *shape)
        return net.node("Add", *((mask, scores) if first else (scores, mask)))

    return masked


def causal(net, scores):
    """The first query sees one key, the last one all but two."""
    mask = numpy.triu(numpy.full((T, S), -numpy.inf, numpy.float32), 1)
    return net.node("Add", scores, net.model.constant(mask))


def constant_mask(*masks, chosen=None):
    """The sum of masks; `chosen`: what Where has for a key that is hidden, instead."""
    def masked(net, scores):
        mask = sum(masks).astype(numpy.float32)
        if chosen is None:
            return net.node("Add", scores, net.model.constant(mask))
        return net.node("Where", net.model.constant(mask == 0), scores, net.number(chosen))

    return masked


def between(low, high, hidden=-numpy.inf, queries=T, groups=1):
    ahead = numpy.arange(S) - numpy.arange(queries)[:, None]
    return numpy.tile(numpy.where((low <= ahead) & (ahead <= high), 0, hidden), (groups, 1))


def slopes(*heads):
    """As ALiBi adds them."""
    ahead = numpy.arange(S) - numpy.arange(T)[:, None]
    return -numpy.abs(ahead) * numpy.array(heads)[:, None, None]


def chosen_the_other_way(net, scores):
    """As PyTorch's masked_fill."""
    hidden = net.model.constant(between(-S, 1) != 0)
    return net.node("Where", hidden, net.number(numpy.finfo(numpy.float32).min), scores)


def scaled_before():
    """As PyTorch writes scaled_dot_product_attention."""
    net = Network()
    q, k, v = net.operands()
    root = net.number(D**-0.25)
    return net.attend(net.node("Mul", q, root), net.node("Mul", net.keys_turned(k), root), v)


def bool_mask():
    """The same with a mask of true and false, one row of which is all false: its query gets zeros."""
    net = Network()
    q, k, v = net.operands()
    allowed = net.rng.uniform(size=(B, 1, T, S)) > 0.3
    allowed[:, :, 4] = False
    net.feeds["allowed"] = allowed
    given = net.model.input("allowed", "bool", allowed.shape)
    mask = net.node("Where", given, net.number(0), net.number(-numpy.inf))
    scores = net.node("Add", net.node("MatMul", q, net.keys_turned(k)), mask)
    weights = net.node("Softmax", scores, axis=-1)
    return net.finish(net.node("Where", net.node("IsNaN", weights), net.number(0), weights), v)


def of_one_input(cut, batch=B, tokens=T):
    """Q, K and V side by side in one input, cut and turned; the result turned back."""
    net = Network()
    x = net.input("x", batch, tokens, 3 * H * D)
    parts = cut(net, x)
    q, k, v = (net.node("Reshape", part, net.integers(batch, tokens, H, D)) for part in parts)
    q, v = (net.node("Transpose", part, perm=[0, 2, 1, 3]) for part in (q, v))
    weights = net.node("Softmax", net.node("MatMul", q, net.node("Transpose", k, perm=[0, 2, 3, 1])), axis=-1)
    mixed = net.node("Transpose", net.node("MatMul", weights, v), perm=[0, 2, 1, 3])
    net.model.output(net.node("Reshape", mixed, net.integers(batch, tokens, H * D)))
    return net


def by_split(net, x):
    return net.model.node("Split", [x, net.integers(H * D, H * D, H * D)], 3, axis=-1)


def by_slice(net, x):
    return [net.node("Slice", x, net.integers(k * H * D), net.integers((k + 1) * H * D), net.integers(2))
            for k in range(3)]


def by_gather(net, x):
    """As PyTorch writes MultiheadAttention."""
    apart = net.node("Unsqueeze", net.node("Reshape", x, net.integers(0, 0, 3, H * D)), net.integers(0))
    apart = net.node("Squeeze", net.node("Transpose", apart, perm=[3, 1, 2, 0, 4]), net.integers(3))
    return [net.node("Gather", apart, net.model.constant(numpy.int64(k)), axis=0) for k in (0, 1, -1)]


def repeated_keys():
    """One head of keys and values for all of the queries."""
    net = Network()
    q, k, v = net.input("q", B, H, T, D), net.input("k", B, 1, S, D), net.input("v", 1, 1, S, D)
    return net.attend(q, net.keys_turned(k), v)


def of_rank(rank):
    net = Network()
    batch = (B, H)[:rank - 2]
    q, k, v = net.operands(batch)
    return net.attend(q, net.node("Transpose", k, perm=[*range(rank - 2), rank - 1, rank - 2]), v)


def turned_inside_out():
    """The result's columns do not stay side by side."""
    net = plain()
    net.model.outputs[:] = [net.node("Transpose", net.model.outputs[0], perm=[0, 1, 3, 2])]
    return net


FORMS = {
    "turned_inside_out": turned_inside_out,
    "known_weights": lambda: known(),
    "plain": plain,
    "scaled": lambda: plain(scaled=lambda net, x: net.node("Mul", net.number(0.5), x)),
    "divided": lambda: plain(scaled=lambda net, x: net.node("Div", x, net.number(2))),
    "scaled_before": scaled_before,
    "mask": lambda: plain(masked=mask_from(B, H, T, S)),
    "mask_first": lambda: plain(masked=mask_from(T, S, first=True)),
    "mask_of_keys": lambda: plain(masked=mask_from(B, 1, 1, S)),
    "mask_of_rank_1": lambda: plain(masked=mask_from(S)),
    "causal": lambda: plain(masked=causal),
    "causal_by_a_large_number": lambda: plain(masked=constant_mask(between(-S, 0, numpy.finfo(numpy.float32).min))),
    "window": lambda: plain(masked=constant_mask(between(-2, 3))),
    "slopes_in_a_window": lambda: plain(masked=constant_mask(between(-2, 3), slopes(0.1, 0.2, 0.4))),
    "chosen": lambda: plain(masked=constant_mask(between(-S, 0), chosen=-numpy.inf)),
    "chosen_the_other_way": lambda: plain(masked=chosen_the_other_way),
    "bool_mask": bool_mask,
    "split": lambda: of_one_input(by_split),
    "slice": lambda: of_one_input(by_slice),
    "gather": lambda: of_one_input(by_gather),
    "one_batch": lambda: of_one_input(by_split, batch=1),
    "repeated_keys": repeated_keys,
    "rank_2": lambda: of_rank(2),
    "rank_3": lambda: of_rank(3),
}


def compiled(net, rnncc, folder, *options):
    """(how many nodes are fused, the module)."""
    done = rnncc(net.model.write(folder), "-o", folder / "m.so", "--dump-after=fuse_attention", "--verify-each", *options)
    assert done.returncode == 0, done.stderr
    return done.stderr.count(" = FusedAttention("), folder / "m.so"


def check(net, module, allowance):
    got, expected = run_module(module, net.feeds), net.model.onnx_run(net.feeds)
    for name, array in expected.items():
        numpy.testing.assert_allclose(got[name], array, rtol=0, atol=allowance)


@pytest.mark.parametrize("form", FORMS)
def test_attention_is_one_kernel_however_it_is_written(form, rnncc, tmp_path):
    net = FORMS[form]()
    fused, module = compiled(net, rnncc, tmp_path, "--target=x86-64-v3")
    assert fused == 1
    check(net, module, bound())


@pytest.mark.parametrize("cut", [by_split, by_slice])
def test_nothing_is_copied_before_or_after_it(cut, rnncc, tmp_path):
    done = rnncc(of_one_input(cut).model.write(tmp_path), "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "c" / "network.c").read_text()
    assert "_attention(" in text and "copy_strided" not in text


def blocks_in_hand(net, rnncc, folder, target):
    done = rnncc("inspect", net.model.write(folder), "--dump-after=choose_schedules", f"--target={target}")
    return [int(blocks) for blocks in re.findall(r"attention vectors=.*,query_blocks=(\d+),", done.stderr)]


def test_long_keys_of_heads_side_by_side_are_copied_where_registers_are_few(rnncc, tmp_path):
    """Not those of heads apart, nor for few queries."""
    long = of_one_input(by_split, tokens=330)
    assert blocks_in_hand(long, rnncc, tmp_path, "x86-64-v3")[0] > 4
    assert blocks_in_hand(long, rnncc, tmp_path, "x86-64-v4") == [1]
    assert blocks_in_hand(of_one_input(by_split), rnncc, tmp_path, "x86-64-v3") == [1]
    assert blocks_in_hand(plain(queries=330), rnncc, tmp_path, "x86-64-v3") == [1]
    _, module = compiled(long, rnncc, tmp_path, "--target=x86-64-v3")
    check(long, module, bound(keys=330))


LONG, KEYS_LONG = 150, 300  # blocks of queries and of keys


def of_long(masks, as_input=False):
    """Two heads of 150 queries and 300 keys, once with each of the masks."""
    net = Network()
    q, k, v = (net.input(name, 1, 2, rows, D) for name, rows in (("q", LONG), ("k", KEYS_LONG), ("v", KEYS_LONG)))
    for n, mask in enumerate(masks):
        net.feeds |= {f"mask{n}": mask} if as_input else {}
        given = net.model.input(f"mask{n}", "f32", mask.shape) if as_input else net.model.constant(mask)
        scores = net.node("MatMul", q, net.keys_turned(k))
        net.finish(net.node("Softmax", net.node("Add", scores, given), axis=-1), v)
    return net


def long_mask(low, high, hidden=-numpy.inf, period=LONG):
    ahead = numpy.arange(KEYS_LONG) - (numpy.arange(LONG) % period)[:, None]
    return numpy.where((low <= ahead) & (ahead <= high), 0, hidden).astype(numpy.float32)


def one_key_hidden():
    mask = long_mask(-LONG, 0)
    mask[140, 20] = -numpy.inf
    return mask


def a_blind_query(hidden):
    mask = long_mask(-LONG, 0, hidden)
    mask[30] = hidden
    return mask


HUGE = numpy.finfo(numpy.float32).min
# What hides, and whether a mask stays beside the band.
BANDS = {
    "causal": (long_mask(-LONG, 0), False),
    "causal_after_a_past": (long_mask(-LONG, 150), False),
    "window": (long_mask(-20, 10), False),
    "window_ahead": (long_mask(60, 90), False),
    "large_numbers": (long_mask(-LONG, 0, HUGE), False),
    "two_groups": (long_mask(-75, 0, period=75), False),
    "three_groups": (long_mask(-7, 9, period=50), False),
    "one_key_hidden": (one_key_hidden(), True),
    "a_number_in_it": (long_mask(-LONG, 0) + numpy.float32(0.5), True),
    "a_blind_query": (a_blind_query(-numpy.inf), True),
    "each_head": (numpy.stack([long_mask(-9, 9), long_mask(-4, 12)]), True),
}


def masks_kept(net, rnncc, folder):
    """Of each kernel: has it a mask?"""
    done = rnncc("inspect", net.model.write(folder), "--dump-after=fuse_attention")
    assert done.returncode == 0, done.stderr
    inputs = [line.split(" = FusedAttention(")[1].split(")")[0] for line in done.stderr.splitlines()
              if " = FusedAttention(" in line]
    return [names.count(",") == 3 for names in inputs]


def test_masks_that_are_bands_become_them(rnncc, tmp_path):
    kept = masks_kept(of_long([mask for mask, _ in BANDS.values()]), rnncc, tmp_path)
    assert dict(zip(BANDS, kept)) == {name: stays for name, (_, stays) in BANDS.items()}


def test_keys_outside_of_a_band_are_skipped_and_change_no_bit(run_on_target, tmp_path):
    """The same masks as inputs have all keys computed."""
    masks, results = [mask for mask, _ in BANDS.values()], []
    for as_input in (False, True):
        net, folder = of_long(masks, as_input), tmp_path / str(as_input)
        folder.mkdir()
        results.append(run_on_target(net.model.write(folder), net.feeds, net.model.outputs))
    expected = net.model.onnx_run(net.feeds)
    for name, output in zip(BANDS, net.model.outputs, strict=True):
        skipped, computed = (result[output] for result in results)
        assert (skipped == computed).all(-1).sum() == 2 * (LONG - (name == "a_blind_query")), name
        numpy.testing.assert_allclose(skipped, expected[output], rtol=0, atol=bound(keys=KEYS_LONG), err_msg=name)


def test_a_mask_that_hides_no_key_stays(rnncc, compile, tmp_path):
    """Also where large numbers are all that a query has: they are equal weights."""
    net = of_long([long_mask(-LONG, 300), numpy.zeros((1, KEYS_LONG), numpy.float32), a_blind_query(HUGE)])
    assert masks_kept(net, rnncc, tmp_path) == [True, True, True]
    check(net, compile(net.model.write(tmp_path)), bound(keys=KEYS_LONG))


def test_the_skipped_keys_are_not_read(rnncc, tmp_path):
    net = of_long([long_mask(-LONG, 0)])
    _, module = compiled(net, rnncc, tmp_path)
    net.feeds["k"][:, :, LONG - 1:] = net.feeds["v"][:, :, LONG - 1:] = numpy.nan
    (got,) = run_module(module, net.feeds).values()
    assert numpy.isfinite(got[:, :, :64]).all() and numpy.isnan(got[:, :, -1]).all()


def test_extents_that_only_the_run_knows(rnncc, tmp_path):
    """Queries and keys from one to several blocks."""
    net = Network()
    net.model.dim("T", 1, 20, 80)
    net.model.dim("S", 1, 20, 600)
    q, k, v = (net.input(name, 1, 2, 1, D, dims=[1, 2, dim, D]) for name, dim in (("q", "T"), ("k", "S"), ("v", "S")))
    mask = net.input("mask", 1, 1, 1, 1, dims=[1, 1, "T", "S"])
    net.attend(q, net.keys_turned(k), v, masked=lambda net, scores: net.node("Add", scores, mask))
    fused, module = compiled(net, rnncc, tmp_path)
    assert fused == 1
    for queries, keys in ((1, 1), (17, 300), (80, 600), (64, 256)):
        net.feeds = {name: net.rng.uniform(-1, 1, shape).astype(numpy.float32) for name, shape in (
            ("q", (1, 2, queries, D)), ("k", (1, 2, keys, D)), ("v", (1, 2, keys, D)), ("mask", (1, 1, queries, keys)))}
        check(net, module, bound(keys=keys))


def weights_used_twice():
    net = Network()
    q, k, v = net.operands()
    weights = net.node("Softmax", net.node("MatMul", q, net.keys_turned(k)), axis=-1)
    net.model.output(weights)
    return net.finish(weights, v)


def softmax_over_queries():
    net = Network()
    q, k, v = net.operands()
    return net.finish(net.node("Softmax", net.node("MatMul", q, net.keys_turned(k)), axis=-2), v)


def one_query(turned=True, mask=False, blind=False, of=(B, H), depth=D, width=D, keys=S):
    """A batch has a row of scores. K as columns where it is not turned."""
    net = Network()
    q, v = net.input("q", *of, 1, depth), net.input("v", *of, keys, width)
    k = net.keys_turned(net.input("k", *of, keys, depth)) if turned else net.input("k", *of, depth, keys)
    scores = net.node("Mul", net.node("MatMul", q, k), net.number(0.25))
    if mask:
        scores = net.node("Add", scores, net.input("mask", of[0], 1, 1, keys))
    weights = net.node("Softmax", scores, axis=-1)
    if blind:
        net.feeds["mask"][1] = -numpy.inf
        weights = net.node("Where", net.node("IsNaN", weights), net.number(0), weights)
    return net.finish(weights, v)


WORKERS = "--threads=2"  # no more than there are batches, on any machine
ROWS = {"a row": {"of": (2, 1)}, "masked": {"mask": True}, "blind": {"mask": True, "blind": True},
        "tails": {"depth": 77, "width": 203, "keys": 45}, "one key": {"keys": 1, "width": 64, "of": (1, 2)}}


@pytest.mark.parametrize("name", ROWS)
def test_one_query_a_batch_is_one_kernel(name, rnncc, tmp_path):
    net = one_query(**ROWS[name])
    fused, module = compiled(net, rnncc, tmp_path, WORKERS)
    assert fused == 1
    check(net, module, bound(ROWS[name].get("depth", D), ROWS[name].get("keys", S)))


@pytest.mark.optimised_here
@pytest.mark.parametrize("target", TARGETS)
def test_one_query_on_every_vector_set(rnncc, run_for, tmp_path, target):
    net = one_query(mask=True, **ROWS["tails"])
    (due,) = net.model.onnx_run(net.feeds).values()
    assert compiled(net, rnncc, tmp_path, WORKERS, f"--target={target}")[0] == 1
    (got,) = run_for(target, net.model.write(tmp_path), net.feeds, net.model.outputs, WORKERS).values()
    numpy.testing.assert_allclose(got, due, rtol=0, atol=bound(77, 45))


def test_one_query_spoils_no_other_batch(rnncc, tmp_path):
    net = one_query()
    net.feeds["k"][0, 1, 3, 2], net.feeds["k"][1, 0, 0] = numpy.nan, numpy.inf
    fused, module = compiled(net, rnncc, tmp_path, WORKERS)
    (got,) = run_module(module, net.feeds).values()
    spoilt = numpy.isnan(got).all((2, 3))
    assert fused == 1 and spoilt.tolist() == numpy.isnan(got).any((2, 3)).tolist() == [[False, True, False], [True, False, False]]


@pytest.mark.parametrize("options", [{"turned": False}, {"of": (1, 1)}], ids=["columns of K", "one batch"])
def test_one_query_stays_where_it_gains_nothing(options, rnncc, tmp_path):
    net = one_query(**options)
    fused, module = compiled(net, rnncc, tmp_path, WORKERS)
    assert fused == 0
    check(net, module, bound())


def mask_of_queries():
    """The same for all keys."""
    return plain(masked=mask_from(T, 1))


def chosen_by_an_input():
    def masked(net, scores):
        net.feeds["seen"] = between(-S, 0) == 0
        return net.node("Where", net.model.input("seen", "bool", [T, S]), scores, net.number(-numpy.inf))

    return plain(masked=masked)


def chosen_moderately():
    """A key that is hidden still counts."""
    return plain(masked=constant_mask(between(-S, 0), chosen=-3))


def chosen_for_all_keys():
    """A query sees no key: large numbers are equal weights."""
    mask = between(-S, 0)
    mask[4] = -1
    return plain(masked=constant_mask(mask, chosen=numpy.finfo(numpy.float32).min))


def chosen_for_queries():
    """A query sees all keys, or none."""
    return plain(masked=constant_mask(between(-S, 0)[:, 3:4], chosen=-numpy.inf))


def divided_by_zero():
    return plain(scaled=lambda net, scores: net.node("Div", scores, net.number(0)))


def one_number_added():
    return plain(masked=mask_from())


def weights_of(net, q, k):
    return net.node("Softmax", net.node("MatMul", q, net.keys_turned(k)), axis=-1)


def known(of_others=False, instead=0, read_again=False):
    """Where(IsNaN(weights), 0, weights), but for one thing."""
    net = Network()
    q, k, v = net.operands()
    weights = weights_of(net, q, k)
    if read_again or of_others:
        net.model.output(net.node("Neg", weights))
    test = net.node("IsNaN", net.input("others", B, H, T, S) if of_others else weights)
    return net.finish(net.node("Where", test, net.number(instead), weights), v)


def vector():
    net = Network()
    q, k, v = net.input("q", D), net.input("k", D, S), net.input("v", S, D)
    return net.finish(net.node("Softmax", net.node("MatMul", q, k), axis=-1), v)


def too_wide():
    net = Network()
    q, k, v = net.input("q", T, 600), net.input("k", 600, S), net.input("v", S, 600)
    return net.finish(net.node("Softmax", net.node("MatMul", q, k), axis=-1), v)


def scaled_by_head():
    """The factor is no number."""
    return plain(scaled=lambda net, scores: net.node("Mul", scores, net.input("factor", H, 1, 1)))


@pytest.mark.parametrize("build", [weights_used_twice, softmax_over_queries, mask_of_queries, scaled_by_head,
                                   chosen_by_an_input, chosen_moderately, chosen_for_all_keys, chosen_for_queries,
                                   divided_by_zero, one_number_added, vector, too_wide,
                                   lambda: known(of_others=True), lambda: known(instead=1), lambda: known(read_again=True)])
def test_what_only_resembles_it_stays(build, rnncc, tmp_path):
    net = build()
    fused, module = compiled(net, rnncc, tmp_path)
    assert fused == 0
    check(net, module, bound())


@pytest.mark.parametrize("sizes", [("S", D), (S, 0)], ids=["keys", "depth"])
def test_what_may_be_empty_stays(sizes, rnncc, tmp_path):
    keys, depth = sizes
    model = Model()
    if keys == "S":
        model.dim("S", 0, 20, 40)
    q, k, v = (model.input(name, "f32", shape) for name, shape in (
        ("q", [T, depth]), ("k", [depth, keys]), ("v", [keys, D])))
    model.output(model.node("MatMul", [model.node("Softmax", [model.node("MatMul", [q, k])], axis=-1), v]))
    done = rnncc("inspect", model.write(tmp_path), "--dump-after=fuse_attention")
    assert done.returncode == 0 and "MatMul(" in done.stderr and "FusedAttention(" not in done.stderr, done.stderr


def test_an_infinite_score_and_one_that_is_no_number_spoil_their_query_alone(rnncc, tmp_path):
    net = plain(masked=mask_from(B, H, T, S))
    net.feeds["mask"][0, 0, 2, 3] = numpy.inf
    net.feeds["mask"][0, 0, 5, 3] = numpy.nan
    net.feeds["mask"][0, 0, 7] = -numpy.inf
    _, module = compiled(net, rnncc, tmp_path)
    (got,), (expected,) = run_module(module, net.feeds).values(), net.model.onnx_run(net.feeds).values()
    spoilt = numpy.isnan(got).all(-1)
    assert numpy.argwhere(spoilt).tolist() == [[0, 0, 2], [0, 0, 5], [0, 0, 7]]
    numpy.testing.assert_allclose(got[~spoilt], expected[~spoilt], rtol=0, atol=bound())
