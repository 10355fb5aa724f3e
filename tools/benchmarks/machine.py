# SPDX-License-Identifier: MIT
"""This machine, the peak speed of its cores with the vectors of an instruction set, and the minimum time that a case
takes at that speed.

A recurrent layer reads its recurrent weights once in each step, whatever computes it: at batch 1 that is the limit, at
the speed of the cache that holds a core's share. With a batch the multiply-adds may take longer. The input's part is
one matrix product for all steps. Barriers, activations and outputs are left out: no case can reach 100%.
"""
import ctypes
import functools
import json
import math
import os
import platform
import statistics
import subprocess
import time
from pathlib import Path

from benchmarks import isas
from benchmarks.cases import F32
from benchmarks.environment import BUILD, Missing

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def cpu_name():
    """Such as "AMD EPYC (family 26, model 2)": virtual machines shorten the names of different cores to one."""
    first = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0].splitlines()
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first)}
    if "model name" not in fields:
        return platform.machine()
    numbers = [f"{word} {fields[field]}" for word, field in (("family", "cpu family"), ("model", "model")) if field in fields]
    return f"{fields['model name']} ({', '.join(numbers)})" if numbers else fields["model name"]


def has_flag(name):
    """Whether the kernel lists it of the CPU."""
    return any(name in line.split() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))


def caches():
    """Such as ["L1d 32K", "L2 1024K", "L3 32768K"]: the size of one cache of each level."""
    found = []
    for index in sorted(CACHES.glob("index*")):
        level, kind, size = ((index / field).read_text().strip() for field in ("level", "type", "size"))
        if kind != "Instruction":
            found.append(f"L{level}{'d' if kind == 'Data' else ''} {size}")
    return found


MEASUREMENTS = 3  # a virtual machine's CPUs may share a core for some seconds, which halves what they can do


def measured(counts, under, isa):
    """The output of the measuring program."""
    program = BUILD / "tools" / "benchmarks" / "cache_bandwidth"
    threads = sorted({1, max(counts)})
    done = subprocess.run([*under, program, isa, *map(str, threads)], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Missing(f"{program} ended with status {done.returncode}")
    return json.loads(done.stdout)


def describe(counts, under, isa):
    """`cores`: the speed of a core if one works, and if the maximum number works at once; of some measurements, the one
    in which all together were fastest. `under`: words of a command under which the measuring program runs. `isa`: of
    isas.ISAS."""
    speeds = isas.speeds_of(isa)
    best = max((measured(counts, under, speeds) for _ in range(MEASUREMENTS)), key=lambda found: found["cores"][-1]["gflops"])
    return {"cpu": cpu_name(), "caches": caches(), "cpus": len(os.sched_getaffinity(0)),
            "system": platform.platform(), "best_isa": best_isa(), **best, "isa": isa}


MAX_BYTES = 64 << 20  # bytes a core that cache_bandwidth reads


@functools.cache
def speeds():
    """tools/speed/speed.h."""
    library = ctypes.CDLL(str(BUILD / "tools" / "benchmarks" / "speed.so"))
    library.speed_best_isa.restype = ctypes.c_char_p
    for function, more in ((library.speed_multiply_add, []), (library.speed_dot_products, []),
                           (library.speed_memory, [ctypes.c_size_t]),
                           (library.speed_read, [ctypes.c_size_t, ctypes.c_bool])):
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_char_p, ctypes.c_int, *more]
    library.speed_matrix_products.restype, library.speed_matrix_products.argtypes = ctypes.c_double, [ctypes.c_int]
    library.speed_meeting.restype = ctypes.c_double
    return library


def best_isa():
    """The widest that this CPU has."""
    return speeds().speed_best_isa().decode().lower()


def has_isa(isa):
    return speeds().speed_multiply_add(isa.encode(), 1) > 0


AWAKE = 0.9  # of the most that the CPUs were seen to do together
WAKING = 0.5  # seconds to wait for it, at most


class Cpus:
    """All that this process may use. A virtual machine's CPUs that have slept may begin on one core, each at half its
    speed, until the host moves one: for a tenth of a second, in which whoever comes first after a pause is measured."""

    def __init__(self):
        """By narrow vectors where there are loops of them: after wide ones some CPUs are slower for a while."""
        self.count, self.most = len(os.sched_getaffinity(0)), 0
        self.isa = ("plain" if has_isa("plain") else best_isa()).encode()

    def wake(self):
        """Keeps them busy until they are as fast together as they were seen to be. What they do not reach again is forgotten."""
        end, now = time.monotonic() + WAKING, 0
        while time.monotonic() < end and (not now or now < AWAKE * self.most):
            now = speeds().speed_multiply_add(self.isa, self.count)
            self.most = max(self.most, now)
        if now < AWAKE * self.most:
            self.most = now


@functools.cache
def cpus():
    return Cpus()


class Meanwhile:
    """A turn between those of a case's contestants: the speed of a core at that time, with all at work. A virtual
    machine's CPUs may share a core for a while, and its memory is shared with others."""

    def __init__(self, threads, isa):
        self.threads, self.isa, self.gflops, self.gbps = threads, isa.encode(), [], []

    def take(self):
        self.gflops.append(speeds().speed_multiply_add(self.isa, self.threads))
        self.gbps.append(speeds().speed_memory(self.isa, self.threads, MAX_BYTES))

    @property
    def found(self):
        """GFLOP/s and, of memory, GB/s of a core."""
        return {"gflops": statistics.median(self.gflops), "memory": statistics.median(self.gbps)}


def cache_bytes(text):
    """The bytes of "L3 32768K"."""
    size = text.split()[1]
    return int(size[:-1]) << {"K": 10, "M": 20, "G": 30}[size[-1]]


def core_meanwhile(described, found):
    """The speed of a core while a case was measured, with all at work. found: of Meanwhile. The caches are this
    machine's alone, so their speeds are those measured at first."""
    core = described["cores"][-1]
    largest = max(map(cache_bytes, described["caches"]), default=0)
    memory = {"forward": found["memory"], "alternating": found["memory"]}
    read = [point | (memory if core["threads"] * point["bytes"] > largest else {}) for point in core["read"]]
    return core | {"gflops": found["gflops"], "read": read}


def bandwidth(core, size):
    """GB/s that a core reads `size` bytes at, over and over, in its better direction; between the sizes measured, by
    the logarithm of the size."""
    points = [(math.log(point["bytes"]), max(point["forward"], point["alternating"])) for point in core["read"]]
    x = min(max(math.log(size), points[0][0]), points[-1][0])
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return points[-1][1]


def streamed_bytes(case):
    """Weight bytes read from a cache by one run: the recurrent ones in each step, the input's once."""
    return case.layers * (case.T * case.recurrent_weight_bytes + case.input_weight_bytes)


def working_set(case):
    """Bytes that all cores together read over and over."""
    return case.recurrent_weight_bytes + (case.layers * case.input_weight_bytes if case.streaming else 0)


def flops(case):
    return 2 * case.layers * case.T * case.B * (case.recurrent_weight_bytes + case.input_weight_bytes) / F32


def limit_on(core, case):
    """Seconds a run takes at least, on core["threads"] cores."""
    n = core["threads"]
    read = bandwidth(core, working_set(case) / n) * 1e9 * n
    compute = core["gflops"] * 1e9 * n
    step = max(case.recurrent_weight_bytes / read, 2 * case.B * case.recurrent_weight_bytes / F32 / compute)
    inputs = max(case.input_weight_bytes / read, 2 * case.T * case.B * case.input_weight_bytes / F32 / compute)
    return case.layers * (case.T * step + inputs)


def limit(machine, case):
    """(seconds, the core that they were computed with): one core may be faster than many."""
    return min(((limit_on(core, case), core) for core in machine["cores"]), key=lambda pair: pair[0])
