# SPDX-License-Identifier: MIT
"""Compiled RNN, GRU and LSTM with products of integers, by ranges of each step or fixed ones, over all attributes, against
NumPy's exact products of the same integers (support/recurrent_int8.py).

One unit of one sum is some 1e-4 of a gate: the bound of f32, near 1e-6, finds a sum that is wrong by one.
"""
import functools
import re

import numpy as np
import pytest

from support.amount import some
from support.model_builder import Model
from support.module import Module
from support.recurrent import model_of
from support.recurrent_groups import GROUP, assert_near, check_threads, emulated_outputs, fixed_dims, \
    group_outputs, in_groups, is_optimised, shapes_of, steps_runner, tolerance
from support.recurrent_int8 import int8_configuration
from support.refusal import refused

CONFIGURATIONS = [int8_configuration(seed) for seed in some(range(210), 60)]
FIXED = [int8_configuration(seed, fixed=True) for seed in some(range(210), 60)]


def check_values(configuration, shapes, outputs_of):
    weights = configuration.random_weights()
    for T, B in shapes:
        feeds, got = configuration.random_feeds(T, B, 0), outputs_of(T, B)
        y = got["Y"].transpose(1, 2, 0, 3) if configuration.layout else got["Y"]
        expected = configuration.values(weights, feeds, y)
        limit = tolerance(configuration, T, expected["Y"])
        assert (np.abs(y - expected["Y"]) <= limit + configuration.doubt).all(), f"T={T} B={B} Y"
        for name in set(got) - {"Y"}:
            want = configuration.to_layout({name: expected[name]})[name]
            assert_near(got[name], want, limit + configuration.doubt.max(), f"T={T} B={B} {name}")


def check_target(configuration, group, compile, tmp_path, *options):
    path = compile(model_of(group, **fixed_dims(group)).write(tmp_path), *options, optimised=is_optimised(group, *options))
    check_values(configuration, shapes_of(group), lambda T, B: configuration.own(group_outputs(path, group, T, B, 2)))


@in_groups(CONFIGURATIONS, 4)
def test_values_are_those_of_exact_products(configuration, group, compile, tmp_path):
    check_target(configuration, group, compile, tmp_path)


@in_groups(FIXED, 3)
def test_by_fixed_ranges_values_are_those_of_exact_products(configuration, group, compile, tmp_path):
    check_target(configuration, group, compile, tmp_path)


@in_groups(FIXED[:GROUP], 1)
@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64"])
def test_by_fixed_ranges_targets_compute_the_same(configuration, group, target, compile, tmp_path):
    check_target(configuration, group, compile, tmp_path, f"--target={target}")


@in_groups(CONFIGURATIONS[:2 * GROUP], 1)
def test_avx2_computes_the_same(configuration, group, compile, tmp_path):
    check_target(configuration, group, compile, tmp_path, "--target=x86-64-v3")


@in_groups(CONFIGURATIONS[GROUP:3 * GROUP], 1)
def test_sse_computes_the_same(configuration, group, compile, tmp_path):
    check_target(configuration, group, compile, tmp_path, "--target=x86-64-v2")


@in_groups(CONFIGURATIONS[2 * GROUP:4 * GROUP], 1)
def test_plain_c_computes_the_same(configuration, group, compile, tmp_path):
    check_target(configuration, group, compile, tmp_path, "--target=x86-64")


@pytest.mark.parametrize("target", ["aarch64-linux-gnu", "aarch64-linux-gnu+dotprod", "aarch64-linux-gnu+dotprod+i8mm"])
@in_groups(CONFIGURATIONS[GROUP:3 * GROUP], 1)
def test_neon_under_qemu_computes_the_same(configuration, group, target, compile, aarch64_rnnrun, tmp_path):
    path = compile(model_of(group, **fixed_dims(group)).write(tmp_path), f"--target={target}", optimised=False)

    def outputs_of(T, B):
        return configuration.own(emulated_outputs(path, group, T, B, aarch64_rnnrun, tmp_path))

    check_values(configuration, shapes_of(group), outputs_of)


TILES = ["aarch64-linux-gnu+dotprod+i8mm", "aarch64-linux-gnu+i8mm"]
# B, None: only the run knows it; --rnn. Of 5, 7 and 13 samples some shares and blocks have odd numbers.
BATCHES = [(13, "workers=2,batch_parts=2"), (None, "workers=2,batch_parts=1"), (7, "workers=3,batch_parts=3"),
           (5, "workers=2,batch_parts=1")]


@pytest.mark.every_case
@pytest.mark.parametrize("target", some(TILES, 1))
@in_groups(CONFIGURATIONS[3 * GROUP:15 * GROUP], 3)
def test_tiles_of_two_rows_have_the_bits_of_dot_products(configuration, group, target, compile, aarch64_rnnrun, tmp_path):
    fixed, how = BATCHES[group[0].seed // GROUP % len(BATCHES)]
    model = model_of(group, T=fixed and 7, B=fixed).write(tmp_path)
    tiles, dots = [compile(model, f"--target={name}", f"--rnn={how}", optimised=False)
                   for name in (target, "aarch64-linux-gnu+dotprod")]
    for B in [fixed] if fixed else range(1, 6):
        got, due = [configuration.own(emulated_outputs(path, group, 7, B, aarch64_rnnrun, tmp_path, threads=3)) for path in (tiles, dots)]
        for name in due:
            assert np.array_equal(got[name].view(np.uint32), due[name].view(np.uint32)), f"B={B} {name}"


def forms_of(rnncc, tmp_path, target, T, B):
    """How a GRU's products with W and with R are made, by the kernels' headings."""
    model, rng = Model("layer"), np.random.default_rng(3)
    model.dim("T", 1, T, 20)
    model.dim("B", 1, B, 6)
    W, R = (model.constant(rng.uniform(-1, 1, (1, 3 * 24, n)).astype(np.float32), name) for n, name in ((9, "W"), (24, "R")))
    model.node("GRU", [model.input("x", "f32", ["T", "B", 9]), W, R], ["Y"], hidden_size=24, precision="int8-dynamic")
    model.output("Y")
    (folder := tmp_path / f"{target}{T}{B}").mkdir()
    done = rnncc(model.write(folder), f"--target={target}", "--rnn=batch_parts=1", "--emit=c", "-o", folder / "c")
    assert done.returncode == 0, done.stderr
    return [int(form) for form in re.findall(r"^/\* ---- kernel .*: recurrent_int8.* FORM=(\d)", (folder / "c" / "network.c").read_text(), re.M)]


def test_tiles_are_chosen_where_there_are_two_rows(rnncc, tmp_path):
    """By the optimum of T and B: of the product with W rows are those of all steps."""
    in_tiles, found = 3, {}
    for T, B in ((1, 1), (10, 1), (1, 2), (10, 2)):
        found[T, B] = forms_of(rnncc, tmp_path, TILES[0], T, B)
        assert forms_of(rnncc, tmp_path, "aarch64-linux-gnu+dotprod", T, B) == [0, 0]
    assert found == {(1, 1): [0, 0], (10, 1): [in_tiles, 0], (1, 2): [in_tiles] * 2, (10, 2): [in_tiles] * 2}


@in_groups(CONFIGURATIONS[:6 * GROUP], 4)
def test_thread_counts_are_bit_identical(configuration, group, compile, tmp_path):
    check_threads(configuration, group, compile, tmp_path)


def sample_of(configuration, arrays, sample):
    """The arrays of layout 0 with one sample of the batch."""
    axes = {"x": 1, "lengths": 0, "Y": 2}
    return {name: array.take([sample], axis=axes.get(name, 1)) for name, array in arrays.items()}


ANY_BATCH = [c for c in CONFIGURATIONS if not c.layout][:GROUP]


@in_groups(ANY_BATCH)
def test_a_sample_is_the_same_in_any_batch(configuration, group, compile, tmp_path):
    path, T, B = compile(model_of(group).write(tmp_path)), 9, 5
    feeds = [(c, c.random_feeds(T, B, 0)) for c in group]

    def run(context, of):
        given = {name: array for c, arrays in feeds for name, array in c.named(of(c, arrays)).items()}
        return configuration.own(context.run(given))

    with Module(path) as module, module.context(threads=2) as context:
        whole = run(context, lambda c, arrays: arrays)
        for sample in range(B):
            alone = run(context, lambda c, arrays: sample_of(c, arrays, sample))
            for name, array in sample_of(configuration, whole, sample).items():
                assert np.array_equal(alone[name].view(np.uint32), array.view(np.uint32)), (sample, name)


FORWARD = [c for c in CONFIGURATIONS if c.direction == "forward" and not c.lengths][:2 * GROUP]


@in_groups(FORWARD, 1)
def test_pieces_with_carried_states_equal_the_whole_sequence_bit_for_bit(configuration, group, compile, tmp_path):
    path, T = compile(model_of(group, streaming=True, B=2).write(tmp_path)), 20
    run = steps_runner(configuration, group, T, 2)
    with Module(path) as module, module.context() as whole, module.context() as cut:
        expected = run(whole, 0, T)
        got = np.concatenate([run(cut, 0, 7), run(cut, 7, 8), run(cut, 8, T)])
        assert np.array_equal(got.view(np.uint32), expected.view(np.uint32))


# ---- values at the edge ----


def one_layer(op, R, W, precision="int8-dynamic", usual=4, **ranges):
    """Of one direction, without biases: X [T, 1, I], Y. usual: the optimum of T."""
    model = Model("edge")
    model.dim("T", 1, usual, 20)
    x = model.input("x", "f32", ["T", 1, W.shape[2]])
    model.node(op, [x, model.constant(W, "W"), model.constant(R, "R")], ["Y"], hidden_size=R.shape[2],
               precision=precision, **ranges)
    model.output("Y")
    return model


@pytest.mark.every_case
@pytest.mark.parametrize("most, least", [(127, -127), (127, -128), (64, -64)])
@pytest.mark.parametrize("target", ["native", "x86-64-v4", "x86-64-v4+vnni+amx", "x86-64-v3", "x86-64-v2", "x86-64"])
def test_no_sum_saturates_or_overflows(target, most, least, compile, tmp_path):
    """All weights are 127, or the least ones, and all inputs 255 or 0: pairs of products leave 16 bits by far; or pairs are as
    large as they may be there. Each row has a weight of 125 or 63, so that the others are multiples of no smaller number."""
    I, H = 4000, 20
    W = np.full((1, H, I), most, np.float32)
    W[0, ::2, 1:] = least
    W[0, :, 0] = 125 if most == 127 else 63
    usual = 8 if "amx" in target else 4  # rows that matrices gain by
    path = compile(one_layer("RNN", np.zeros((1, H, H), np.float32), W / (255 * 127 * I), usual=usual).write(tmp_path),
                   f"--target={target}")
    x = np.full((3, 1, I), 255, np.float32)
    x[1] = -255
    with Module(path) as module, module.context() as context:
        y = context.run({"x": x})["Y"]
    sums = W[0].sum(axis=1, dtype=float) / (127 * I)
    expected = np.tanh(sums * np.array([1, -1, 1])[:, None, None, None])
    assert np.abs(y - expected).max() < 1e-5


def test_small_weights_are_multiplied_in_pairs_and_those_without_the_least_one_with_the_signs_of_the_inputs(rnncc, tmp_path):
    """Where the CPU multiplies pairs of bytes; one weight of -128, and the second form is wrong, or a pair of 65, and the first
    one is."""
    found = {}
    for target in ("x86-64-v3", "x86-64-v3+vnni", "aarch64-linux-gnu"):
        for most, least in ((127, -127), (127, -128), (64, -63), (65, 65)):
            W = np.random.default_rng(4).integers(-62, 63, (1, 24, 40)).astype(np.float32)
            W[..., 0], W[..., 1], W[0, 23, 7] = most, 2 if most == 127 else -63, least
            W[0, 23, 6] = 1 if least < 0 else 65
            model = one_layer("RNN", np.zeros((1, 24, 24), np.float32), W / 127)
            folder = tmp_path / f"{target}{most}{least}"
            done = rnncc(model.write(tmp_path), f"--target={target}", "--emit=c", "-o", folder)
            assert done.returncode == 0, done.stderr
            text = "".join(path.read_text() for path in folder.rglob("*.c"))
            found[target, most, least] = [form for form in (1, 2) if f"weights, depth, {form})" in text or f"FORM = {form}" in text]
    due = {("x86-64-v3", 127, -127): [2], ("x86-64-v3", 64, -63): [1], ("x86-64-v3", 65, 65): [2]}
    assert {key: forms for key, forms in found.items() if forms} == due, found


STATIC = {"precision": "int8-static", "input_range": [-1.0, 0.9], "hidden_range": [-0.8, 0.8]}


@pytest.mark.parametrize("how", [{}, STATIC], ids=["dynamic", "static"])
def test_a_row_that_is_not_finite_makes_nan_and_others_stay(how, compile, tmp_path):
    rng = np.random.default_rng(5)
    W, R = (rng.uniform(-1, 1, (1, 4 * 24, n)).astype(np.float32) / 5 for n in (30, 24))
    path = compile(one_layer("LSTM", R, W, **how).write(tmp_path))
    x = rng.uniform(-1, 1, (6, 1, 30)).astype(np.float32)
    with Module(path) as module, module.context(threads=2) as context:
        good = context.run({"x": x})["Y"]
        for bad in (np.nan, np.inf, -np.inf):
            x[3, 0, 29] = bad
            y = context.run({"x": x})["Y"]
            assert np.array_equal(y[:3], good[:3]) and np.isnan(y[3:]).all(), bad


def test_zeros_are_exact(compile, tmp_path):
    rng = np.random.default_rng(6)
    W, R = rng.uniform(-1, 1, (1, 9, 7)).astype(np.float32), np.zeros((1, 9, 9), np.float32)
    W[0, 4] = 0
    path = compile(one_layer("RNN", R, W).write(tmp_path))
    x = np.zeros((2, 1, 7), np.float32)
    x[1] = 1e-38  # a range that no product in f32 can tell from zero
    with Module(path) as module, module.context() as context:
        assert not context.run({"x": x})["Y"].any()
        assert not context.run({"x": x + 1})["Y"][:, 0, 0, 4].any()


def test_what_leaves_a_fixed_range_is_its_end(compile, tmp_path):
    """The largest floats, too, whose products with the scale are no integers of 32 bits."""
    rng = np.random.default_rng(7)
    W = rng.uniform(-1, 1, (1, 9, 7)).astype(np.float32)
    path = compile(one_layer("RNN", np.zeros((1, 9, 9), np.float32), W, **STATIC).write(tmp_path))
    x = np.array([[-3e38, -2, -1, 0.9, 2, 3e38, 0]], np.float32)[:, None]
    with Module(path) as module, module.context() as context:
        assert np.array_equal(context.run({"x": x})["Y"], context.run({"x": np.clip(x, -1, 0.9)})["Y"])


# ---- what is refused ----


@pytest.mark.parametrize("ranges, words", [
    ({"input_range": None}, "precision int8-static needs the attribute `input_range`"),
    ({"hidden_range": None}, "precision int8-static needs the attribute `hidden_range`"),
    ({"input_range": [0.0]}, "`input_range` has 1 numbers; expected 2"),
    ({"hidden_range": [1.0, -1.0]}, "`hidden_range` is 1 to -1; expected least <= 0 <= most"),
    ({"hidden_range": [0.5, 1.0]}, "`hidden_range` is 0.5 to 1; expected least <= 0 <= most"),
    ({"input_range": [0.0, 0.0]}, "`input_range` is 0 to 0; expected least <= 0 <= most, more than 2^-100 apart"),
    ({"input_range": [-1e300, 1.0]}, "`input_range` is -1e+300 to 1; expected"),
])
def test_ranges_that_cannot_be_are_refused(rnncc, tmp_path, ranges, words):
    how = {name: value for name, value in (STATIC | ranges).items() if value is not None}
    model = one_layer("RNN", np.zeros((1, 3, 3), np.float32), np.ones((1, 3, 2), np.float32), **how)
    refused(rnncc, tmp_path, model.write(tmp_path), 2, "nodes[0]", words)


@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64-v3", "aarch64-linux-gnu"])
def test_weights_that_are_not_constant_are_refused(target, rnncc, tmp_path):
    """Also where products have forms, which weights that are known decide."""
    model = Model("net")
    W, R = model.input("W", "f32", [1, 3, 2]), model.constant(np.zeros((1, 3, 3), np.float32), "R")
    model.node("RNN", [model.input("x", "f32", [4, 1, 2]), W, R], ["Y"], hidden_size=3, precision="int8-dynamic")
    model.output("Y")
    for_target = functools.partial(rnncc, f"--target={target}")
    refused(for_target, tmp_path, model.write(tmp_path), 3, "nodes[0]", "precision int8-dynamic needs a constant W")


def test_depths_whose_sums_could_leave_32_bits_are_refused(rnncc, tmp_path):
    model = one_layer("RNN", np.zeros((1, 1, 1), np.float32), np.ones((1, 1, 65794), np.float32))
    refused(rnncc, tmp_path, model.write(tmp_path), 3, "at most 65793 inputs and units")


def test_an_unknown_precision_is_refused(rnncc, tmp_path):
    model = one_layer("RNN", np.zeros((1, 1, 1), np.float32), np.ones((1, 1, 2), np.float32), "int4")
    refused(rnncc, tmp_path, model.write(tmp_path), 2, "precision", "int8-dynamic", "int4")
