# SPDX-License-Identifier: MIT
"""The programs rnncc and rnnrun: those beside this package, where its wheel has them, or on the PATH."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import List, NoReturn

from ..errors import ToolchainError

BESIDE = Path(__file__).resolve().parents[1] / "bin"
OLDER = "this rnncc was built on a machine with a newer libc; tools/wheel makes a wheel for this one from the sources"


def find(name: str) -> str:
    """$RNNCC or $RNNRUN, else the wheel's, else the one on the PATH."""
    variable = name.upper()
    given = os.environ.get(variable)
    if given:
        if not os.access(given, os.X_OK):
            raise ToolchainError(f"${variable}: expected a program, found {given}")
        return given
    beside = BESIDE / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        raise ToolchainError(f"expected the program {name}, found none: ${variable} is not set, {beside} is not there, and "
                             "the PATH has none. The wheel that tools/wheel makes has it")
    return found


def run(name: str, words: List[str]) -> "subprocess.CompletedProcess[str]":
    try:
        done = subprocess.run([find(name), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    except OSError as error:
        raise ToolchainError(f"cannot run {name}: {error}") from error
    if done.returncode and "version `GLIBC_" in done.stderr:
        raise ToolchainError(f"{done.stderr.strip()}\n{OLDER}")
    return done


def _become(name: str) -> NoReturn:
    """What pip makes a command of: the wheel's program."""
    try:
        process = subprocess.Popen([str(BESIDE / name), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{name}: {error}")
    status = None
    while status is None:
        try:
            status = process.wait()
        except KeyboardInterrupt:  # the program has got it, too, and ends as it likes
            pass
    sys.exit(status if status >= 0 else 128 - status)


def rnncc() -> NoReturn:
    _become("rnncc")


def rnnrun() -> NoReturn:
    _become("rnnrun")
