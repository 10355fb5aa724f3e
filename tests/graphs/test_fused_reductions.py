# SPDX-License-Identifier: MIT
"""Reductions of what element-wise nodes compute, and products by a vector, run as one kernel that stores no elements: the
values are those of the graph as it is written; what only resembles it stays as it is."""
import re

import numpy
import pytest

from support.emitted import TARGETS, assert_same, run_module
from support.model_builder import Model


class Network(Model):
    """Of small integers, so that sums are exact in any order."""

    def __init__(self):
        super().__init__()
        self.rng, self.feeds = numpy.random.default_rng(6), {}

    def numbers(self, *shape):
        return self.rng.integers(-4, 5, shape).astype("f")

    def fed(self, *shape, names=None):
        name = f"x{len(self.feeds)}"
        self.feeds[name] = self.numbers(*shape)
        return self.input(name, "f32", list(names or shape))

    def known(self, *shape):
        return self.constant(self.numbers(*shape))

    def axes(self, *axes):
        return self.constant(numpy.array(axes))

    def turned(self, x, rank):
        return self.node("Transpose", [x], perm=[*range(rank - 2), rank - 1, rank - 2])

    def finish(self, op, *inputs, **attributes):
        self.output(self.node(op, list(inputs), **attributes))


def nodes_after(rnncc, folder, model, *options, step="fuse_reductions"):
    """What the graph's nodes are after the step: "Softmax", or "ReducedChain + Mul > ReduceSum"."""
    done = rnncc("inspect", model.write(folder), f"--dump-after={step}", "--verify-each", "--threads=2", *options)
    assert done.returncode == 0, done.stderr
    return [f"{op}{members}" for op, members in re.findall(r"^n\d+: .* = (\w+)\([^)]*\)[^+\n]*?((?: [+>] \w+)*) \"", done.stderr, re.MULTILINE)]


# Products by a vector


def add_products(net, K, M):
    net.finish("MatMul", net.fed(3, M, K), net.known(K, 1))
    net.finish("MatMul", net.fed(3, M, K), net.fed(K, 1))
    net.finish("MatMul", net.fed(2, 3, M, K), net.fed(3, K, 1))
    net.finish("MatMul", net.turned(net.fed(3, K, M), 3), net.fed(3, K, 1))
    net.finish("MatMul", net.fed(M, K), net.known(K))
    net.finish("MatMul", net.turned(net.fed(2, K, M), 3), net.known(K))
    net.finish("MatMul", net.turned(net.fed(2, K, M), 3), net.fed(K))
    net.finish("MatMul", net.fed(3, 1, K), net.fed(3, K, M))
    net.finish("MatMul", net.fed(1, K), net.fed(2, 3, K, M))
    net.finish("MatMul", net.fed(3, 1, K), net.turned(net.fed(3, M, K), 3))
    net.finish("MatMul", net.fed(1, K), net.fed(K, 1))
    net.finish("Relu", net.node("Gemm", [net.fed(M, K), net.known(1, K), net.known(1)], transB=1))
    net.finish("Gemm", net.fed(K, M), net.known(K, 1), net.known(M, 1), transA=1)


@pytest.mark.parametrize("target", TARGETS)
def test_products_by_vectors_equal_the_reference(rnncc, reference, compile, tmp_path, target):
    net = Network()
    add_products(net, 21, 7)
    add_products(net, 150, 130)
    path = net.write(tmp_path)
    ops = nodes_after(rnncc, tmp_path, net)
    assert ops.count("ReducedChain + Mul > ReduceSum") == len(net.outputs) and not {"MatMul", "Gemm"} & set(ops)
    module = compile(path, f"--target={target}")
    assert_same(run_module(module, net.feeds), reference.run(net, path, net.feeds))


def test_products_by_vectors_of_extents_known_at_run_time(reference, compile, tmp_path):
    for B, T, K in [(1, 1, 1), (3, 40, 70), (2, 90, 17)]:
        net = Network()
        b, t, k = net.dim("B", 1, 2, 3), net.dim("T", 1, 20, 90), net.dim("K", 1, 64, 70)
        net.finish("MatMul", net.fed(B, T, K, names=(b, t, k)), net.fed(B, K, 1, names=(b, k, 1)))
        net.finish("MatMul", net.fed(B, 1, T, names=(b, 1, t)), net.fed(B, T, K, names=(b, t, k)))
        net.finish("MatMul", net.fed(B, 1, K, names=(b, 1, k)), net.turned(net.fed(B, T, K, names=(b, t, k)), 3))
        path = net.write(tmp_path)
        assert_same(run_module(compile(path), net.feeds), reference.run(net, path, net.feeds))


NO_VECTOR = {
    "two columns": lambda net: net.finish("MatMul", net.fed(9, 40), net.known(40, 2)),
    "two rows": lambda net: net.finish("MatMul", net.fed(2, 40), net.fed(40, 9)),
    "one matrix for several vectors": lambda net: net.finish("MatMul", net.fed(3, 1, 40), net.fed(40, 9)),
    "a packed constant": lambda net: net.finish("MatMul", net.fed(1, 40), net.known(40, 9)),
    "short rows": lambda net: net.finish("MatMul", net.fed(9, 5), net.known(5, 1)),
    "one sum by a constant": lambda net: net.finish("MatMul", net.fed(1, 40), net.known(40, 1)),
    "a multiple": lambda net: net.finish("Gemm", net.fed(9, 40), net.known(40, 1), alpha=2.0),
}


@pytest.mark.parametrize("case", NO_VECTOR)
def test_other_products_stay_products(rnncc, tmp_path, case):
    net = Network()
    NO_VECTOR[case](net)
    assert {"MatMul", "Gemm"} & set(nodes_after(rnncc, tmp_path, net))


def test_products_whose_numbers_are_kept_small_or_can_change_stay_products(rnncc, tmp_path):
    net = Network()
    net.finish("MatMul", net.fed(9, 40), net.known(40, 1))
    for options in (["--precision=int8"], ["--weights=mutable"]):
        assert "MatMul" in nodes_after(rnncc, tmp_path, net, *options)


def test_steps_can_be_left_out(rnncc, tmp_path):
    net = Network()
    net.finish("ReduceSum", net.node("MatMul", [net.fed(9, 40), net.known(40, 1)]))
    net.finish("ReduceL1", net.node("Sub", [net.fed(9, 40), net.fed(40)]), net.axes(1))
    ops = nodes_after(rnncc, tmp_path, net, "--without=products_by_vectors,fuse_reductions", step="choose_layouts")
    assert ops == ["MatMul", "ReduceSum", "Sub", "ReduceL1"]
    for steps in ("lower", "fuse_reductions,", "fuse", ""):
        done = rnncc("inspect", net.write(tmp_path), f"--without={steps}")
        assert (done.returncode, "join_layers" in done.stderr) == ((0, False) if steps == "fuse_reductions," else (2, True))


# Weighted sums of joined features


def add_pairs(net, B, T, J, D, repeat="Expand", names=None, swapped=False):
    """w . [h; u; h u] of each word h of a text and u of another, as BiDAF's similarity is written."""
    h, u = (net.fed(*shape, names=name) for shape, name in zip(((B, T, D), (B, J, D)), names or (None, None)))
    pair = [net.node("Unsqueeze", [x, net.axes(axis)]) for x, axis in ((h, 2), (u, 1))]
    if repeat == "Tile":
        pair = [net.node("Tile", [x, net.axes(*times)]) for x, times in zip(pair, ((1, 1, J, 1), (1, T, 1, 1)))]
    else:
        extents = [net.node("Shape", [h], start=0, end=2), net.node("Shape", [u], start=1, end=3)]
        pair = [net.node("Expand", [x, net.node("Concat", extents, axis=0)]) for x in pair]
    both = net.node("Mul", pair[::-1] if swapped else pair)
    net.finish("Add", net.node("MatMul", [net.node("Concat", [*pair, both], axis=3), net.known(3 * D, 1)]), net.known(1))


def test_pairs_of_two_texts_are_not_made(rnncc, reference, compile, tmp_path):
    net = Network()
    for repeat, swapped in (("Expand", False), ("Tile", True)):
        add_pairs(net, 2, 30, 7, 20, repeat, swapped=swapped)
    path = net.write(tmp_path)
    done = rnncc("inspect", path, "--dump-after=fuse_reductions")
    assert done.returncode == 0 and not {"Concat(", "Expand(", "Tile("} & set(re.findall(r"\w+\(", done.stderr))
    assert "[2, 30, 7, 20]" not in done.stderr
    assert_same(run_module(compile(path), net.feeds), reference.run(net, path, net.feeds))


def test_pairs_of_texts_of_extents_known_at_run_time(reference, compile, tmp_path):
    for T, J in ((1, 1), (50, 3)):
        net = Network()
        t, j = net.dim("T", 1, 50, 60), net.dim("J", 1, 10, 20)
        add_pairs(net, 2, T, J, 20, names=((2, t, 20), (2, j, 20)))
        path = net.write(tmp_path)
        assert_same(run_module(compile(path), net.feeds), reference.run(net, path, net.feeds))


def test_parts_that_only_a_weighted_sum_reads_are_not_joined(rnncc, reference, compile, tmp_path):
    net = Network()
    net.finish("MatMul", net.node("Concat", [net.fed(70, 120), net.fed(70, 33)], axis=1), net.known(153, 1))
    path = net.write(tmp_path)
    assert nodes_after(rnncc, tmp_path, net) == ["ReducedChain + Mul > ReduceSum"] * 2 + ["Add"]
    assert_same(run_module(compile(path), net.feeds), reference.run(net, path, net.feeds))


def joined(net, rows=70, axis=1):
    return net.node("Concat", [net.fed(rows, 120), net.fed(rows, 120)], axis=axis)


def joined_and_read(net):
    both = joined(net)
    net.output(both)
    net.finish("MatMul", both, net.known(240, 1))


def repeated_parts(net):
    """The sum of the parts would have one row."""
    return net.node("Concat", [net.node("Expand", [net.fed(1, 120), net.axes(70, 120)]) for _ in range(2)], axis=1)


STILL_JOINED = {
    "read elsewhere": joined_and_read,
    "two columns": lambda net: net.finish("MatMul", joined(net), net.known(240, 2)),
    "few": lambda net: net.finish("MatMul", joined(net, rows=9), net.known(240, 1)),
    "rows": lambda net: net.finish("MatMul", joined(net, axis=0), net.known(120, 1)),
    "all parts repeated": lambda net: net.finish("MatMul", repeated_parts(net), net.known(240, 1)),
    "weights of the run": lambda net: net.finish("MatMul", joined(net), net.fed(240, 1)),
}


@pytest.mark.parametrize("case", STILL_JOINED)
def test_other_parts_are_joined(rnncc, tmp_path, case):
    net = Network()
    STILL_JOINED[case](net)
    ops = nodes_after(rnncc, tmp_path, net)
    assert "Concat" in ops and "Add" not in ops, "no sum of the parts' products"


# Reductions


REDUCED = {(6, 9): [(1,), (0,), (0, 1)], (3, 4, 20): [(2,), (0,), (0, 2), (1, 2)], (2, 70, 3, 18): [(3,), (1,), (1, 2), (0, 3)]}


def add_reductions(net, extents):
    def element():
        a, b, c = net.fed(*extents), net.fed(*extents[:1], *[1] * (len(extents) - 1)), net.fed(*extents[1:])
        larger = net.node("Where", [net.node("Greater", [a, c]), net.node("Mul", [a, b]), c])
        return net.node("Relu", [net.node("Sub", [larger, net.constant(numpy.float32(1))])])
    for axes in REDUCED[extents]:
        for op in ("ReduceSum", "ReduceMax", "ReduceL1"):
            net.finish(op, element(), net.axes(*axes), keepdims=int(net.rng.integers(2)))


@pytest.mark.parametrize("target", TARGETS)
def test_fused_reductions_equal_the_reference(rnncc, reference, compile, tmp_path, target):
    for extents in REDUCED:
        net = Network()
        add_reductions(net, extents)
        path = net.write(tmp_path)
        assert {op.split(" > ")[0] for op in nodes_after(rnncc, tmp_path, net)} == {"ReducedChain + Greater + Mul + Where + Sub + Relu"}
        module = compile(path, f"--target={target}", "--threads=2")
        assert_same(run_module(module, net.feeds), reference.run(net, path, net.feeds))


def test_fused_reductions_of_extents_known_at_run_time(reference, compile, tmp_path):
    for T, B in [(1, 1), (70, 3), (33, 2)]:
        net = Network()
        t, b = net.dim("T", 1, 20, 70), net.dim("B", 1, 2, 3)
        x, y = net.fed(T, B, 20, names=(t, b, 20)), net.fed(T, 1, 20, names=(t, 1, 20))
        for axis in (0, 1, 2):
            net.finish("ReduceSum", net.node("Abs", [net.node("Sub", [x, y])]), net.axes(axis))
        path = net.write(tmp_path)
        assert_same(run_module(compile(path), net.feeds), reference.run(net, path, net.feeds))


def test_nan_is_the_largest_and_the_smallest_of_fused_elements_too(compile, tmp_path):
    net = Network()
    x, y = net.fed(3, 90), net.fed(90)
    for op, axis in (("ReduceMax", 1), ("ReduceMin", 1), ("ReduceMax", 0), ("ReduceMin", 0)):
        net.finish(op, net.node("Sub", [x, y]), net.axes(axis), keepdims=0)
    net.feeds["x0"][1, [3, 88]] = numpy.nan
    got = list(run_module(compile(net.write(tmp_path)), net.feeds).values())
    for array, where in zip(got, ([1], [1], [3, 88], [3, 88]), strict=True):
        assert numpy.flatnonzero(numpy.isnan(array)).tolist() == where


def read_twice(net):
    distance = net.node("Sub", [net.fed(9, 40), net.fed(40)])
    net.output(distance)
    net.finish("ReduceSum", distance, net.axes(1))


def repeated(net):
    """The root is of a row, which the sum repeats: it is computed once."""
    net.finish("ReduceSum", net.node("Mul", [net.fed(9, 4, 40), net.node("Sqrt", [net.fed(9, 1, 40)])]), net.axes(2))


def of_each_row(net):
    """All rows are multiplied by the same roots."""
    net.finish("MatMul", net.fed(9, 40), net.node("Sqrt", [net.fed(40)]))


def too_long(net):
    """A kernel computes at most 32 nodes; the product would be one more."""
    x = net.fed(9, 40)
    for op in ("Tanh", "Atan") * 16:
        x = net.node(op, [x])
    net.finish("MatMul", x, net.known(40, 1))


def of_blocks(net):
    """In blocks of channels, as the convolutions have them."""
    x = net.fed(1, 32, 16, 16)
    x, y = (net.node("Conv", [x, net.known(32, 32, 3, 3)], pads=[1] * 4) for _ in range(2))
    net.finish("ReduceSum", net.node("Mul", [net.node("Tanh", [net.node("Sin", [x])]), net.node("Cos", [y])]), net.axes(2, 3))


def one_sum(net):
    """Workers share results: of one they would have nothing to share."""
    net.finish("ReduceSum", net.node("Tanh", [net.node("Add", [net.fed(300, 40), net.fed(40)])]), keepdims=0)


APART = [(read_twice, "Sub"), (repeated, "Sqrt"), (of_each_row, "Sqrt"), (one_sum, "Add"), (of_blocks, "Mul"),
         (too_long, "Chain" + " + Tanh + Atan" * 16)]


@pytest.mark.parametrize("build, left", APART)
def test_what_would_cost_more_or_be_too_much_for_a_kernel_stays_apart(rnncc, tmp_path, build, left):
    net = Network()
    build(net)
    assert left in nodes_after(rnncc, tmp_path, net)


# Attention


def additive(net, batch, queries, keys, units):
    """D. Bahdanau et al.: softmax(v . tanh(q + k)) of the keys, and their sum with these weights, [batch, queries, units]."""
    q, k = net.fed(batch, queries, 1, units), net.fed(batch, 1, keys, units)
    scores = net.node("MatMul", [net.node("Tanh", [net.node("Add", [q, k])]), net.known(units, 1)])
    weights = net.node("Softmax", [scores], axis=2)
    net.finish("ReduceSum", net.node("Mul", [weights, k]), net.axes(2), keepdims=0)
    return net


@pytest.mark.parametrize("sizes", [(2, 1, 13, 50), (3, 4, 33, 20)])
def test_additive_attention_stores_no_tensor_of_queries_keys_and_units(rnncc, compile, tmp_path, sizes):
    net = additive(Network(), *sizes)
    ops = nodes_after(rnncc, tmp_path, net)
    assert ops == ["ReducedChain + Add + Tanh + Mul > ReduceSum", "Softmax", "ReducedChain + Mul > ReduceSum"]
    got = run_module(compile(net.write(tmp_path)), net.feeds)
    for name, expected in net.onnx_run(net.feeds).items():
        assert abs(got[name] - expected).max() <= 1e-5 * abs(expected).max()
