# SPDX-License-Identifier: MIT
"""What the tests of PyTorch's exporters share."""
import logging
from pathlib import Path

import pytest

from support import from_torch as program
from support.clang import BUILD


def keep(path, name):
    """A copy for tests/fuzz/mutants.sh, with its weights inside."""
    import onnx
    (BUILD / "exported").mkdir(exist_ok=True)
    onnx.save(onnx.load(path), BUILD / "exported" / name)


@pytest.fixture(scope="session")
def from_torch():
    """tools/from_torch, and PyTorch on one thread, silent. What it exports stays in the build directory."""
    import torch
    torch.set_num_threads(1)
    logging.getLogger("torch").setLevel(logging.ERROR)
    module = program.load()
    export = module.export

    def keeping_export(network, inputs, axes, path, exporter, *settings, **named):
        export(network, inputs, axes, path, exporter, *settings, **named)
        keep(path, f"{Path(path).stem}_{exporter}.onnx")

    module.export = keeping_export
    return module


@pytest.fixture(scope="session")
def layers_folder(tmp_path_factory):
    """Where rnncc.torch keeps compiled layers."""
    path = tmp_path_factory.mktemp("layers")
    path.chmod(0o700)
    return path


@pytest.fixture
def by_this_rnncc(rnncc, layers_folder, monkeypatch):
    """rnncc.torch with the program that is tested."""
    import torch
    monkeypatch.setenv("RNNCC", str(rnncc.path))
    monkeypatch.setenv("RNNCC_CACHE", str(layers_folder))
    torch.set_num_threads(1)
    torch.manual_seed(3)
