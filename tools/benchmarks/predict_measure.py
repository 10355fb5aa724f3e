# SPDX-License-Identifier: MIT
"""Measures one module in a process of its own: python -m benchmarks.predict_measure SETTINGS, which is JSON; so is its
output: a slice of runs, with what the cores multiplied and read from their L1 just before, and the time of a barrier."""
import json
import statistics
import sys
import time

import numpy

from benchmarks.machine import speeds
from support.module import Module

MIN_RUNS = 3
IN_L1 = 16 << 10  # bytes


def feeds(module):
    rng = numpy.random.default_rng(1)
    return {i.name: rng.uniform(-1, 1, [max(extent, 1) for extent in i.shape]).astype(i.dtype) for i in module.inputs}


def timed(run):
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def profiled(context, run):
    context.profiled(on=True)
    run()
    return [entry.seconds * 1e6 for entry in context.profiled(on=False)]


def until(seconds, take):
    """What `take` returned, as often as it was called."""
    taken, end = [], time.perf_counter() + seconds
    while len(taken) < MIN_RUNS or time.perf_counter() < end:
        taken.append(take())
    return taken


def one_slice(context, run, settings):
    isa, threads = settings["isa"].encode(), settings["threads"]
    found = {"gflops": speeds().speed_multiply_add(isa, threads), "gbps": speeds().speed_read(isa, threads, IN_L1, False),
             "meeting_ns": speeds().speed_meeting() if threads > 1 else 0}
    run()
    if settings["profile"]:
        taken = until(settings["seconds"], lambda: profiled(context, run))
        found["kernel_us"] = [statistics.median(each) for each in zip(*taken)]
        found["kernels"] = [(e.kernel, e.node) for e in context.profiled(on=False)]
        found["us"] = sum(found["kernel_us"])
    else:
        found["us"] = statistics.median(until(settings["seconds"], lambda: timed(run))) * 1e6
    return found


def main(settings):
    with Module(settings["module"]) as module, module.context(settings["threads"]) as context:
        run = context.prepared(feeds(module))
        print(json.dumps(one_slice(context, run, settings)))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
