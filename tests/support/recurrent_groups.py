# SPDX-License-Identifier: MIT
"""Checks compiled recurrent nodes against ONNX Runtime and double precision, with many nodes in a module.

Compiling a kernel takes longer than everything else. So GROUP configurations share a module, as independent nodes, and
those that differ only in sizes, weights and layout share its kernels. Each is a test.
"""
import math

import numpy as np
import pytest

from support.amount import some
from support.emitted import run_by
from support.module import Module
from support.recurrent import MAX_B, MAX_T, SAME_OP, model_of

EPS = float(np.finfo(np.float32).eps)
GROUP = SAME_OP  # a multiple of SHARING, too


def groups_of(configurations):
    return [tuple(configurations[first:first + GROUP]) for first in range(0, len(configurations), GROUP)]


def in_groups(configurations, by_default=None):
    """Parametrizes by configuration, and adds the group with which it is compiled. by_default: of so many groups; None: of
    all, as in long tests. What a case costs is its group's module, so that a sweep by cases would spare nothing."""
    groups = groups_of(configurations)
    cases = [(configuration, group) for group in (groups if by_default is None else some(groups, by_default))
             for configuration in group]

    def decorate(test):
        return pytest.mark.every_case(pytest.mark.parametrize("configuration, group", [
            pytest.param(configuration, group, id=f"{configuration.seed}-{configuration.name}")
            for configuration, group in cases])(test))

    return decorate


def is_optimised(group, *options):
    """By clang, of this CPU's target: the first group of LSTMs, which have most of what the other ops have."""
    return not options and group[0].op == "LSTM" and group[0].seed < 3 * GROUP


def fixed_dims(group):
    """The values of T and B that are fixed at compile time: none in every fourth group."""
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


def emulated_outputs(path, group, T, B, rnnrun, folder, threads=2):
    """The same, by a rnnrun of another architecture."""
    key = path, T, B
    if key not in OUTPUTS_OF_RUNS:
        feeds = group_feeds(group, T, B)
        outputs = [c.prefix + name for c in group for name in c.outputs]
        OUTPUTS_OF_RUNS[key] = run_by(rnnrun, path, feeds, outputs, folder, threads)
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
            # ONNX Runtime's own tanh and sigmoid have errors of some 1e-6.
            assert_near(confirmed[name], values[name], limit + 1e-5, f"ONNX Runtime's {name}")
            expected = configuration.to_layout({name: values[name]})[name]
            assert_near(got[name], expected, limit, f"T={T} B={B} {name}")


def check_target(configuration, group, compile, tmp_path, *options):
    path = compile(model_of(group, **fixed_dims(group)).write(tmp_path), *options, optimised=is_optimised(group, *options))
    check_values(configuration, shapes_of(group), lambda T, B: configuration.own(group_outputs(path, group, T, B, 2)))


def check_threads(configuration, group, compile, tmp_path):
    """Outputs have the same bits on any number of threads."""
    path = compile(model_of(group, **fixed_dims(group)).write(tmp_path), optimised=is_optimised(group))
    T, B = shapes_of(group)[-1]
    one, *others = [configuration.own(group_outputs(path, group, T, B, threads)) for threads in (1, 2, 3, 8)]
    for name in one:
        for other in others:
            assert np.array_equal(one[name].view(np.uint32), other[name].view(np.uint32)), name


def steps_runner(configuration, group, T, B):
    """run(context, begin, end) -> this configuration's Y, steps first, of these ones of T steps. The context has the states."""
    inputs = [(c, c.random_feeds(T, B, 0)["x"]) for c in group]

    def run(context, begin, end):
        feeds = {name: array for c, x in inputs
                 for name, array in c.named(c.to_layout({"x": x[begin:end]})).items()}
        y = configuration.own(context.run(feeds))["Y"]
        return y.transpose(1, 2, 0, 3) if configuration.layout else y

    return run
