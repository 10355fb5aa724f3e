# SPDX-License-Identifier: MIT
"""A host may round in another way and trap every floating-point exception: runs, gradients' norms and steps have the same
bits, and raise no signal."""
import platform
import subprocess

import numpy
import pytest

from conftest import ROOT
from support.model_builder import Model

pytestmark = [pytest.mark.unsanitized,
              pytest.mark.skipif(platform.machine() != "x86_64", reason="not every CPU of this architecture traps exceptions")]


@pytest.fixture(scope="module")
def host_modes(tmp_path_factory):
    program = tmp_path_factory.mktemp("host") / "host_modes"
    subprocess.run(["clang-19", "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'runtime'}",
                    ROOT / "tests" / "modules" / "host_modes.c", "-lm", "-ldl", "-o", program], check=True)

    def run(module, extent):
        done = subprocess.run([program, module, str(extent)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

    return run


def weight(model, *shape):
    return model.constant(numpy.random.default_rng(7).uniform(-1, 1, shape).astype(numpy.float32) / 3, f"w{shape[0]}")


@pytest.mark.parametrize("extent", [1, 5, 7])
def test_runs(compile, host_modes, tmp_path, extent):
    """Of some extents only a part of a run's work is exact: the optimum is 3."""
    model = Model("runs")
    x = model.input("x", "f32", [model.dim("T", 1, 3, 8), 40])
    model.output(model.node("Softmax", [model.node("Sigmoid", [model.node("MatMul", [x, weight(model, 40, 70)])])]))
    host_modes(compile(model.write(tmp_path)), extent)


def test_norms_and_steps(compile, host_modes, tmp_path):
    """Of weights that are many enough for several workers."""
    model = Model("trained")
    x, labels = model.input("x", "f32", [6, 40]), model.input("labels", "i64", [6])
    wide = model.node("Tanh", [model.node("MatMul", [x, weight(model, 40, 2400)])])
    scores = model.node("MatMul", [wide, weight(model, 2400, 3)])
    model.output(model.node("SoftmaxCrossEntropyLoss", [scores, labels], ["loss"]))
    host_modes(compile(model.write(tmp_path), "--train"), 1)
