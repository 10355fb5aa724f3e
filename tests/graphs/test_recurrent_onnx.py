# SPDX-License-Identifier: MIT
"""Compiled RNN, GRU and LSTM over all attributes, compared with ONNX Runtime and with double precision.

ONNX Runtime shows that the semantics are right; the double-precision values of support/recurrent.py, which it confirms
here case by case, allow a bound near the rounding error: 4 ceil(log2(K T)) eps, times the largest value, for sums of
K = I + H terms over T steps that contract.
"""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from support.amount import some
from support.module import Module
from support.recurrent import ACTIVATIONS, GATES, Configuration, model_of, random_configuration
from support.recurrent_groups import GROUP, check_target, check_threads, check_values, emulated_outputs, fixed_dims, \
    in_groups, shapes_of, steps_runner

CONFIGURATIONS = [random_configuration(seed) for seed in some(range(330), 80)]


@in_groups(CONFIGURATIONS, 4)
def test_values_equal_onnx_runtime(configuration, group, compile, tmp_path):
    check_target(configuration, group, compile, tmp_path)


# Three consecutive groups have one of each op; by default each target has another one of them.
@in_groups(CONFIGURATIONS[:3 * GROUP], 1)
def test_avx2_computes_the_same(configuration, group, compile, tmp_path):
    check_target(configuration, group, compile, tmp_path, "--target=x86-64-v3")


@in_groups(CONFIGURATIONS[2 * GROUP:5 * GROUP], 1)
def test_plain_c_computes_the_same(configuration, group, compile, tmp_path):
    check_target(configuration, group, compile, tmp_path, "--target=x86-64")


@in_groups(CONFIGURATIONS[GROUP:4 * GROUP], 1)
def test_neon_under_qemu_computes_the_same(configuration, group, compile, aarch64_rnnrun, tmp_path):
    path = compile(model_of(group, **fixed_dims(group)).write(tmp_path), "--target=aarch64-linux-gnu", optimised=False)

    def outputs_of(T, B):
        return configuration.own(emulated_outputs(path, group, T, B, aarch64_rnnrun, tmp_path))

    check_values(configuration, shapes_of(group), outputs_of)


@in_groups(CONFIGURATIONS[:6 * GROUP], 4)
def test_thread_counts_are_bit_identical(configuration, group, compile, tmp_path):
    check_threads(configuration, group, compile, tmp_path)


FORWARD = [c for c in CONFIGURATIONS if c.direction == "forward" and not c.lengths][:3 * GROUP]


@in_groups(FORWARD, 1)
def test_chunks_with_carried_state_equal_the_whole_sequence_bit_for_bit(configuration, group, compile, tmp_path):
    path = compile(model_of(group, streaming=True, B=2).write(tmp_path), optimised=group[0] is FORWARD[0])
    T = 20
    run = steps_runner(configuration, group, T, 2)
    with Module(path) as module, module.context() as whole, module.context() as chunked:
        expected = run(whole, 0, T)
        got = np.concatenate([run(chunked, 0, 7), run(chunked, 7, 8), run(chunked, 8, T)])
        assert np.array_equal(got.view(np.uint32), expected.view(np.uint32))
        for state in module.states:
            assert np.array_equal(chunked.state_get(state.name), whole.state_get(state.name)), state.name
        chunked.state_reset()
        assert np.array_equal(run(chunked, 0, 3), expected[:3]), "reset starts over"


def exact_configuration(seed):
    """Activations that map integers to integers. Clip keeps the gates small, so no value leaves the exact range."""
    rng = np.random.default_rng([77, seed])
    op, direction = list(GATES)[seed // GROUP], ("forward", "reverse", "bidirectional")[seed % 3]
    count = ACTIVATIONS[op] * (2 if direction == "bidirectional" else 1)
    activations = (["Relu", "ThresholdedRelu", "Relu"] * 2)[:count]
    return Configuration(
        op=op, I=int(rng.integers(1, 131)), H=int(rng.integers(8, 131)), direction=direction, clip=2,
        activations=activations, alpha=[1] * activations.count("ThresholdedRelu"),
        linear_before_reset=int(op == "GRU" and seed % 2), peepholes=op == "LSTM" and seed % 2 == 0,
        lengths=seed % 4 == 0, h0=seed % 2 == 0, seed=1000 + seed)


def integers(rng, shape):
    return (rng.integers(-1, 2, shape) * (rng.random(shape) < 0.6)).astype(np.float32)


def exact_weights(configuration):
    rng = np.random.default_rng(configuration.seed)
    return {name: integers(rng, array.shape) for name, array in configuration.random_weights().items()}


def exact_feeds(configuration, T):
    rng = np.random.default_rng([configuration.seed, 1])
    return {name: array if name == "lengths" else integers(rng, array.shape) * 3
            for name, array in configuration.random_feeds(T, 3, 0).items()}


@in_groups([exact_configuration(seed) for seed in range(3 * GROUP)], 1)
def test_integer_values_are_exact(configuration, group, compile, tmp_path):
    T = 20 if configuration.op == "RNN" else 4  # products of gates grow with each step
    path = compile(model_of(group, weights=exact_weights, B=3).write(tmp_path), optimised=configuration.op == "GRU")
    values = configuration.values(exact_weights(configuration), exact_feeds(configuration, T))
    assert np.abs(values["Y"]).max() < 2**20 and np.count_nonzero(values["Y"]), "the case is exact and not trivial"
    feeds = {name: array for c in group for name, array in c.named(exact_feeds(c, T)).items()}
    with Module(path) as module, module.context(threads=2) as context:
        outputs = configuration.own(context.run(feeds))
    for name in configuration.outputs:
        assert np.array_equal(outputs[name], values[name]), name


@pytest.mark.parametrize("op", GATES)
def test_a_batch_of_no_samples_takes_any_number_of_steps(op, compile, tmp_path):
    weights = {name: np.ones((2, GATES[op] * 3, 3), np.float32) for name in "WR"}
    node = helper.make_node(op, ["x", "W", "R"], ["y"], direction="bidirectional", hidden_size=3)
    graph = helper.make_graph([node], "none", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("T", 0, 3))],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(array, name) for name, array in weights.items()])
    path = tmp_path / "none.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    with Module(compile(path)) as module, module.context(threads=2) as context:
        assert [context.run({"x": np.zeros((T, 0, 3), np.float32)})["y"].shape for T in (1, 20)] == [(1, 2, 0, 3), (20, 2, 0, 3)]
