# SPDX-License-Identifier: MIT
"""Compiled RNN, GRU and LSTM over all attributes against ONNX Runtime and against double precision.

ONNX Runtime shows that the meaning is right; the double-precision values of support/recurrent.py, which it confirms
here case by case, allow a bound near the rounding error: 4 ceil(log2(K T)) eps, times the largest value, for sums of
K = I + H terms over T steps that contract.
"""
import math

import numpy as np
import pytest

from support.module import Module
from support.recurrent import ACTIVATIONS, GATES, MAX_B, MAX_T, Configuration, random_configuration

EPS = float(np.finfo(np.float32).eps)
CONFIGURATIONS = [random_configuration(seed) for seed in range(330)]


def by_name(configurations):
    return pytest.mark.parametrize("configuration", configurations, ids=lambda c: f"{c.seed}-{c.name}")


def shapes(configuration):
    """The smallest and the largest run, and one between."""
    rng = np.random.default_rng(configuration.seed)
    return [(1, 1), (MAX_T, MAX_B), (int(rng.integers(2, MAX_T)), int(rng.integers(1, MAX_B)))]


def tolerance(configuration, T, expected):
    K = configuration.I + configuration.H
    return 4 * math.ceil(math.log2(K * T)) * EPS * max(1.0, float(np.abs(expected).max(initial=0)))


def assert_near(got, expected, limit, what):
    assert got.dtype == np.float32 and got.shape == expected.shape, what
    error = np.abs(got - expected)
    worst = np.unravel_index(np.argmax(error), error.shape)
    assert error[worst] <= limit, f"{what}{list(worst)}: got {got[worst]!r}, expected {expected[worst]!r}, " \
                                  f"error {error[worst]:.3g}, limit {limit:.3g}"


def check_values(configuration, run):
    """run(feeds) -> outputs, both in the configuration's layout, for the smallest, a middle and the largest shape."""
    weights = configuration.random_weights()
    peer = configuration.model(weights, layout=0)
    for T, B in shapes(configuration):
        feeds = configuration.random_feeds(T, B, 0)
        values, confirmed = configuration.values(weights, feeds), peer.onnx_run(feeds)
        got = run(configuration.to_layout(feeds))
        assert sorted(got) == sorted(confirmed)
        for name in got:
            limit = tolerance(configuration, T, values[name])
            # ONNX Runtime's own tanh and sigmoid are good to some 1e-6.
            assert_near(confirmed[name], values[name], limit + 1e-5, f"ONNX Runtime's {name}")
            expected = configuration.to_layout({name: values[name]})[name]
            assert_near(got[name], expected, limit, f"T={T} B={B} {name}")


@by_name(CONFIGURATIONS)
def test_values_equal_onnx_runtime(configuration, compile, tmp_path):
    module = compile(configuration.model().write(tmp_path))
    with Module(module) as module, module.context(threads=2) as context:
        check_values(configuration, context.run)


@pytest.mark.parametrize("target, configurations", [
    ("x86-64-v3", CONFIGURATIONS[::7]), ("x86-64", CONFIGURATIONS[3::12])], ids=["x86-64-v3", "x86-64"])
@pytest.mark.parametrize("share", range(8))
def test_other_x86_targets_compute_the_same(target, configurations, share, compile, tmp_path):
    for configuration in configurations[share::8]:
        module = compile(configuration.model().write(tmp_path), f"--target={target}")
        with Module(module) as module, module.context(threads=2) as context:
            assert module.info.target.decode() == target
            check_values(configuration, context.run)


@by_name(CONFIGURATIONS[5::10])
def test_aarch64_under_qemu_computes_the_same(configuration, compile, aarch64_rnnrun, tmp_path):
    module = compile(configuration.model().write(tmp_path), "--target=aarch64-linux-gnu")

    def run(feeds):
        arguments = []
        for name, array in feeds.items():
            np.save(tmp_path / f"{name}.npy", array)
            arguments += ["--input", f"{name}=@{tmp_path}/{name}.npy"]
        for name in configuration.outputs:
            arguments += ["--output", f"{name}=@{tmp_path}/{name}.npy"]
        done = aarch64_rnnrun("run", module, "--threads", 2, *arguments)
        assert done.returncode == 0, done.stderr
        return {name: np.load(tmp_path / f"{name}.npy") for name in configuration.outputs}

    check_values(configuration, run)


@by_name(CONFIGURATIONS[1::6])
def test_thread_counts_are_bit_identical(configuration, compile, tmp_path):
    path = compile(configuration.model().write(tmp_path))
    feeds = configuration.to_layout(configuration.random_feeds(MAX_T, MAX_B, 1))
    with Module(path) as module:
        results = []
        for threads in (1, 2, 3, 8):
            with module.context(threads) as context:
                results.append(context.run(feeds))
    for name in results[0]:
        for other in results[1:]:
            assert np.array_equal(results[0][name].view(np.uint32), other[name].view(np.uint32)), name


def streaming_configurations():
    chosen = [c for c in CONFIGURATIONS if c.direction == "forward" and not c.lengths]
    return chosen[:48]


@by_name(streaming_configurations())
def test_chunks_with_carried_state_equal_the_whole_sequence_bit_for_bit(configuration, compile, tmp_path):
    B, T = 2, 20
    path = compile(configuration.model(streaming=True).write(tmp_path))
    rng = np.random.default_rng(configuration.seed)
    x = rng.uniform(-1, 1, (T, B, configuration.I)).astype(np.float32)
    chunks = np.split(x, [7, 8])

    def run(context, part):
        y = context.run(configuration.to_layout({"x": part}))["Y"]
        return y.transpose(1, 2, 0, 3) if configuration.layout else y

    with Module(path) as module, module.context() as whole, module.context() as chunked:
        expected = run(whole, x)
        got = np.concatenate([run(chunked, part) for part in chunks])
        assert np.array_equal(got.view(np.uint32), expected.view(np.uint32))
        for state in module.states:
            assert np.array_equal(chunked.state_get(state.name), whole.state_get(state.name)), state.name
        chunked.state_reset()
        assert np.array_equal(run(chunked, x[:3]), expected[:3]), "reset starts over"


def exact_configuration(seed):
    """Activations that map integers to integers. Clip keeps the gates small, so no value leaves the exact range."""
    rng = np.random.default_rng([77, seed])
    op = list(GATES)[seed % 3]
    direction = ("forward", "reverse", "bidirectional")[seed // 3 % 3]
    count = ACTIVATIONS[op] * (2 if direction == "bidirectional" else 1)
    activations = [str(name) for name in rng.choice(["Relu", "ThresholdedRelu"], count)]
    return Configuration(
        op=op, I=int(rng.integers(1, 131)), H=int(rng.integers(8, 131)), direction=direction, clip=2,
        activations=activations, alpha=[1] * activations.count("ThresholdedRelu"),
        linear_before_reset=int(op == "GRU" and seed % 2), input_forget=int(op == "LSTM" and seed % 4 == 1),
        peepholes=op == "LSTM" and seed % 2 == 0, lengths=seed % 4 == 0, h0=seed % 2 == 0, seed=1000 + seed)


def exact_case(configuration):
    """Weights, inputs and values, all of them small integers: T = 20 for RNN; products of gates grow with each step."""
    rng = np.random.default_rng(configuration.seed)
    weights = {name: integers(rng, array.shape) for name, array in configuration.random_weights().items()}
    feeds = {name: array if name == "lengths" else integers(rng, array.shape) * 3
             for name, array in configuration.random_feeds(20 if configuration.op == "RNN" else 4, 3, 0).items()}
    return weights, feeds, configuration.values(weights, feeds)


def integers(rng, shape):
    return (rng.integers(-1, 2, shape) * (rng.random(shape) < 0.6)).astype(np.float32)


@by_name([exact_configuration(seed) for seed in range(48)])
def test_integer_values_are_exact(configuration, compile, tmp_path):
    weights, feeds, values = exact_case(configuration)
    assert np.abs(values["Y"]).max() < 2**20 and np.count_nonzero(values["Y"]), "the case itself is exact and not trivial"
    path = compile(configuration.model(weights).write(tmp_path))
    with Module(path) as module, module.context(threads=2) as context:
        outputs = context.run(feeds)
    for name in configuration.outputs:
        assert np.array_equal(outputs[name], values[name]), name
