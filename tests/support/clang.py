# SPDX-License-Identifier: MIT
"""The clang that tests let rnncc call: tests/support/cached_clang."""
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def cached_clang(cache=ROOT / "build" / "clang-cache"):
    """What makes rnncc call it, for the environment. All builds share the cache: what is in it, is so by its content."""
    cache.mkdir(parents=True, exist_ok=True)
    return {"RNNCC_CLANG": str(ROOT / "tests" / "support" / "cached_clang"), "CLANG_CACHE": str(cache)}
