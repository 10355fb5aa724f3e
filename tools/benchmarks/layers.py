# SPDX-License-Identifier: MIT
"""The least time of a compiled convolutional network on this machine, kernel by kernel, and what each kernel takes.

A kernel computes and moves at once, at best. Computing: the multiply-adds of the algorithm that it runs by, at the
measured peak; those with padding are none. Moving: its weights as they are packed, from what holds all of the
network's; its inputs, as far as windows reach, each from the cache that holds a core's share of it; and its outputs
likewise: writing is not faster than reading, but may go on beside it.

All that an implementation of these layers, one after the other, could hide or avoid is left out: the additions of
Winograd's transforms, which CPUs may do beside multiply-adds, and what is between its transforms; activations; all
arithmetic of kernels without weights; the meeting of threads. No network can reach 100%.
"""
import math
import re
import statistics
import time
from ctypes import POINTER, byref, c_size_t
from dataclasses import dataclass

from benchmarks.cases import F32
from benchmarks.machine import bandwidth

WINOGRAD = re.compile(r" winograd(\d)x(\d)_(\d)x(\d)_\w*_c(\d+)o(\d+)_(\d+)x(\d+)$")
WEIGHTED = re.compile(r"_(?:conv|gemm)_")
PLANE = re.compile(r"_(\d+)x(\d+)(?:c\d+_px\d+)?$")
KINDS = {"direct": "direct", "winograd": "Winograd", "depthwise": "depthwise", "product": "matrix products",
         "other": "all other"}
OTHER_TENSORS = 4  # at most, of a kernel of which only its bytes are known


# What is due


@dataclass(frozen=True)
class Work:
    """Of a kernel. reads, writes: bytes of each tensor."""
    kind: str
    macs: float = 0
    weights: float = 0
    reads: tuple = ()
    writes: tuple = ()


@dataclass(frozen=True)
class Axis:
    """Of a convolution: an input of `n`, and its window."""
    n: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def out(self):
        return (self.n + self.before + self.after - self.dilation * (self.kernel - 1) - 1) // self.stride + 1

    @property
    def taps(self):
        """Places of the input that each tap of each output meets; none in the padding."""
        begins = range(-self.before, self.out * self.stride - self.before, self.stride)
        places = (begin + tap * self.dilation for begin in begins for tap in range(self.kernel))
        return [place for place in places if 0 <= place < self.n]


@dataclass(frozen=True)
class Workload:
    """A convolution. channels, kernels: of a group."""
    images: int
    channels: int
    kernels: int
    groups: int
    axes: tuple
    residual: bool

    @property
    def macs(self):
        taps = math.prod(len(axis.taps) for axis in self.axes)
        return self.images * self.groups * self.channels * self.kernels * taps

    @property
    def weights(self):
        return self.groups * self.channels * self.kernels * math.prod(axis.kernel for axis in self.axes)

    @property
    def input_bytes(self):
        met = math.prod(len(set(axis.taps)) for axis in self.axes)
        return F32 * self.images * self.groups * self.channels * met

    @property
    def output_bytes(self):
        return F32 * self.images * self.groups * self.kernels * math.prod(axis.out for axis in self.axes)


WORKLOAD = re.compile(r"n(\d+)(?:of\d+)?c(\d+)k(\d+)(?:g(\d+))?((?:_[dhw]\d+k\d+s\d+(?:d\d+)?p\d+\.\d+)*)(_.*)?")
AXIS = re.compile(r"_[dhw](\d+)k(\d+)s(\d+)(?:d(\d+))?p(\d+)\.(\d+)")


def workload(text):
    """Of a record's text, such as n1c64k64_h56k3s1p1.1_w56k3s1p1.1_in16_bias_residual_then.Relu."""
    images, channels, kernels, groups, axes, rest = WORKLOAD.fullmatch(text).groups()
    return Workload(int(images), int(channels), int(kernels), int(groups or 1),
                    tuple(Axis(*(int(number or 1) for number in found)) for found in AXIS.findall(axes)),
                    "_residual" in (rest or ""))


def workloads(explained):
    """The name of each convolution's node -> its workload, of what --explain=conv -v prints."""
    found = re.findall(r"^(\S+): [\d.]+ MFLOP: (.*)$", explained, re.MULTILINE)
    return {node: workload(text) for text, nodes in found for node in nodes.split(", ")}


def winograd(found, images):
    """(multiply-adds, packed weights) by the name of a kernel. Tiles reach beyond the image."""
    tile_h, tile_w, taps_h, taps_w, channels, kernels, height, width = map(int, found.groups())
    weights = (tile_h + taps_h - 1) * (tile_w + taps_w - 1) * channels * kernels
    return weights * images * math.ceil(height / tile_h) * math.ceil(width / tile_w), weights


def convolution_work(kernel, layer):
    reads = (layer.input_bytes, layer.output_bytes) if layer.residual else (layer.input_bytes,)
    found = WINOGRAD.search(kernel)
    if not found:
        kind = "depthwise" if "_conv_depthwise" in kernel else "direct"
        return Work(kind, layer.macs, layer.weights, reads, (layer.output_bytes,))
    return Work("winograd", *winograd(found, layer.images), tuple(size / layer.groups for size in reads),
                (layer.output_bytes / layer.groups,))  # a kernel for each group


def work(entry, layers, images):
    """Of an entry of a profile. layers: of workloads()."""
    kernel, node, flops, size = (entry[key] for key in ("kernel", "node", "flops", "bytes"))
    if "_conv_" in kernel and node in layers:
        return convolution_work(kernel, layers[node])
    tensors = (size / OTHER_TENSORS,) * (OTHER_TENSORS // 2)
    if not WEIGHTED.search(kernel):
        return Work("other", reads=tensors, writes=tensors)
    plane = PLANE.search(kernel)
    uses = images * (int(plane[1]) * int(plane[2]) if plane else 1)
    return Work("product" if "_gemm_" in kernel else "direct", flops / 2, flops / 2 / uses)


# How long that takes at least


def moving(core, size, span):
    """Seconds of all cores for `size` bytes of what takes `span` bytes."""
    cores = core["threads"]
    return size / (cores * bandwidth(core, span / cores) * 1e9) if size else 0


def seconds(each, core, all_weights):
    """(computing, reading weights, moving tensors) of one kernel."""
    peak = core["threads"] * core["gflops"] * 1e9 / 2
    tensors = max(sum(moving(core, size, size) for size in side) for side in (each.reads, each.writes))
    return each.macs / peak, moving(core, F32 * each.weights, all_weights), tensors


def limits(works, described):
    """Seconds on all cores of all multiply-adds, of reading all weights, of moving all tensors, and of the longest of
    these kernel by kernel, which by_kind shares out."""
    core = described["cores"][-1]
    all_weights = F32 * sum(each.weights for each in works)
    found = [seconds(each, core, all_weights) for each in works]
    least = {kind: sum(max(parts) for each, parts in zip(works, found) if each.kind == kind) for kind in KINDS}
    computing, reading, tensors = map(sum, zip(*found))
    return {"computing_seconds": computing, "reading_seconds": reading, "moving_seconds": tensors,
            "least_seconds": sum(least.values()), "by_kind": least}


# What it takes

PROFILED_RUNS, PROFILED_SECONDS = (7, 50), 0.5  # fewest and most, about how long


def profile(path, feeds, threads):
    """Of each kernel of a module, in their order: its names, flops and bytes, and the median of its seconds over some
    runs."""
    from support.module import Module
    with Module(path) as module, module.context(threads) as context:
        run = context.prepared(feeds)
        run()
        taken, end = [], time.perf_counter() + PROFILED_SECONDS
        while len(taken) < PROFILED_RUNS[0] or (len(taken) < PROFILED_RUNS[1] and time.perf_counter() < end):
            read_profile(context, on=True)
            run()
            taken.append([entry.nanoseconds * 1e-9 for entry in read_profile(context, on=False)])
        return [{"kernel": entry.kernel.decode(), "node": entry.node.decode(), "flops": entry.flops,
                 "bytes": entry.bytes, "seconds": statistics.median(each)}
                for entry, each in zip(read_profile(context, on=False), zip(*taken))]


def read_profile(context, on):
    """Switched on, it begins anew."""
    from support.module import ProfileEntry
    entries, count = POINTER(ProfileEntry)(), c_size_t()
    context.check(context.api.profile(context.handle, on, byref(entries), byref(count)))
    return entries[:count.value]


def facts(entries, explained, images, described):
    """limits(), and what the kernels of each kind take."""
    layers = workloads(explained)
    works = [work(entry, layers, images) for entry in entries]
    taken = {kind: sum(entry["seconds"] for entry, each in zip(entries, works) if each.kind == kind) for kind in KINDS}
    return {**limits(works, described), "taken_by_kind": taken}
