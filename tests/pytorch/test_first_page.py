# SPDX-License-Identifier: MIT
"""What README.md begins with: a network of PyTorch, exported and compiled, then run from C, C++ and Python."""
import os
import shlex
import subprocess
import sys

import pytest

from support import pages

README = pages.README.read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, rnncc):
    """The programs of README.md, and the module that its command makes."""
    folder = tmp_path_factory.mktemp("readme")
    for name, code in pages.programs(README).items():
        (folder / name).write_text(code)
    (folder / "runtime").symlink_to(pages.ROOT / "runtime")
    (command,) = [line for line in README.splitlines() if "tools/from_torch network.py" in line]

    words = shlex.split(command.partition(".venv-torch/bin/python ")[2])
    # A process of its own, not a fork: after some exports PyTorch takes run-time axes of later ones for constants.
    done = subprocess.run([sys.executable, pages.ROOT / words[0], *words[1:]], cwd=folder, capture_output=True, text=True,
                          env=os.environ | {"RNNCC": str(rnncc.path)})
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("name", ["net.c", "net.cc"])
def test_program_builds_by_the_command_beside_it_and_runs(folder, name):
    (command,) = [quoted for quoted in README.split("`") if quoted.startswith("clang") and f" {name} " in quoted]
    built = subprocess.run([*shlex.split(command), "-Wall", "-Wextra", "-Werror"], cwd=folder, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([f"./{command.split()[-1]}"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_python_gets_results_of_the_length_that_it_gave(folder):
    code = f"{pages.programs(README)['net.py']}\nprint(y.shape, h.shape)"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True,
                          env={"PYTHONPATH": str(pages.ROOT / "runtime" / "bindings" / "python")})
    assert done.stdout == "(1, 100, 64) (1, 1, 64)\n", done.stderr
