# SPDX-License-Identifier: MIT
"""tools/from_torch, which is a program without .py, as a module."""
import importlib.machinery
import importlib.util
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "tools" / "from_torch"


def load():
    loader = importlib.machinery.SourceFileLoader("from_torch", str(PROGRAM))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("from_torch", loader))
    loader.exec_module(module)
    return module
