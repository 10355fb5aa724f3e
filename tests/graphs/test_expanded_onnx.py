# SPDX-License-Identifier: MIT
"""Expanded operators (compiler/expand), and those that are compared in the same way, compute what ONNX Runtime does: by
the reference and by their kernels."""
import numpy
import pytest

from conftest import build_directory
from graphs.expanded_models import EXPANDED
from graphs.test_reference_onnx import FUNCTION_ERROR, assert_close, peer_run
from support.emitted import run_module
from support.merge import merged
from support.reference import Reference

MODELS = 4  # of each operator


@pytest.mark.every_case
@pytest.mark.parametrize("name", EXPANDED)
def test_expanded_op_agrees_with_onnx_runtime(compile, tmp_path, name):
    rng = numpy.random.default_rng(list(name.encode()))
    model, feeds = merged([EXPANDED[name](rng) for _ in range(MODELS)])
    path = model.write(tmp_path)
    expected = peer_run(model, feeds)
    reference = Reference(build_directory() / "tests" / "support" / "reference_run").run(model, path, feeds)
    emitted = run_module(compile(path), feeds, threads=(1, 3))
    for output in model.outputs:
        assert_close(reference[output], expected[output], FUNCTION_ERROR)
        assert_close(emitted[output], expected[output], FUNCTION_ERROR)
