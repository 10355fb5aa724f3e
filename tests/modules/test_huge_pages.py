# SPDX-License-Identifier: MIT
"""Weights are mapped by huge pages if the file system's cache has them so, and the memory of a large context is in huge
pages. Then memory limits the speed of reading, not the translation of addresses, and at a start few pages are mapped."""
import mmap
import re
from pathlib import Path

import numpy as np
import pytest

from support.guarded import memory_untouched
from support.model_builder import Model
from support.module import Module

MIB = 1 << 20
WEIGHTS = 16 * MIB
ARENA = 16 * MIB


def huge_bytes():
    try:
        return int(Path("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").read_text())
    except OSError:
        return 0


def mapped_by_huge_pages(path):
    """Bytes of the file that this process has mapped so."""
    total, here = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            here = line.endswith(f" {path}")
        elif here and line.startswith("FilePmdMapped:"):
            total += int(line.split()[1]) << 10
    return total


def file_system_can(folder):
    path = folder / "probe"
    with open(path, "wb", buffering=0) as file:
        file.write(b"\1" * WEIGHTS)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert sum(mapped[::mmap.PAGESIZE]) == WEIGHTS // mmap.PAGESIZE
        return mapped_by_huge_pages(path) >= WEIGHTS // 2


def test_weights_are_mapped_by_huge_pages(rnncc, tmp_path):
    if not 0 < huge_bytes() <= WEIGHTS // 4 or not file_system_can(tmp_path):
        pytest.skip("this kernel maps no files by huge pages")
    model, side = Model("wide"), 2048
    x = model.input("x", "f32", [1, side])
    model.output(model.node("MatMul", [x, model.constant(np.ones((side, side), np.float32))]))
    module = tmp_path / "wide.so"
    assert rnncc(model.write(tmp_path), "-o", module).returncode == 0
    with Module(module).context() as context:
        context.warmup()
        assert mapped_by_huge_pages(module) >= WEIGHTS // 2


def anonymous_huge_bytes():
    """Of this process."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("AnonHugePages:"))


def kernel_can():
    before = anonymous_huge_bytes()
    with mmap.mmap(-1, ARENA, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        memory.write(b"\1" * ARENA)
        return anonymous_huge_bytes() - before >= ARENA // 2


def test_a_large_context_is_in_huge_pages(rnncc, tmp_path):
    if not 0 < huge_bytes() <= ARENA // 4 or not kernel_can():
        pytest.skip("this kernel gives no huge pages")
    model, side = Model("large"), 2048
    x = model.node("Softmax", [model.input("x", "f32", [side, side])])
    model.output(model.node("Softmax", [model.node("Transpose", [x], perm=[1, 0])]))
    module = tmp_path / "large.so"
    assert rnncc(model.write(tmp_path), "-o", module).returncode == 0
    loaded = Module(module)
    assert loaded.info.arena_bytes >= ARENA
    before = anonymous_huge_bytes()
    with memory_untouched(), loaded.context() as context:
        context.warmup()
        assert anonymous_huge_bytes() - before >= ARENA // 2
