# SPDX-License-Identifier: MIT
"""Compiles models by the program rnncc."""
from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import warnings
import weakref
from numbers import Integral
from pathlib import Path
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import programs
from ..errors import CompileError, ToolchainError
from ..module import Module, load
from ..native import Path as AnyPath

ENVIRONMENT = 5  # rnncc's exit status where a program or a file that it needs is missing
Bounds = Union[int, str, Tuple[int, ...], Sequence[int]]
Models = Union[AnyPath, Any, Mapping[str, Any]]


class CompileWarning(UserWarning):
    """What rnncc remarks on a model that it compiles."""


def _range(bounds: Bounds) -> str:
    if isinstance(bounds, (str, int, Integral)):  # NumPy's integers are Integral
        return str(bounds)
    if not hasattr(bounds, "__len__") or not 1 <= len(bounds) <= 3:
        raise CompileError(f"dims: expected N, (min, max) or (min, opt, max), found {bounds!r}")
    return "..".join(str(extent) for extent in bounds)


def _words(dims: Optional[Mapping[str, Bounds]], states: Optional[Mapping[str, str]],
           freeze: Optional[Mapping[str, Any]], target: Optional[str], options: Sequence[str]) -> Iterator[str]:
    for name, bounds in (dims or {}).items():
        yield from ("--dim", f"{name}={_range(bounds)}")
    for entering, leaving in (states or {}).items():
        yield from ("--state", f"{entering}={leaving}")
    for name, value in (freeze or {}).items():
        yield from ("--freeze", f"{name}={json.dumps(value.tolist() if hasattr(value, 'tolist') else value)}")
    if target is not None:
        yield f"--target={target}"
    if isinstance(options, str):
        raise CompileError(f"options: expected a list of words, found {options!r}")
    yield from (os.fspath(word) for word in options)


def _file_of(model: Any, folder: Path, name: str) -> str:
    """A path, which is no option; of what `onnx` reads, a file."""
    if isinstance(model, (str, os.PathLike)):
        named = os.fspath(model)
        return f"./{named}" if named.startswith("-") else named
    if not hasattr(model, "SerializeToString"):
        raise CompileError(f"expected a path or an onnx.ModelProto, found {type(model).__name__}")
    path = folder / f"{name}.onnx"
    path.write_bytes(model.SerializeToString())
    return str(path)


def _models(models: Models, folder: Path) -> List[str]:
    if not isinstance(models, Mapping):
        return [_file_of(models, folder, "model")]
    for name in models:
        if not re.fullmatch(r"\w+", name):
            raise CompileError(f"expected a network's name of letters, digits and _, found {name!r}")
    return ["bundle", *(f"{name}={_file_of(model, folder, name)}" for name, model in models.items())]


def _remove(folder: Path, owner: int) -> None:
    """A fork has the finalizers of its parent, which still has the folder."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def compile(model: Models, output: Optional[AnyPath] = None, *, dims: Optional[Mapping[str, Bounds]] = None,
            states: Optional[Mapping[str, str]] = None, freeze: Optional[Mapping[str, Any]] = None,
            target: Optional[str] = None, options: Sequence[str] = (), **loading: Any) -> Module:
    """Compiles a model, and loads the module.

        m = rnncc.compile("net.onnx", dims={"T": (1, 50, 400)}, states={"h0": "hN"})

    model: a file (.onnx, .json), an onnx.ModelProto, or several networks by their names. output: where the module is
    kept; by default it goes with the last that uses it. dims: name -> N, (min, max) or (min, opt, max). states: input ->
    output that it carries. freeze: inputs that become constants. options: more words for rnncc. The rest is for load()."""
    folder = Path(tempfile.mkdtemp(prefix="rnncc-"))
    try:
        path = os.fspath(output) if output is not None else str(folder / "model.so")
        done = programs.run("rnncc", [*_models(model, folder), "-o", path,
                                      *_words(dims, states, freeze, target, options)])
        told = done.stderr.strip()
        if done.returncode:
            kind = ToolchainError if done.returncode in (ENVIRONMENT, 127) else CompileError
            raise kind(told or f"rnncc ended with status {done.returncode}")
        if told:
            warnings.warn(told, CompileWarning, stacklevel=2)
        module = load(path, **loading)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if output is None:
        weakref.finalize(module._library, _remove, folder, os.getpid())
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return module
