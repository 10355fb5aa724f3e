# SPDX-License-Identifier: MIT
"""The least time of a compiled convolutional network on this machine, layer by layer: the multiply-adds of the
algorithm that a layer runs by, at the measured peak, or the reading of its weights, whichever takes longer.

A module's profile says what each kernel does: its direct multiply-adds, and in its schedule's name Winograd's tile and
how many pixels share each weight. Activations are taken to stay in caches, and transforms, pooling and the meeting of
threads to cost nothing: no network can reach 100%.
"""
import math
import re
from ctypes import POINTER, byref, c_size_t

from benchmarks.cases import F32
from benchmarks.machine import bandwidth

WINOGRAD = re.compile(r" winograd(\d)x(\d)_(\d)x(\d)_\w*_c(\d+)o(\d+)_(\d+)x(\d+)$")
WEIGHTED = re.compile(r"_(?:conv|gemm)_")
PLANE = re.compile(r"_(\d+)x(\d+)(?:c\d+_px\d+)?$")


def work(kernel, flops, images):
    """(multiply-adds, weights) of a layer by its kernel's name: (0, 0) where it has no weights."""
    if not WEIGHTED.search(kernel):
        return 0, 0
    if found := WINOGRAD.search(kernel):
        tile_h, tile_w, taps_h, taps_w, channels, kernels, height, width = map(int, found.groups())
        weights = (tile_h + taps_h - 1) * (tile_w + taps_w - 1) * channels * kernels
        return weights * images * math.ceil(height / tile_h) * math.ceil(width / tile_w), weights
    plane = PLANE.search(kernel)
    uses = images * (int(plane[1]) * int(plane[2]) if plane else 1)
    return flops / 2, flops / 2 / uses


def limits(works, described):
    """Seconds of all multiply-adds, of reading all weights, and of the longer of both layer by layer, on all cores.
    works: (multiply-adds, weights) of each layer."""
    core = described["cores"][-1]
    n, total = core["threads"], F32 * sum(weights for _, weights in works)
    peak, read = n * core["gflops"] * 1e9 / 2, n * bandwidth(core, total / n) * 1e9
    computing, reading = [macs / peak for macs, _ in works], [F32 * weights / read for _, weights in works]
    return {"computing_seconds": sum(computing), "reading_seconds": sum(reading),
            "least_seconds": sum(map(max, computing, reading))}


def works_of(path, images):
    """Of each layer of a module; of `images` images."""
    from support.module import Module, ProfileEntry
    with Module(path) as module, module.context() as context:
        entries, count = POINTER(ProfileEntry)(), c_size_t()
        context.check(context.api.profile(context.handle, 1, byref(entries), byref(count)))
        return [work(entry.kernel.decode(), entry.flops, images) for entry in entries[:count.value]]
