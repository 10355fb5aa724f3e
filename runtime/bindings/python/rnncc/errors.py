# SPDX-License-Identifier: MIT
"""What can go wrong: a class for each status of rnncc.h, and for what this package itself refuses. The words are the
module's, or the compiler's."""
from __future__ import annotations

from typing import Dict, Type


class Error(Exception):
    """All of them."""

    status = ""


class ArgumentError(Error, ValueError):
    """Unknown names, wrong counts, buffers that overlap, tensors of another device."""

    status = "argument"


class ShapeError(Error, ValueError):
    """A rank, a fixed dimension, or two inputs that disagree on a named one."""

    status = "shape"


class BoundError(Error, ValueError):
    """A named dimension outside of what the model was compiled for."""

    status = "bound"


class DTypeError(Error, TypeError):
    """Another element type than the model's: nothing is converted."""

    status = "dtype"


class SizeError(Error, ValueError):
    """A buffer that is too small for its shape."""

    status = "size"


class DataError(Error, ValueError):
    """An index, a length or a divisor in the data is out of range."""

    status = "value"


class OutOfMemoryError(Error, MemoryError):
    """The system has no memory or no thread to give."""

    status = "memory"


class UnsupportedError(Error):
    """This CPU or this build of the module lacks it."""

    status = "unsupported"


class LoadError(Error, OSError):
    """No such file, or no module for this machine."""

    status = "load"


class BusyError(Error, RuntimeError):
    """Another thread uses the context."""

    status = "busy"


class ClosedError(Error, RuntimeError):
    """It is closed."""

    status = "closed"


class CompileError(Error, ValueError):
    """rnncc refuses the model; the text is what it printed."""

    status = "compile"


class ToolchainError(Error, OSError):
    """rnncc, or the LLVM that it needs, is missing."""

    status = "toolchain"


BY_STATUS: Dict[int, Type[Error]] = dict(enumerate(
    (ArgumentError, ShapeError, BoundError, DTypeError, SizeError, DataError, OutOfMemoryError, UnsupportedError), 1))


def of_status(status: int, message: str) -> Error:
    return BY_STATUS.get(status, Error)(message)
