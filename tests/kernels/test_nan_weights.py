# SPDX-License-Identifier: MIT
"""NaN and infinity as weights are numbers like others: they reach what is computed of them, as in ONNX Runtime, and no
other channel, lane or step. Windows are without pads, which some kernels leave out and others multiply by the weight."""
import numpy
import pytest

from support.machine import WIDEST
from support.model_builder import Model

BAD = numpy.array([numpy.nan, numpy.inf, -numpy.inf], numpy.float32)


def weights(rng, *shape):
    """Some of the first axis's rows have a number that is none."""
    array = rng.uniform(0.1, 1, shape).astype(numpy.float32)
    for row, bad in zip((1, shape[0] // 2, shape[0] - 1), BAD):
        array[row].flat[rng.integers(array[row].size)] = bad
    return array


def convolutions(rng):
    """Of 3x3, which may be Winograd's; of one pixel; of each channel alone; and its last vector is not full."""
    model, x = Model(), rng.uniform(0.1, 1, (1, 21, 13, 12)).astype(numpy.float32)
    model.input("x", "f32", x.shape)
    for shape, attributes in (((37, 21, 3, 3), {}), ((18, 21, 1, 1), {}), ((21, 1, 3, 3), dict(group=21))):
        model.output(model.node("Conv", ["x", model.constant(weights(rng, *shape))], **attributes))
    return model, {"x": x}


def products(rng):
    model, x = Model(), rng.uniform(0.1, 1, (7, 40)).astype(numpy.float32)
    model.input("x", "f32", x.shape)
    model.output(model.node("MatMul", ["x", model.constant(weights(rng, 50, 40).T.copy())]),
                 model.node("Gemm", ["x", model.constant(weights(rng, 50, 40)), model.constant(weights(rng, 50, 1)[:, 0])], transB=1))
    return model, {"x": x}


def recurrent(rng):
    """The first step has them where they are, and from the second on all that is computed of it."""
    model, x = Model(), rng.uniform(0.1, 1, (3, 2, 9)).astype(numpy.float32)
    model.input("x", "f32", x.shape)
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        w, r = weights(rng, gates * 21, 9)[None], rng.uniform(0.1, 0.2, (1, gates * 21, 21)).astype(numpy.float32)
        model.output(model.node(op, ["x", model.constant(w), model.constant(r)], hidden_size=21))
    return model, {"x": x}


@pytest.mark.every_case
@pytest.mark.parametrize("target", [WIDEST, "x86-64"])
@pytest.mark.parametrize("build", [convolutions, products, recurrent])
def test_weights_that_are_no_numbers_reach_what_is_computed_of_them(build, target, run_for, tmp_path):
    model, feeds = build(numpy.random.default_rng(5))
    got, expected = run_for(target, model.write(tmp_path), feeds, model.outputs), model.onnx_run(feeds)
    for name in expected:
        assert numpy.isnan(expected[name]).any() and numpy.isfinite(expected[name]).any()
        # |error| < c*K*eps*sum|a*b| with sums of at most 200 positive numbers, which are those of the results
        finite = numpy.isfinite(expected[name])
        numpy.testing.assert_array_equal(numpy.isfinite(got[name]), finite, err_msg=name)
        numpy.testing.assert_allclose(got[name][finite], expected[name][finite], rtol=200 * 2**-23, err_msg=name)
        # Winograd's algorithm and sums in another order may make NaN of infinities, not the other way round.
        assert numpy.isnan(got[name])[numpy.isnan(expected[name])].all()
