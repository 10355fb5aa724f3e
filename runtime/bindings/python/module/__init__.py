# SPDX-License-Identifier: MIT
"""A network, compiled by rnncc: the shared object beside this file. It needs no compiler.

    m = load()
    y = m(x)

`m` is a Module of the package rnncc: m.inputs, m.outputs and m.dims say what it takes and returns."""
from pathlib import Path
from typing import Any, Optional

from ._rnncc.context import Context
from ._rnncc.errors import Error
from ._rnncc.module import Module
from ._rnncc.module import load as _load

__all__ = ["Context", "Error", "Module", "load"]


def load(network: Optional[str] = None, **options: Any) -> Module:
    """network: which of several; default: the first. options: those of rnncc.load(), such as threads=2."""
    (path,) = Path(__file__).parent.glob("*.so")
    return _load(path, network, **options)
