# SPDX-License-Identifier: MIT
"""rnncc as it is installed, in a folder that it was moved to, and programs that run without what the tests tell rnncc."""
import fcntl
import os
import shutil
import subprocess

import pytest

from support.clang import BUILD


def done(*words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **more)


def output(*words, **more):
    it = done(*words, **more)
    assert it.returncode == 0, it.stdout + it.stderr
    return it.stdout


def own_environment(**more):
    """Without what the tests tell rnncc, and with an empty home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RNNCC_") and name not in ("CC", "CXX")}
    return {**kept, **more}


def install(destination):
    """Meson writes a list of what it installs into the build's folder, and removes by it: one at a time."""
    output("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", destination)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("install")
    with open(BUILD / "install.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        install(folder / "as made")
    (installed,) = [path.parent.parent for path in (folder / "as made").rglob("bin/rnncc")]
    shutil.move(installed, folder / "moved")
    return folder / "moved"
