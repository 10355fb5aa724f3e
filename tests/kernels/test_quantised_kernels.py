# SPDX-License-Identifier: MIT
"""Quantised operators are exact, bit for bit: the reference interpreter and emitted kernels are compared with ONNX
Runtime, and with integer arithmetic where ONNX Runtime's products of u8 and i8 saturate, on CPUs without VNNI."""
import numpy
import pytest

from conftest import build_directory
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
