# SPDX-License-Identifier: MIT
"""A module that gets no memory says so, and gives back what it took: the k-th allocation or mapping of a model, a context, a
run and weights that are set fails, for every k."""
import subprocess

import onnx
import pytest

from conftest import ROOT
from support.hard_networks import control, convolutional, recurrent
from support.trained_lines import line_to_learn

pytestmark = pytest.mark.unsanitized


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "failed_allocations"
    subprocess.run(["clang-19", "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-rdynamic", f"-I{ROOT / 'runtime'}",
                    ROOT / "tests" / "modules" / "failed_allocations.c", "-ldl", "-o", path], check=True)
    return path


def learning():
    return line_to_learn(), None


@pytest.mark.every_case
@pytest.mark.parametrize("make, options", [(recurrent, []), (convolutional, []), (control, []), (recurrent, ["--weights=mutable"]),
                                           (learning, ["--train"])], ids=["recurrent", "convolutional", "control", "mutable", "trained"])
def test_what_was_taken_before_a_failure_is_given_back(make, options, program, compile, tmp_path):
    """The convolutional network is read from ONNX."""
    model, _ = make()
    path = model.write(tmp_path)
    if make is convolutional:
        onnx.save(model.onnx(), path := tmp_path / "model.onnx")
    done = subprocess.run([program, compile(path, "--threads=3", *options)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"{done.returncode} {done.stdout}{done.stderr}"
    assert int(done.stdout.split()[0]) >= 5
