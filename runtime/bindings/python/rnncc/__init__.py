# SPDX-License-Identifier: MIT
"""Compiled networks from Python.

    import rnncc
    m = rnncc.load("model.so")       # or rnncc.compile("model.onnx", dims={"T": (1, 50, 400)})
    y = m(x)

Needs NumPy, or without it takes and returns buffers."""
from .compiling.compiler import CompileWarning, compile
from .compiling.torch_export import from_torch
from .context import Context
from .describe import Dim, Info, ProfileEntry, State, Tensor
from .errors import (ArgumentError, BoundError, BusyError, ClosedError, CompileError, DataError, DTypeError, Error,
                     LoadError, OutOfMemoryError, ShapeError, SizeError, ToolchainError, UnsupportedError)
from .module import Module, load
from .pool import Pool
from .rows import Rows
from .streams import Streams
from .training import Trainer
from .weights import Weights

__all__ = ["ArgumentError", "BoundError", "BusyError", "ClosedError", "CompileError", "CompileWarning", "Context",
           "DTypeError", "DataError", "Dim", "Error", "Info", "LoadError", "Module", "OutOfMemoryError",
           "Pool", "ProfileEntry", "Rows", "ShapeError", "SizeError", "State", "Streams", "Tensor", "ToolchainError",
           "Trainer",
           "UnsupportedError", "Weights", "compile", "from_torch", "load"]
