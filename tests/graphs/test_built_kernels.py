# SPDX-License-Identifier: MIT
"""What the compiler tells a kernel that no result shows: who computes what, and which code it needs. It is read from the
C that --emit=c writes."""
import re

import numpy
import pytest

from support.model_builder import Model
from support.recurrent import GATES

TARGETS = {"x86-64-v4": 16, "x86-64-v3": 8, "x86-64": 4}  # lanes
CACHE_BYTES = {"x86-64-v4": 32 << 10, "x86-64-v3": (512 << 10) // 8, "x86-64": (256 << 10) // 8}  # of L1, or of L2


def emitted(rnncc, folder, model, *options):
    done = rnncc(model.write(folder), "--emit=c", "-o", folder / "c", *options)
    assert done.returncode == 0, done.stderr
    return (folder / "c" / "network.c").read_text()


def knobs_of(text, template):
    """Of each kernel of the template, the knobs that it has."""
    told = re.findall(rf"^/\* ---- kernel \d+, first for [^:]*: {template}\b(.*) ---- \*/$", text, re.MULTILINE)
    assert told, f"no {template}"
    return [dict(re.findall(r"(\w+)=(\S+)", one)) for one in told]


def draw(*shape):
    return numpy.random.default_rng(len(shape)).standard_normal(shape).astype(numpy.float32) / 8


def both_ways(op, T, B, I, H, **attributes):
    model = Model()
    w, r = (model.constant(draw(2, GATES[op] * H, depth)) for depth in (I, H))
    model.output(model.node(op, [model.input("x", "f32", [T, B, I]), w, r], hidden_size=H, direction="bidirectional",
                            **attributes))
    return model


def test_each_direction_s_products_are_of_a_crew_of_its_own(rnncc, tmp_path):
    """In chunks, which are as long as both directions' results are large: 6.5 MB here."""
    text = emitted(rnncc, tmp_path, both_ways("LSTM", 100, 8, 64, 256), "--target=x86-64-v3")
    products = knobs_of(text, "gemm_packed")
    assert [(knobs["CREWS"], knobs["CREW"]) for knobs in products] == [("2", "0"), ("2", "1")]


def test_both_directions_of_an_int8_layer_run_side_by_side(rnncc, tmp_path):
    """They share no byte that one of them writes: a worker that has ended the first goes on with the second."""
    text = emitted(rnncc, tmp_path, both_ways("GRU", 6, 3, 20, 40, precision="int8-dynamic"))
    calls = re.findall(r"^  (?:k\d+_(recurrent_int8)\(team|module_(barrier)\()", text, re.MULTILINE)
    steps = [one or other for one, other in calls]
    first = steps.index("recurrent_int8")
    assert steps[first:first + 2] == ["recurrent_int8", "recurrent_int8"]


@pytest.mark.parametrize("target", TARGETS)
def test_cells_of_a_batch_advance_first_where_registers_are_few(rnncc, tmp_path, target):
    """Of an LSTM, and the gates of a GRU whose reset comes after the product: others have one activation after it, and one
    sample has no next one to compute meanwhile."""
    few = str(int(target != "x86-64-v4"))
    after = {"linear_before_reset": 1}
    for op, batch, more, due in (("LSTM", 6, {}, few), ("LSTM", 1, {}, "0"), ("GRU", 6, after, few), ("GRU", 6, {}, "0")):
        text = emitted(rnncc, tmp_path, both_ways(op, 5, batch, 20, 48, **more), f"--target={target}")
        assert {knobs["CELLS_FIRST"] for knobs in knobs_of(text, "recurrent_steps")} == {due}, (op, batch, more)


def heads_side_by_side(tokens, heads, depth):
    """Attention of one batch, whose queries, keys and values are inputs."""
    model = Model()
    shape = model.constant(numpy.array([1, tokens, heads, depth]))
    parts = [model.node("Reshape", [model.input(name, "f32", [1, tokens, heads * depth]), shape]) for name in "qkv"]
    q, k, v = (model.node("Transpose", [part], perm=perm) for part, perm in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])))
    model.output(model.node("MatMul", [model.node("Softmax", [model.node("MatMul", [q, k])], axis=-1), v]))
    return model


def test_keys_that_are_copied_and_the_queries_they_are_copied_for_stay_in_caches(rnncc, tmp_path):
    """A block's weights, and what a tile of results reads, in half of L1; the copies and the queries in half of L2."""
    depth, lanes, line, L1, L2 = 64, 8, 16, 32 << 10, 512 << 10
    text = emitted(rnncc, tmp_path, heads_side_by_side(700, 4, depth), "--target=x86-64-v3", "--threads=1")
    (knobs,) = knobs_of(text, "attention")
    keys, blocks, queries = int(knobs["KEYS"]), int(knobs["QUERY_BLOCKS"]), lanes * int(knobs["VECTORS"])
    copied = 2 * keys * (depth + line)  # an odd number of lines a row
    assert 8 * keys * (queries + line) <= L1 < 8 * (keys + 1) * (queries + line)
    assert 8 * (copied + blocks * 2 * depth * queries) <= L2 < 8 * (copied + (blocks + 1) * 2 * depth * queries)


@pytest.mark.parametrize("target", TARGETS)
def test_a_block_of_a_trained_layer_s_weights_stays_in_a_cache(rnncc, tmp_path, target):
    """In L1, or where registers are few, and vectors narrow, in an eighth of the target's usual L2."""
    model, T, B, I, H = Model(), 5, 4, 24, 1500
    w, r = (model.input(name, "f32", [1, 4 * H, depth]) for name, depth in (("W", I), ("R", H)))
    model.output(*model.node("LSTMTraining", [model.input("x", "f32", [T, B, I]), w, r], 4, hidden_size=H))
    (knobs,) = knobs_of(emitted(rnncc, tmp_path, model, f"--target={target}"), "recurrent_training")
    row = 4 * 4 * int(knobs["UNIT_VECTORS"]) * TARGETS[target] // int(knobs["PANEL_PARTS"])  # of a part
    assert CACHE_BYTES[target] / 2 < int(knobs["DEPTH_BLOCK"]) * row <= CACHE_BYTES[target]


@pytest.mark.parametrize("mask, turned, kind", [([1, 1, 1, 30], False, "1"), ([1, 1, 20, 30], False, "2"),
                                                ([1, 1, 30, 20], True, "3")], ids=str)
def test_a_mask_in_a_row_is_read_by_vectors(rnncc, tmp_path, mask, turned, kind):
    """Lanes are queries. 1: all have one element; 2: their elements have a stride; 3: they stand in a row."""
    model = Model()
    q, k, v = (model.input(name, "f32", [1, 2, rows, 16]) for name, rows in (("q", 20), ("k", 30), ("v", 30)))
    scores = model.node("MatMul", [q, model.node("Transpose", [k], perm=[0, 1, 3, 2])])
    m = model.input("m", "f32", mask)
    m = model.node("Transpose", [m], perm=[0, 1, 3, 2]) if turned else m
    scores = model.node("Softmax", [model.node("Add", [scores, m])], axis=-1)
    model.output(model.node("MatMul", [scores, v]))
    assert [knobs["MASK"] for knobs in knobs_of(emitted(rnncc, tmp_path, model), "attention")] == [kind]


@pytest.mark.parametrize("width, code", [(20, None), ("W", "1")])
def test_tiles_of_a_known_width_need_no_code_for_others(rnncc, tmp_path, width, code):
    model = Model()
    if width == "W":
        model.dim("W", 8, 20, 40)
    x = model.node("Conv", [model.input("x", "f32", [1, 16, 20, width]), model.constant(draw(32, 16, 3, 3))])
    x = model.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    model.output(model.node("Conv", [x, model.constant(draw(64, 32, 3, 3))]))
    assert [knobs.get("ANY_WIDTH") for knobs in knobs_of(emitted(rnncc, tmp_path, model), "pool_blocked")] == [code]


@pytest.mark.parametrize("stride, phases", [(1, "1"), (2, "2"), (3, "3")])
def test_a_padded_input_has_the_phases_that_windows_read(rnncc, tmp_path, stride, phases):
    model = Model()
    x = model.input("x", "f32", [1, 1, 30, 31])
    model.output(model.node("Conv", [x, model.constant(draw(3, 1, 3, 3))], strides=[stride, stride], pads=[1, 1, 1, 1]))
    (knobs,) = knobs_of(emitted(rnncc, tmp_path, model), "conv_pad")
    assert (knobs["PHASES_H"], knobs["PHASES_W"]) == (phases, phases)


def test_blocked_channels_come_last_in_one_copy(rnncc, tmp_path):
    """Of pixels and blocks to pixels and channels: row-major between would be a copy more."""
    model = Model()
    x = model.node("Conv", [model.input("x", "f32", [1, 16, 20, 20]), model.constant(draw(64, 16, 3, 3))])
    x = model.node("Conv", [x, model.constant(draw(64, 64, 3, 3))])
    model.output(model.node("Transpose", [x], perm=[0, 2, 3, 1]))
    calls = re.findall(r"^  k\d+_(\w+)\(team, ", emitted(rnncc, tmp_path, model), re.MULTILINE)
    assert calls[-2:] == ["conv_winograd", "copy_strided"]
