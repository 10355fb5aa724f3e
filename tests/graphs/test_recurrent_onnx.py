# SPDX-License-Identifier: MIT
"""Compiled RNN, GRU and LSTM over all attributes against ONNX Runtime and against double precision.

ONNX Runtime shows that the meaning is right; the double-precision values of support/recurrent.py, which it confirms
here case by case, allow a bound near the rounding error: 4 ceil(log2(K T)) eps, times the largest value, for sums of
K = I + H terms over T steps that contract.

Compiling a kernel takes longer than all else, so GROUP configurations share a module, as independent nodes, and those
that differ only in sizes, weights and layout share its kernels. Each is a test.
"""
import math

import numpy as np
import pytest

from support.module import Module
from support.recurrent import ACTIVATIONS, GATES, MAX_B, MAX_T, SAME_OP, Configuration, model_of, random_configuration

EPS = float(np.finfo(np.float32).eps)
GROUP = SAME_OP  # a multiple of SHARING, too
CONFIGURATIONS = [random_configuration(seed) for seed in range(330)]


def groups_of(configurations):
    return [tuple(configurations[first:first + GROUP]) for first in range(0, len(configurations), GROUP)]


def in_groups(configurations):
    """Parametrizes by configuration, and gives the group it is compiled with."""
    cases = [(configuration, group) for group in groups_of(configurations) for configuration in group]
    return pytest.mark.parametrize("configuration, group", [
        pytest.param(configuration, group, id=f"{configuration.seed}-{configuration.name}")
        for configuration, group in cases])


def fixed_dims(group):
    """What is known of T and B when the group is compiled: nothing in every fourth group."""
    index = group[0].seed // GROUP
    if index % 4 == 0:
        return {}
    rng = np.random.default_rng([2028, index])
    return {"T": int(rng.integers(1, MAX_T + 1)), "B": 1 + index % MAX_B}


def shapes_of(group):
    """(T, B) of the runs, the largest last."""
    fixed = fixed_dims(group)
    return [(fixed["T"], fixed["B"])] if fixed else [(1, 1), (7, 3), (MAX_T, MAX_B)]


def group_feeds(group, T, B):
    return {name: array for c in group
            for name, array in c.named(c.to_layout(c.random_feeds(T, B, 0))).items()}


OUTPUTS_OF_RUNS = {}


def group_outputs(path, group, T, B, threads):
    """One run of all the nodes of a group, made once: its outputs by their prefixed names."""
    key = path, T, B, threads
    if key not in OUTPUTS_OF_RUNS:
        with Module(path) as module, module.context(threads) as context:
            OUTPUTS_OF_RUNS[key] = context.run(group_feeds(group, T, B))
    return OUTPUTS_OF_RUNS[key]


def tolerance(configuration, T, expected):
    K = configuration.I + configuration.H
    return 4 * math.ceil(math.log2(K * T)) * EPS * max(1.0, float(np.abs(expected).max(initial=0)))


def assert_near(got, expected, limit, what):
    assert got.dtype == np.float32 and got.shape == expected.shape, what
    error = np.abs(got - expected)
    worst = np.unravel_index(np.argmax(error), error.shape)
    assert error[worst] <= limit, f"{what}{[int(i) for i in worst]}: got {got[worst]!r}, expected {expected[worst]!r}, " \
                                  f"error {error[worst]:.3g}, limit {limit:.3g}"


def check_values(configuration, shapes, outputs_of):
    """outputs_of(T, B) -> this configuration's outputs in its own layout."""
    weights = configuration.random_weights()
    peer = model_of([configuration], layout=0)
    for T, B in shapes:
        feeds = configuration.random_feeds(T, B, 0)
        values = configuration.values(weights, feeds)
        confirmed = configuration.own(peer.onnx_run(configuration.named(feeds)))
        got = outputs_of(T, B)
        assert sorted(got) == sorted(confirmed) == sorted(configuration.outputs)
        for name in got:
            limit = tolerance(configuration, T, values[name])
            # ONNX Runtime's own tanh and sigmoid are good to some 1e-6.
            assert_near(confirmed[name], values[name], limit + 1e-5, f"ONNX Runtime's {name}")
            expected = configuration.to_layout({name: values[name]})[name]
            assert_near(got[name], expected, limit, f"T={T} B={B} {name}")


def check_target(configuration, group, compile, tmp_path, *options):
    path = compile(model_of(group, **fixed_dims(group)).write(tmp_path), *options)
    check_values(configuration, shapes_of(group), lambda T, B: configuration.own(group_outputs(path, group, T, B, 2)))


@in_groups(CONFIGURATIONS)
def test_values_equal_onnx_runtime(configuration, group, compile, tmp_path):
    check_target(configuration, group, compile, tmp_path)


# Three groups in a row have one of each op.
@in_groups(CONFIGURATIONS[:3 * GROUP])
def test_avx2_computes_the_same(configuration, group, compile, tmp_path):
    check_target(configuration, group, compile, tmp_path, "--target=x86-64-v3")


@in_groups(CONFIGURATIONS[6 * GROUP:9 * GROUP])
def test_plain_c_computes_the_same(configuration, group, compile, tmp_path):
    check_target(configuration, group, compile, tmp_path, "--target=x86-64")


@in_groups(CONFIGURATIONS[12 * GROUP:15 * GROUP])
def test_neon_under_qemu_computes_the_same(configuration, group, compile, aarch64_rnnrun, tmp_path):
    path = compile(model_of(group, **fixed_dims(group)).write(tmp_path), "--target=aarch64-linux-gnu")

    def outputs_of(T, B):
        arguments = []
        for name, array in group_feeds(group, T, B).items():
            np.save(tmp_path / f"{name}.npy", array)
            arguments += ["--input", f"{name}=@{tmp_path}/{name}.npy"]
        for name in configuration.outputs:
            arguments += ["--output", f"{configuration.prefix}{name}=@{tmp_path}/{name}.npy"]
        done = aarch64_rnnrun("run", path, "--threads", 2, *arguments)
        assert done.returncode == 0, done.stderr
        return {name: np.load(tmp_path / f"{name}.npy") for name in configuration.outputs}

    check_values(configuration, shapes_of(group), outputs_of)


@in_groups(CONFIGURATIONS[3 * GROUP:9 * GROUP])
def test_thread_counts_are_bit_identical(configuration, group, compile, tmp_path):
    path = compile(model_of(group, **fixed_dims(group)).write(tmp_path))
    T, B = shapes_of(group)[-1]
    one, *others = [configuration.own(group_outputs(path, group, T, B, threads)) for threads in (1, 2, 3, 8)]
    for name in one:
        for other in others:
            assert np.array_equal(one[name].view(np.uint32), other[name].view(np.uint32)), name


FORWARD = [c for c in CONFIGURATIONS if c.direction == "forward" and not c.lengths][:3 * GROUP]


@in_groups(FORWARD)
def test_chunks_with_carried_state_equal_the_whole_sequence_bit_for_bit(configuration, group, compile, tmp_path):
    path = compile(model_of(group, streaming=True, B=2).write(tmp_path))
    T, B = 20, 2
    inputs = [(c, c.random_feeds(T, B, 0)["x"]) for c in group]

    def run(context, begin, end):
        feeds = {name: array for c, x in inputs
                 for name, array in c.named(c.to_layout({"x": x[begin:end]})).items()}
        y = configuration.own(context.run(feeds))["Y"]
        return y.transpose(1, 2, 0, 3) if configuration.layout else y

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


@in_groups([exact_configuration(seed) for seed in range(3 * GROUP)])
def test_integer_values_are_exact(configuration, group, compile, tmp_path):
    T = 20 if configuration.op == "RNN" else 4  # products of gates grow with each step
    path = compile(model_of(group, weights=exact_weights, B=3).write(tmp_path))
    values = configuration.values(exact_weights(configuration), exact_feeds(configuration, T))
    assert np.abs(values["Y"]).max() < 2**20 and np.count_nonzero(values["Y"]), "the case is exact and not trivial"
    feeds = {name: array for c in group for name, array in c.named(exact_feeds(c, T)).items()}
    with Module(path) as module, module.context(threads=2) as context:
        outputs = configuration.own(context.run(feeds))
    for name in configuration.outputs:
        assert np.array_equal(outputs[name], values[name]), name
