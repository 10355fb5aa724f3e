# SPDX-License-Identifier: MIT
"""Small networks of every target that `rnncc targets` lists equal the reference, on this CPU or under qemu-user."""
import numpy
import pytest

from support.emitted import run_module, run_on_aarch64
from support.merge import merged
from support.machine import OF_TARGET
from support.model_builder import Model
from support.targets import EMULATED

PRODUCTS = 45  # that are summed up at most, each of numbers below 1


def values(rng, *shape):
    return rng.uniform(-1, 1, shape).astype(numpy.float32)


def convolutional(rng):
    """Channels that fill no vector of any target: 18 = 16 + 2."""
    model, feeds = Model(), {"x": values(rng, 2, 5, 9, 7)}
    x = model.input("x", "f32", [2, 5, 9, 7])
    x = model.node("Relu", [model.node("Conv", [x, model.constant(values(rng, 18, 5, 3, 3) / 8)], pads=[1, 1, 1, 1])])
    x = model.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = model.node("Conv", [x, model.constant(values(rng, 21, 18, 1, 1) / 4)])
    x = model.node("Flatten", [model.node("GlobalAveragePool", [x])])
    model.output(model.node("Softmax", [x], axis=1))
    return model, feeds


def recurrent(rng, op, gates, **attributes):
    model, feeds = Model(), {"x": values(rng, 5, 3, 7)}
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    weights = [model.constant(values(rng, directions, gates * 11, columns) / 3) for columns in (7, 11)]
    x = model.node(op, [model.input("x", "f32", [5, 3, 7]), *weights], hidden_size=11, **attributes)
    model.output(x)
    return model, feeds


def networks():
    rng = numpy.random.default_rng(17)
    return merged([convolutional(rng), recurrent(rng, "LSTM", 4),
                   recurrent(rng, "GRU", 3, direction="bidirectional", linear_before_reset=1)])


def test_each_target_is_tested(rnncc):
    lines = rnncc("targets").stdout.splitlines()[1:]
    assert {target: isa for target, isa, *_ in map(str.split, lines)} == OF_TARGET


@pytest.mark.optimised
@pytest.mark.parametrize("target", OF_TARGET)
def test_a_cnn_an_lstm_and_a_gru_equal_the_reference(target, request, compile, reference, tmp_path):
    model, feeds = networks()
    path = model.write(tmp_path)
    module = compile(path, f"--target={target}")
    if target in EMULATED:
        got = run_on_aarch64(request.getfixturevalue("rnnrun_of")(target), module, feeds, model.outputs, tmp_path)
    else:
        got = run_module(module, feeds)
    for name, want in reference.run(model, path, feeds).items():
        numpy.testing.assert_allclose(got[name], want, rtol=0, atol=PRODUCTS * 2.0**-23, err_msg=name)
