# SPDX-License-Identifier: MIT
"""The clang that tests let rnncc call: the build's tests/support/cached_clang."""
import functools
import os
import re
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("RNNCC_BUILD", ROOT / "build"))
MAX_BYTES = 1 << 30
# In place of -O3, where a test is about what C is emitted and not about what clang makes of it: a third of the time, of
# large units less. Not -O0, whose frames would not fit the stack of a worker. The code generator's own passes that only make
# code faster would take half of what is left, the instruction scheduler alone a quarter, and the allocator of registers
# for optimised code an eighth: the other's frames are a twentieth larger.
IDLE_PASSES = ("-enable-misched=false", "-disable-post-ra", "-disable-cgp", "-disable-machine-licm", "-disable-machine-cse",
               "-disable-machine-dce", "-disable-peephole", "-disable-copyprop", "-disable-block-placement", "-disable-branch-fold",
               "-disable-early-taildup", "-disable-tail-duplicate", "-disable-early-ifcvt", "-disable-x86-domain-reassignment",
               "-optimize-regalloc=false", "-disable-lsr", "-disable-machine-sink", "-disable-postra-machine-sink", "-disable-mergeicmps",
               "-disable-constant-hoisting", "-disable-partial-libcall-inlining", "-enable-shrink-wrap=false",
               "-x86-cmov-converter=false", "-fixup-byte-word-insts=0", "-disable-x86-lea-opt")
WITHOUT_PASSES = " ".join(["-O1 -Xclang -disable-llvm-passes -mllvm -fast-isel", *(f"-mllvm {option}" for option in IDLE_PASSES)])


@functools.cache
def clang_name():
    """The clang that the build's rnncc calls."""
    told = subprocess.run([BUILD / "compiler" / "rnncc", "--help=all"], capture_output=True, text=True, check=True).stdout
    return re.search(r"the compiler to call; default: (\S+)", told)[1]


@functools.cache
def clang_version():
    return subprocess.run([clang_name(), "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def cached_clang(cache=ROOT / "build" / "clang-cache"):
    """What makes rnncc call it, for the environment. All builds share the cache: what is in it, is so by its content."""
    cache.mkdir(parents=True, exist_ok=True)
    return {"RNNCC_CLANG": str(BUILD / "tests" / "support" / "cached_clang"), "RNNCC_CLANG_CACHE": str(cache),
            "RNNCC_CLANG_VERSION": clang_version()}


def used(path):
    """When, and how large it is; None: another session has just removed or renamed it."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_mtime, stat.st_size


def prune(cache, max_bytes=MAX_BYTES):
    """Removes the files that were used longest ago, until the others have at most that many bytes. What was used in the
    last hour stays: another session may have found it."""
    files = {path: stat for path in cache.iterdir() if (stat := used(path))}
    for path, (time_used, size) in sorted(files.items(), key=lambda file: file[1], reverse=True):
        max_bytes -= size
        if max_bytes < 0 and time_used < time.time() - 3600:
            path.unlink(missing_ok=True)
