# SPDX-License-Identifier: MIT
"""The minimum time of a compiled convolutional network on this machine, kernel by kernel, and each kernel's measured
time.

At best, a kernel computes and moves at once. Computing: the multiply-adds of its algorithm, at the measured peak; those
with padding do not count. Moving: its packed weights, from the cache or memory that holds all of the network's; its
inputs, as far as windows reach, each from the cache that holds a core's share of it; and its outputs likewise: writing
is not faster than reading, but may overlap with it.

Winograd's algorithm has three steps, each of which needs the results of the one before: the inputs' transform, which
writes its points to the cache that holds a block of them; the products; and the outputs' transform, which reads their
points.

Costs that an implementation of these layers, one after the other, could hide or avoid are left out: the arithmetic of
Winograd's transforms, which CPUs may do beside loads and stores; activations; all arithmetic of kernels without
weights; barriers. No network can reach 100%.
"""
import math
import re
import statistics
import time
from dataclasses import dataclass

from benchmarks.cases import F32
from benchmarks.machine import bandwidth

WINOGRAD = re.compile(r" winograd(\d)x(\d)_(\d)x(\d)_oc\d+t\d+b(\d+)(_groups)?_c(\d+)o(\d+)_(\d+)x(\d+)"
                      r"(_max2x2)?$")
WEIGHTED = re.compile(r"_(?:conv|gemm)_")
PLANE = re.compile(r"_(\d+)x(\d+)(?:c\d+_px\d+)?$")
KINDS = {"direct": "direct", "winograd": "Winograd", "depthwise": "depthwise", "product": "matrix products",
         "other": "all other"}
OTHER_TENSORS = 4  # maximum, of a kernel of which only the bytes are known


# The work of a kernel


@dataclass(frozen=True)
class Points:
    """The points that a transform of Winograd's writes or reads. span: bytes of them that a core uses at once. by_each:
    each core computes all of them for itself."""
    size: float
    span: float
    by_each: bool = False


@dataclass(frozen=True)
class Work:
    """The work of a kernel, or of one of its steps. reads, writes: bytes of each tensor."""
    kind: str
    macs: float = 0
    weights: float = 0
    reads: tuple = ()
    writes: tuple = ()
    points: Points | None = None


@dataclass(frozen=True)
class Axis:
    """An axis of a convolution: an input of `n` elements, and its window."""
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
        """Pairs of an output and a tap that meet an element of the input, not padding."""
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
    """The workload of a record's text, such as n1c64k64_h56k3s1p1.1_w56k3s1p1.1_in16_bias_residual_then.Relu."""
    images, channels, kernels, groups, axes, rest = WORKLOAD.fullmatch(text).groups()
    return Workload(int(images), int(channels), int(kernels), int(groups or 1),
                    tuple(Axis(*(int(number or 1) for number in found)) for found in AXIS.findall(axes)),
                    "_residual" in (rest or ""))


def workloads(explained):
    """The name of each convolution's node -> its workload, of what --explain=conv -v prints."""
    found = re.findall(r"^(\S+): [\d.]+ MFLOP: (.*)$", explained, re.MULTILINE)
    return {node: workload(text) for text, nodes in found for node in nodes.split(", ")}


def winograd(found, layer):
    """The works of a kernel of this name, of which there is one for each of the layer's groups."""
    by_each, pooled = bool(found[6]), bool(found[11])
    tile_h, tile_w, taps_h, taps_w, block, channels, kernels, height, width = (
        int(number) for k, number in enumerate(found.groups(), 1) if k not in (6, 11))
    tiles = layer.images * math.ceil(height / tile_h) * math.ceil(width / tile_w)  # these reach beyond the image
    points = (tile_h + taps_h - 1) * (tile_w + taps_w - 1)
    inputs = Points(F32 * points * tiles * channels, F32 * points * min(block, tiles) * channels, by_each)
    outputs = Points(F32 * points * tiles * kernels, 0)
    output = layer.output_bytes / layer.groups
    written = output * (height // 2 * (width // 2)) / (height * width) if pooled else output
    residual = (output,) * layer.residual
    return [Work("winograd", reads=(layer.input_bytes / layer.groups,), points=inputs),
            Work("winograd", points * tiles * channels * kernels, points * channels * kernels),
            Work("winograd", reads=residual, writes=(written,), points=outputs)]


def convolution_works(kernel, layer):
    found = WINOGRAD.search(kernel)
    if found:
        return winograd(found, layer)
    reads = (layer.input_bytes, layer.output_bytes) if layer.residual else (layer.input_bytes,)
    kind = "depthwise" if "_conv_depthwise" in kernel else "direct"
    return [Work(kind, layer.macs, layer.weights, reads, (layer.output_bytes,))]


def works_of(entry, layers, images):
    """The works of a profile's entry, one for each step of its kernel. layers: of workloads()."""
    kernel, node, flops, size = (entry[key] for key in ("kernel", "node", "flops", "bytes"))
    if "_conv_" in kernel and node in layers:
        return convolution_works(kernel, layers[node])
    tensors = (size / OTHER_TENSORS,) * (OTHER_TENSORS // 2)
    if not WEIGHTED.search(kernel):
        return [Work("other", reads=tensors, writes=tensors)]
    plane = PLANE.search(kernel)
    uses = images * (int(plane[1]) * int(plane[2]) if plane else 1)
    return [Work("product" if "_gemm_" in kernel else "direct", flops / 2, flops / 2 / uses)]


# The minimum time


def moving(core, size, span):
    """Seconds of all cores for `size` bytes of what takes `span` bytes."""
    cores = core["threads"]
    return size / (cores * bandwidth(core, span / cores) * 1e9) if size else 0


def transforming(core, points):
    """Seconds to write or to read them."""
    size = points.size * (core["threads"] if points.by_each else 1)
    return moving(core, size, core["threads"] * max(points.span, 1))


def seconds(each, core, all_weights):
    """(computing, reading weights, moving tensors and points) of one work."""
    peak = core["threads"] * core["gflops"] * 1e9 / 2
    moved = [sum(moving(core, size, size) for size in side) for side in (each.reads, each.writes)]
    if each.points:
        moved.append(transforming(core, each.points))
    return each.macs / peak, moving(core, F32 * each.weights, all_weights), max(moved)


def limits(works, core):
    """Seconds on all cores, each of which does what `core` does, of all multiply-adds, of reading all weights, of
    moving all tensors, and of the longest of these work by work, which by_kind shares out."""
    all_weights = F32 * sum(each.weights for each in works)
    found = [seconds(each, core, all_weights) for each in works]
    least = {kind: sum(max(parts) for each, parts in zip(works, found) if each.kind == kind) for kind in KINDS}
    computing, reading, tensors = map(sum, zip(*found))
    return {"computing_seconds": computing, "reading_seconds": reading, "moving_seconds": tensors,
            "least_seconds": sum(least.values()), "by_kind": least}


# The measured time

PROFILED_RUNS, PROFILED_SECONDS = (7, 50), 0.5  # minimum and maximum runs; about how long


def profile(path, feeds, threads):
    """For each kernel of a module, in their order: its names, flops and bytes, and the median of its seconds over some
    runs."""
    from support.module import Module
    with Module(path) as module, module.context(threads) as context:
        run = context.prepared(feeds)
        run()
        taken, end = [], time.perf_counter() + PROFILED_SECONDS
        while len(taken) < PROFILED_RUNS[0] or (len(taken) < PROFILED_RUNS[1] and time.perf_counter() < end):
            context.profiled(on=True)
            run()
            taken.append([entry.seconds for entry in context.profiled(on=False)])
        return [{"kernel": entry.kernel, "node": entry.node, "flops": entry.flops,
                 "bytes": entry.bytes, "seconds": statistics.median(each)}
                for entry, each in zip(context.profiled(on=False), zip(*taken))]


def facts(entries, explained, images, core):
    """limits(), and what the kernels of each kind take."""
    layers = workloads(explained)
    works = [works_of(entry, layers, images) for entry in entries]
    taken = {kind: sum(entry["seconds"] for entry, (first, *_) in zip(entries, works) if first.kind == kind)
             for kind in KINDS}
    return {**limits([each for found in works for each in found], core), "taken_by_kind": taken}
