# SPDX-License-Identifier: MIT
"""The reference interpreter computes what ONNX Runtime does, op by op on random small models."""
import re

import numpy
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from graphs.movement_models import CASES as MOVEMENT_CASES
from graphs.op_models import CASES as OP_CASES
from graphs.op_models import INEXACT
from graphs.recurrent_models import GATES, batch_first, recurrent, turned_output
from support.amount import some

SEEDS = 4
CASES = OP_CASES | MOVEMENT_CASES
NotImplementedByPeer = onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented
NEWEST = onnx.defs.onnx_opset_version()
InvalidForPeer = onnxruntime.capi.onnxruntime_pybind11_state.InvalidGraph
# ONNX Runtime approximates exp, tanh and erf with up to 2^-20 of relative error; the reference is off by half an ULP.
FUNCTION_ERROR = 2.0**-20


def assert_close(got, expected, bound):
    assert got.dtype == expected.dtype and got.shape == expected.shape
    if bound == 0:
        numpy.testing.assert_array_equal(got, expected)
    else:
        magnitude = max(1.0, float(numpy.abs(expected).max(initial=0)))
        numpy.testing.assert_allclose(got, expected, rtol=0, atol=bound * magnitude)


def peer_run(model, feeds):
    """By ONNX Runtime; by onnx.reference if ONNX Runtime has no kernel, or the op is newer than the models' opset."""
    try:
        return model.onnx_run(feeds)
    except (NotImplementedByPeer, InvalidForPeer) as lacking:
        if not re.search("Could not find an implementation|No Op registered|Type Error|Unrecognized attribute", str(lacking)):
            raise
    model.opset = NEWEST
    return dict(zip(model.outputs, ReferenceEvaluator(model.onnx()).run(model.outputs, feeds)))


@pytest.mark.parametrize("seed", some(range(SEEDS), 2))
@pytest.mark.parametrize("name", CASES)
def test_op_agrees_with_onnx_runtime(reference, tmp_path, name, seed):
    model, feeds = CASES[name](numpy.random.default_rng([seed, *name.encode()]))
    expected = peer_run(model, feeds)
    got = reference.run(model, model.write(tmp_path), feeds)
    for output in model.outputs:
        assert_close(got[output], expected[output], FUNCTION_ERROR if name in INEXACT else 0)


def recurrent_bound(op, steps):
    """In each step, sums have errors of a few ULP in f32, and functions FUNCTION_ERROR. Steps add up, because no activation
    here is steeper than 1, but gates multiply: twice for the candidates of GRU and LSTM."""
    return 2 * steps * FUNCTION_ERROR * (1 if op == "RNN" else 2)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("op", GATES)
def test_recurrent_op_agrees_with_onnx_runtime(reference, tmp_path, op, seed):
    model, feeds, steps = recurrent(numpy.random.default_rng([seed, *op.encode()]), op)
    expected = model.onnx_run(feeds)
    got = reference.run(model, model.write(tmp_path), feeds)
    for output in model.outputs:
        assert_close(got[output], expected[output], recurrent_bound(op, steps))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("op", GATES)
def test_batch_first_layout_is_the_other_one_transposed(reference, tmp_path, op, seed):
    model, feeds, _ = recurrent(numpy.random.default_rng([seed, *op.encode()]), op)
    turned, turned_feeds = batch_first(model, feeds, op)
    plain = reference.run(model, model.write(tmp_path), feeds)
    got = reference.run(turned, turned.write(tmp_path), turned_feeds)
    for output in model.outputs:
        numpy.testing.assert_array_equal(got[output], turned_output(output, plain[output]))
