# SPDX-License-Identifier: MIT
"""The clang that tests let rnncc call: tests/support/cached_clang."""
import functools
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAX_BYTES = 1 << 30
# In place of -O3, where a test is about what C is emitted and not about what clang makes of it: a third of the time, of
# large units less. Not -O0, whose frames would not fit the stack of a worker.
WITHOUT_PASSES = "-O1 -Xclang -disable-llvm-passes -mllvm -fast-isel"


@functools.cache
def clang_version():
    return subprocess.run(["clang-19", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def cached_clang(cache=ROOT / "build" / "clang-cache"):
    """What makes rnncc call it, for the environment. All builds share the cache: what is in it, is so by its content."""
    cache.mkdir(parents=True, exist_ok=True)
    return {"RNNCC_CLANG": str(ROOT / "tests" / "support" / "cached_clang"), "CLANG_CACHE": str(cache),
            "CLANG_VERSION": clang_version()}


def prune(cache, max_bytes=MAX_BYTES):
    """Removes the files that were used longest ago, until the others have at most that many bytes."""
    files = [(path.stat(), path) for path in cache.iterdir()]
    for stat, path in sorted(files, key=lambda file: file[0].st_mtime, reverse=True):
        max_bytes -= stat.st_size
        if max_bytes < 0:
            path.unlink(missing_ok=True)
