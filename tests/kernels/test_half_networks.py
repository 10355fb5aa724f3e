# SPDX-License-Identifier: MIT
"""Networks of f16 or bf16 are stored as such and computed in f32. The result is the f32 network's for the same numbers, rounded
at the end, whatever the passes over f32 do."""
import ml_dtypes
import numpy
import pytest

from support.emitted import TARGETS, run_module, run_by
from support.model_builder import Model


KINDS = {"f16": numpy.float16, "bf16": ml_dtypes.bfloat16}


def network(dtype, half):
    """Convolution, scale and shift of channels, activation, pools, concatenation, interpolation, product, softmax,
    scatter-add."""
    kind, rng, model = {"f32": numpy.float32, **KINDS}[dtype], numpy.random.default_rng(8), Model()

    def weights(*shape):
        return model.constant(rng.uniform(-0.3, 0.3, shape).astype(KINDS[half]).astype(kind))

    x = model.input("x", dtype, [2, 20, 9, 9])
    y = model.node("Conv", [x, weights(32, 20, 3, 3), weights(32)], pads=[1, 1, 1, 1])
    y = model.node("BatchNormalization", [y, weights(32), weights(32), weights(32),
                                          model.constant(numpy.ones(32, kind))])
    y = model.node("Relu", [y])
    y = model.node("Concat", [y, model.node("MaxPool", [y], kernel_shape=[3, 3], pads=[1, 1, 1, 1])], axis=1)
    y = model.node("Resize", [y, "", model.constant(numpy.array([1, 1, 4 / 3, 5 / 3], numpy.float32))], mode="linear")
    y = model.node("Flatten", [model.node("GlobalAveragePool", [y])])
    y = model.node("Softmax", [model.node("Gemm", [y, weights(64, 30), weights(30)])], axis=-1)
    y = model.node("ScatterElements", [y, model.constant(numpy.array([[0, 0, 3]])), weights(1, 3)], axis=1,
                   reduction="add")
    model.output(y)
    return model


def x_of(kind, half="f16"):
    return numpy.random.default_rng(9).uniform(-2, 2, (2, 20, 9, 9)).astype(KINDS[half]).astype(kind)


@pytest.mark.parametrize("target, half", [*((target, "f16") for target in TARGETS), (TARGETS[1], "bf16")])
def test_a_network_of_halves_computes_like_f32_except_at_its_ends(compile, tmp_path, target, half):
    results = {}
    for dtype, kind in ((half, KINDS[half]), ("f32", numpy.float32)):
        (folder := tmp_path / dtype).mkdir()
        model = network(dtype, half)
        results[dtype] = run_module(compile(model.write(folder), f"--target={target}"), {"x": x_of(kind, half)},
                                    threads=(1, 2))[model.outputs[0]]
    assert results[half].dtype == KINDS[half]
    numpy.testing.assert_array_equal(results[half], results["f32"].astype(KINDS[half]))


def test_only_the_ends_are_cast(rnncc, tmp_path):
    done = rnncc("inspect", network("f16", "f16").write(tmp_path), "--dump-after=simplify")
    casts = [line for line in done.stdout.splitlines() + done.stderr.splitlines() if "= Cast(" in line]
    assert len(casts) == 2, casts


def test_the_aarch64_module_computes_the_same(aarch64_rnnrun, compile, tmp_path):
    model, feeds = network("f16", "f16"), {"x": x_of(numpy.float16)}
    path, (output,) = model.write(tmp_path), model.outputs
    there = run_by(aarch64_rnnrun, compile(path, "--target=aarch64-linux-gnu"), feeds, [output], tmp_path)
    here = run_module(compile(path), feeds, threads=(1,))
    # Sums in another order differ by at most some 2^-20; rounding to f16 adds half of 2^-10: together one step.
    numpy.testing.assert_array_max_ulp(there[output], here[output], 1)
