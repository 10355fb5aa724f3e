# SPDX-License-Identifier: MIT
"""Element-wise nodes that run as one kernel compute the same as one by one."""
import re

import numpy
import pytest

from support.amount import some
from support.chains import ChainNetwork
from support.emitted import TARGETS, assert_same, run_module
from support.model_builder import Model

SHAPES = [(37,), (3, 50), (5, 1, 33), (2, 3, 4, 5), (4, 2100), (1, 1)]


@pytest.mark.parametrize("seed", some(range(8), 5))
@pytest.mark.parametrize("target", TARGETS)
def test_random_chains_equal_the_reference(reference, compile, tmp_path, target, seed):
    rng = numpy.random.default_rng([seed, 3])
    network = ChainNetwork(rng, SHAPES[seed % len(SHAPES)]).grow(30)
    path = network.model.write(tmp_path)
    expected = reference.run(network.model, path, network.feeds)
    module = compile(path, f"--target={target}", optimised=seed < 2)
    assert_same(run_module(module, network.feeds), expected)


def test_chains_of_extents_known_at_run_time(reference, compile, tmp_path):
    for extents in [(3, 7, 20), (1, 900, 20), (6, 1, 20)]:
        network = ChainNetwork(numpy.random.default_rng([5]), extents, limits={0: 6, 1: 900}).grow(25)
        path = network.model.write(tmp_path)
        assert_same(run_module(compile(path), network.feeds), reference.run(network.model, path, network.feeds))


def one_by_one(compile, folder, model, feeds):
    """The results, with a module for each node."""
    values = dict(feeds) | model.arrays
    for k, node in enumerate(model.nodes):
        alone = Model(f"alone{k}")
        for name in dict.fromkeys(filter(None, node["inputs"])):
            if name in model.arrays:
                alone.constant(model.arrays[name], name)
            else:
                alone.input(name, {"float32": "f32", "bool": "bool"}[str(values[name].dtype)], values[name].shape)
        alone.node(node["op"], node["inputs"], node["outputs"], **node["attributes"])
        alone.output(*node["outputs"])
        fed = {name: values[name] for name in node["inputs"] if name and name not in model.arrays}
        values |= run_module(compile(alone.write(folder)), fed, threads=(1,))
    return {name: values[name] for name in model.outputs}


def test_a_chain_rounds_like_its_nodes(compile, tmp_path):
    network = ChainNetwork(numpy.random.default_rng([9]), (3, 45), exact=False).grow(12)
    expected = one_by_one(compile, tmp_path, network.model, network.feeds)
    got = run_module(compile(network.model.write(tmp_path)), network.feeds)
    for name, array in expected.items():
        numpy.testing.assert_array_equal(got[name].view("u1"), array.view("u1"), err_msg=name)


def kernels(rnncc, folder, model, *options):
    done = rnncc(model.write(folder), "--emit=c", "-o", folder / "c", *options)
    assert done.returncode == 0, done.stderr
    return re.findall(r"^  k\d+_(\w+)\(team, ", (folder / "c" / "network.c").read_text(), re.MULTILINE)


def test_a_written_out_normalisation_has_a_kernel_for_each_stage(rnncc, tmp_path):
    """x - mean; the sum of its squares, and the root, which is no operator's variance; the quotient, scaled and gated."""
    model = Model()
    x, axis = model.input("x", "f32", [4, 60]), model.constant(numpy.array([-1]))
    centred = model.node("Sub", [x, model.node("ReduceMean", [x, axis])])
    variance = model.node("ReduceSum", [model.node("Mul", [centred, centred]), axis])
    deviation = model.node("Sqrt", [model.node("Add", [variance, model.constant(numpy.float32(1e-5))])])
    scaled = model.node("Mul", [model.node("Div", [centred, deviation]), model.constant(numpy.arange(60, dtype="f"))])
    model.output(model.node("Mul", [model.node("Sigmoid", [model.node("Neg", [scaled])]), scaled]))
    assert kernels(rnncc, tmp_path, model) == ["reduce", "elementwise", "reduce", "elementwise", "elementwise_chain"]


def test_what_is_spread_for_a_sum_is_not_stored(rnncc, reference, compile, tmp_path):
    """Expand to the shape that the other operand has; but what is spread alone is."""
    feeds = {"x": numpy.arange(240, dtype="f").reshape(4, 60), "row": numpy.arange(60, dtype="f")}
    for other, expected in (("x", ["elementwise"]), ("row", ["copy_strided", "elementwise"])):
        model = Model()
        values = {"x": model.input("x", "f32", [4, 60]), "row": model.input("row", "f32", [60])}
        spread = model.node("Expand", [values["row"], model.constant(numpy.array([4, 60]))])
        model.output(model.node("Add", [values[other], spread]), model.node("Neg", [values["x"]]))
        assert [name for name in kernels(rnncc, tmp_path, model)][:-1] == expected
        path = model.write(tmp_path)
        assert_same(run_module(compile(path), feeds), reference.run(model, path, feeds))


def test_nodes_that_depend_on_a_chain_stay_out_of_it(rnncc, tmp_path):
    """The last sum reads the root through a reduction: they cannot be one kernel."""
    model = Model()
    x = model.input("x", "f32", [4, 60])
    root = model.node("Sqrt", [model.node("Mul", [x, model.input("scale", "f32", [60])])])
    model.output(model.node("Add", [root, model.node("ReduceSum", [root, model.constant(numpy.array([0]))])]))
    assert kernels(rnncc, tmp_path, model) == ["elementwise", "reduce", "elementwise"]


def gated_network(rng):
    """A squeeze-and-excitation block: the gate has one pixel. And a spatial gate, of one channel."""
    model = Model()
    x = model.input("x", "f32", [2, 24, 6, 7])
    def signs(*shape):
        return model.constant(rng.choice([-1.0, 1.0], shape).astype("f"))
    y = model.node("Conv", [x, signs(32, 24, 1, 1)])
    gate = model.node("Conv", [model.node("GlobalMaxPool", [y]), signs(32, 32, 1, 1)])
    channel = model.node("ReduceMax", [y, model.constant(numpy.array([1]))])
    truth = model.node("Cast", [model.node("Greater", [y, gate])], to="f32")
    gated = model.node("Add", [model.node("Mul", [y, truth]), model.node("Min", [channel, gate])])
    scaled = model.node("Mul", [gated, signs(32, 1, 1)])
    model.output(model.node("Conv", [model.node("Sub", [scaled, y]), signs(16, 32, 1, 1)]))
    return model


@pytest.mark.parametrize("target", TARGETS)
def test_chains_on_blocked_tensors_equal_the_reference(rnncc, reference, compile, tmp_path, target):
    rng = numpy.random.default_rng(4)
    model = gated_network(rng)
    feeds = {"x": rng.integers(-3, 4, (2, 24, 6, 7)).astype("f")}
    path = model.write(tmp_path)
    module = compile(path, f"--target={target}", "--layout-search=greedy")
    assert_same(run_module(module, feeds), reference.run(model, path, feeds))
    if target == TARGETS[0]:
        assert "elementwise_chain_blocked" in kernels(rnncc, tmp_path, model, "--layout-search=greedy")
