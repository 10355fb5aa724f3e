# SPDX-License-Identifier: MIT
"""The style rules that a machine can check: one case a file and rule."""
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("compiler", "models", "runtime", "templates", "tests", "tools")


def sources(rooms, patterns):
    found = (path for room in rooms for pattern in patterns for path in (ROOT / room).rglob(pattern))
    return sorted(str(path.relative_to(ROOT)) for path in found)


def check(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", sources(ROOMS, ["*.c", "*.h"]))
def test_clang_format_would_change_nothing(path):
    check("clang-format-19", "--dry-run", "-Werror", path)


@pytest.mark.parametrize("path", sources(ROOMS, ["*.c", "*.h"]))
def test_first_line_names_the_licence(path):
    assert (ROOT / path).read_text().startswith("/* SPDX-License-Identifier: MIT */\n")


@pytest.mark.parametrize("path", sources(["compiler", "runtime"], ["*.c"]))
def test_clang_tidy_finds_nothing(path):
    check("clang-tidy-19", "-p", "build", "--quiet", path)
