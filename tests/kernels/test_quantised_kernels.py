# SPDX-License-Identifier: MIT
"""Quantised operators are exact: the reference interpreter and emitted kernels against ONNX Runtime, bit for bit."""
import numpy
import pytest

from conftest import build_directory
from graphs.quantised_models import QUANTISED
from support.emitted import TARGETS, assert_same, run_module, run_on_aarch64
from support.merge import merged
from support.reference import Reference

SEEDS = 5


def everything():
    return [QUANTISED[name](numpy.random.default_rng([seed, *name.encode()])) for name in QUANTISED
            for seed in range(SEEDS)]


def peer_results(parts):
    return {f"p{k}_{name}": array for k, (model, feeds) in enumerate(parts)
            for name, array in model.onnx_run(feeds).items()}


def test_the_reference_equals_onnx_runtime(tmp_path):
    reference = Reference(build_directory() / "tests" / "support" / "reference_run")
    model, feeds = merged(everything())
    assert_same(reference.run(model, model.write(tmp_path), feeds), peer_results(everything()))


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_equal_onnx_runtime(compile, tmp_path, target):
    model, feeds = merged(everything())
    got = run_module(compile(model.write(tmp_path), f"--target={target}"), feeds, threads=(1, 2))
    assert_same(got, peer_results(everything()))


def test_aarch64_kernels_equal_onnx_runtime(aarch64_rnnrun, compile, tmp_path):
    model, feeds = merged(everything())
    module = compile(model.write(tmp_path), "--target=aarch64-linux-gnu")
    assert_same(run_on_aarch64(aarch64_rnnrun, module, feeds, model.outputs, tmp_path), peer_results(everything()))
