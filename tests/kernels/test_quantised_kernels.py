# SPDX-License-Identifier: MIT
"""Quantised operators are exact, bit for bit: the reference interpreter and emitted kernels are compared with ONNX
Runtime, and with integer arithmetic where ONNX Runtime's products of u8 and i8 saturate, on CPUs without VNNI."""
import numpy
import pytest

from conftest import build_directory
from graphs.op_models import one_op
from graphs.quantised_models import PRODUCTS, QUANTISED, exact_run, onnx_reference
from support.amount import long_tests
from support.emitted import TARGETS, assert_same, run_module, run_by
from support.merge import merged
from support.model_builder import Model
from support.reference import Reference

SEEDS = 5 if long_tests() else 2


def everything():
    return [QUANTISED[name](numpy.random.default_rng([seed, *name.encode()])) for name in QUANTISED
            for seed in range(SEEDS)]


def expected(parts):
    return {f"p{k}_{name}": array for k, (model, feeds) in enumerate(parts)
            for name, array in peer(model)(model, feeds).items()}


def peer(model):
    if model.opset >= 23:  # newer than ONNX Runtime's kernels
        return onnx_reference
    return exact_run if model.nodes[0]["op"] in PRODUCTS else Model.onnx_run


def test_the_reference_is_exact(tmp_path):
    reference = Reference(build_directory() / "tests" / "support" / "reference_run")
    model, feeds = merged(everything())
    assert_same(reference.run(model, model.write(tmp_path), feeds), expected(everything()))


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_are_exact(compile, tmp_path, target):
    model, feeds = merged(everything())
    got = run_module(compile(model.write(tmp_path), f"--target={target}"), feeds, threads=(1, 2))
    assert_same(got, expected(everything()))


def test_aarch64_kernels_are_exact(aarch64_rnnrun, compile, tmp_path):
    model, feeds = merged(everything())
    module = compile(model.write(tmp_path), "--target=aarch64-linux-gnu")
    due = expected(everything())
    assert_same(run_by(aarch64_rnnrun, module, feeds, due, tmp_path), due)


# Of A, and of scales and zero points of its rows; of B, and of those of its columns. Of one rank, they are of each matrix.
FACTORS = [((3, 4), (3, 1), (4, 5), ()), ((3, 4), (), (4, 5), (1, 5)), ((3, 4), (3, 1), (4, 5), (1, 5)),
           ((3, 4), (1, 1), (4, 5), (5,)), ((3, 4), (3,), (4, 5), (1, 1)), ((2, 3, 4), (), (2, 4, 5), (2, 1, 5)),
           ((2, 3, 4), (2, 3, 1), (2, 4, 2), (2, 1, 1)),
           ((2, 3, 4), (1, 3, 1), (2, 4, 5), (1, 1, 5)), ((2, 3, 4), (2, 1, 1), (4, 5), (1, 5)),
           ((3, 4), (3, 1), (2, 4, 5), (2, 1, 5)),
           ((2, 1, 3, 70), (2, 1, 3, 1), (2, 70, 5), (2, 1, 5)), ((3, 4), (3,), (4,), ()), ((2, 3, 4), (2, 3, 1), (4,), (1,)),
           ((4,), (1,), (2, 4, 5), (2, 1, 5)), ((4,), (), (4, 5), (1, 5))]
RESULTS = [((3, 4), (4, 5), (3, 1)), ((3, 4), (4, 5), (1, 5)), ((2, 3, 4), (4, 5), (2, 3, 1)), ((3, 4), (4, 5), (5,))]


def random_factor(rng, dtype, shape, parameters):
    """Bytes, their scale, a power of two, and their zero point."""
    low, high = (0, 256) if dtype is numpy.uint8 else (-64, 64)
    return [rng.integers(low, high, shape).astype(dtype), (2.0 ** rng.integers(-4, 3, parameters)).astype(numpy.float32),
            rng.integers(low, high, parameters).astype(dtype)]


def in_floats(x, scale, zero, rows):
    """Exact in double."""
    scale, zero = ((array.reshape(-1, 1) if rows and x.ndim > 1 and array.ndim == 1 else array) for array in (scale, zero))
    return (x.astype(float) - zero) * scale


def rounded(y, scale, zero):
    return numpy.clip(numpy.rint(y / scale) + zero, 0, 255).astype(numpy.uint8)


def products(rng, a_shape, rows, b_shape, columns, result=()):
    """(operator, inputs, what is due)"""
    a, b = random_factor(rng, numpy.uint8, a_shape, rows), random_factor(rng, numpy.int8, b_shape, columns)
    y_scale = (2.0 ** rng.integers(6, 9, result)).astype(numpy.float32)
    y_zero = rng.integers(90, 160, result).astype(numpy.uint8)
    product = in_floats(*a, True) @ in_floats(*b, False)
    yield "QLinearMatMul", [*a, *b, y_scale, y_zero], rounded(product, y_scale, y_zero)
    if not result:
        ones = [(x, numpy.float32(1), zero) for x, _, zero in (a, b)]
        integers = in_floats(*ones[0], True) @ in_floats(*ones[1], False)
        yield "MatMulInteger", [a[0], b[0], a[2], b[2]], integers.astype(numpy.int32)
        if len(b_shape) > 1:
            yield "MatMulIntegerToFloat", [a[0], b[0], a[1], b[1], a[2], b[2]], product.astype(numpy.float32)


def test_scales_and_zero_points_are_of_rows_and_columns_of_each_matrix(compile, tmp_path):
    """Where all is known when compiling, where all is but A, and where nothing is. The reference has the same formulas."""
    reference = Reference(build_directory() / "tests" / "support" / "reference_run")
    rng, parts, due = numpy.random.default_rng(13), [], {}
    for shapes in [*FACTORS, *((a, (), b, (), result) for a, b, result in RESULTS)]:
        for op, inputs, expected_result in products(rng, *shapes):
            for constants in (range(len(inputs)), range(1, len(inputs)), ()):
                model, feeds = one_op(op, inputs, constants=constants)
                due[f"p{len(parts)}_{model.outputs[0]}"] = expected_result
                parts.append((model, feeds))
    model, feeds = merged(parts)
    path = model.write(tmp_path)
    assert_same(run_module(compile(path), feeds, threads=(1, 2)), due)
    assert_same(reference.run(model, path, feeds), due)


@pytest.mark.parametrize("a, b, zero", [((3, 4), (4, 5), (1, 5)), ((2, 3, 4), (2, 4, 5), (2, 1, 5)),
                                        ((2, 3, 4), (4, 5), (1, 5))])
def test_zero_points_of_columns_are_those_of_onnx_runtime(compile, tmp_path, a, b, zero):
    rng = numpy.random.default_rng(14)
    inputs = [rng.integers(low, 64, shape).astype(dtype) for low, shape, dtype in
              ((0, a, numpy.uint8), (-64, b, numpy.int8), (0, (), numpy.uint8), (-64, zero, numpy.int8))]
    model, feeds = one_op("MatMulInteger", inputs)
    assert_same(run_module(compile(model.write(tmp_path)), feeds, threads=(1, 2)), model.onnx_run(feeds))
