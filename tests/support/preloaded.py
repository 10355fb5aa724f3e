# SPDX-License-Identifier: MIT
"""Shared objects that take the place of libc's functions in a program."""
import subprocess
from pathlib import Path

import pytest
from conftest import sanitized

SOURCES = Path(__file__).parents[1] / "robustness"


def preloaded(name, folder):
    """The shared object of robustness/NAME.c, to be loaded before a program's libraries."""
    if sanitized():
        pytest.skip("this build has a sanitizer, which must be loaded first")
    library = folder / f"{name}.so"
    subprocess.run(["clang-19", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-D_GNU_SOURCE",
                    SOURCES / f"{name}.c", "-o", library], check=True)
    return str(library)
