# SPDX-License-Identifier: MIT
"""What checks that written-out cells become a recurrent operator, or stay. Tests import the fixtures that they use."""
import math
import re
from collections import Counter

import numpy
import pytest

RECURRENT = {"RNN", "GRU", "LSTM"}
MOVES = {"Concat", "Gather", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"}
I, H, B = 3, 5, 2


@pytest.fixture
def rng(request):
    return numpy.random.default_rng([2029, *request.node.name.encode()])


def dump_after(rnncc, path):
    done = rnncc(path, "--emit=dot", "-o", "-", "--dump-after=reroll_rnn")
    assert done.returncode == 0, done.stderr
    return done.stderr


def ops_of(rnncc, path):
    """How often each op occurs in the graph after the pass."""
    return Counter(re.findall(r"^n\d+: .* = (\w+)\(", dump_after(rnncc, path), re.MULTILINE))


def bound(feeds, steps):
    """Sums of K terms over T steps that contract; and ONNX Runtime's own tanh and sigmoid, with errors of up to 2^-20:
    twice in each step, through a gate and a candidate, and once more for the output."""
    K = sum(array.shape[-1] for array in feeds.values()) + 1
    return 4 * math.ceil(math.log2(K * steps)) * 2.0**-23 + 3 * steps * 2.0**-20


def check_values(reference, model, path, feeds, steps):
    expected = model.onnx_run(feeds)
    got = reference.run(model, path, feeds, simplified=True)
    assert sorted(got) == sorted(expected)
    for name, array in expected.items():
        assert got[name].shape == array.shape, name
        numpy.testing.assert_allclose(got[name], array, rtol=0, atol=bound(feeds, steps), err_msg=name)


@pytest.fixture
def check(rnncc, reference, tmp_path):
    """Checks the values; returns the ops after the pass without those that only move data."""

    def checked(model, feeds, steps=1):
        path = model.write(tmp_path)
        check_values(reference, model, path, feeds, steps)
        return {op: n for op, n in ops_of(rnncc, path).items() if op not in MOVES}

    return checked


def random_feeds(model, rng):
    described = model.inputs + [{"name": s["input"], **s} for s in model.states]
    return {i["name"]: rng.uniform(-1, 1, [B if n == "B" else n for n in i["shape"]]).astype(numpy.float32)
            for i in described}
