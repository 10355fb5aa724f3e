# SPDX-License-Identifier: MIT
"""Modules of layers, compiled once for a user: files in a folder of the user's.

    which folder   `cache` of compile_rnn(), else $RNNCC_CACHE, else rnncc/torch in $XDG_CACHE_HOME or in ~/.cache
    a file's name  is the hash of all that the module depends on: the model, bounds, options, the program rnncc and
                   the files of its own that it reads, the CPU
    when it lasts  a file appears when it is complete, and is never changed; the KEPT last used stay
    whose it is    a module is code that runs: a folder of another user, or that others may write to, is refused

Any file may be removed at any time."""
from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shutil
import tempfile
import time
from functools import lru_cache
from pathlib import Path
from typing import List, Optional, Sequence

from ..compiling import programs
from ..compiling.compiler import compile as compile_model
from ..errors import ArgumentError, LoadError
from ..native import Library
from ..native import Path as AnyPath
from .graph import Stack, document, key, zeros

KEPT = 256
DATA, READ = ("templates", "runtime", "schedules"), (".c", ".h", ".def", ".jsonl")  # of rnncc's own files
WEIGHTS = "layer.safetensors"
ROOM = "new-"  # begins the name of a folder that a module is made in
ABANDONED = 86400.0  # seconds after which nothing compiles in a folder any more


def folder_of(given: Optional[AnyPath]) -> Path:
    """It is there, and the user's own."""
    if given is None:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        given = os.environ.get("RNNCC_CACHE") or os.path.join(base, "rnncc", "torch")
    folder = Path(given)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise ArgumentError(f"{folder}: cannot keep compiled layers there ({error.strerror}); `cache` or $RNNCC_CACHE names "
                            "another folder") from error
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise ArgumentError(f"{folder}: expected a folder of this user's that no other may write to, as modules in it are run "
                            f"(chmod go-w); found mode {found.st_mode & 0o777:o} of user {found.st_uid}")
    return folder


@lru_cache(maxsize=None)
def _cpu() -> str:
    """What rnncc's native target depends on."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"^(flags|Features|isa)\s*:.*$", text, re.MULTILINE)
    return f"{platform.machine()} {found[0] if found else ''} {len(os.sched_getaffinity(0))}"


@lru_cache(maxsize=None)
def _program(path: str, _changed: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _data_of(program: Path) -> Optional[Path]:
    """The folder that rnncc reads kernels from: $RNNCC_DATA, the one beside it, or the sources that it was built in."""
    given = os.environ.get("RNNCC_DATA")
    places = [Path(given)] if given else [program.parents[1] / "share" / "rnncc", *program.parents]
    return next((it for it in places if (it / "templates").is_dir() and (it / "runtime").is_dir()), None)


def _compiler() -> str:
    program = Path(os.path.realpath(programs.find("rnncc")))
    found = hashlib.sha256(_program(str(program), program.stat().st_mtime_ns).encode())
    data = _data_of(program)
    parts = [data / part for part in DATA] if data else []
    for path in sorted(it for part in parts for it in part.rglob("*.*")):
        if path.suffix in READ and path.is_file():
            found.update(f"{path.name} {path.stat().st_size} ".encode() + path.read_bytes())
    return found.hexdigest()


def _drop_old(folder: Path) -> None:
    used = []
    for path in folder.glob("*.so"):
        with contextlib.suppress(OSError):  # another process has removed it
            used.append((path.stat().st_mtime, path))
    for _, path in sorted(used)[:-KEPT]:
        path.unlink(missing_ok=True)
    for room in folder.glob(f"{ROOM}*"):  # of a process that was killed
        with contextlib.suppress(OSError):
            if time.time() - room.stat().st_mtime > ABANDONED:
                shutil.rmtree(room, ignore_errors=True)


def _compile(stack: Stack, options: List[str], target: Path) -> None:
    room = Path(tempfile.mkdtemp(prefix=ROOM, dir=target.parent))
    try:
        weights = zeros(stack)
        (room / WEIGHTS).write_bytes(weights)
        (room / "layer.json").write_text(document(stack, WEIGHTS, hashlib.sha256(weights).hexdigest()))
        compile_model(room / "layer.json", room / "layer.so", options=options, threads=1).close()
        os.replace(room / "layer.so", target)
    finally:
        shutil.rmtree(room, ignore_errors=True)


def module_of(stack: Stack, options: Sequence[str], cache: Optional[AnyPath]) -> str:
    """The path of the compiled module."""
    folder = folder_of(cache)
    words = list(options)
    path = folder / f"{key(stack, document(stack, WEIGHTS, ''), words, _compiler(), _cpu())}.so"
    if path.exists() and _loads(path):
        with contextlib.suppress(OSError):  # a file system that is read only
            os.utime(path)
        return str(path)
    _compile(stack, words, path)
    _drop_old(folder)
    return str(path)


def _loads(path: Path) -> bool:
    """A damaged file is none."""
    try:
        Library(path)
    except LoadError:
        return False
    return True
