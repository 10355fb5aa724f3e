# SPDX-License-Identifier: MIT
"""tools/bench call: what Python adds to a run, by the package rnncc and by ONNX Runtime's, in turns.

Networks of a few additions, so that there is little else: what a call takes from Python, less what the run takes from C.
"""
import statistics
import subprocess
import sys
import time
from types import SimpleNamespace

from benchmarks import environment
from benchmarks.arguments import case_parser, parse_cases, positive

CASES = {"one": 1, "two": 2, "four": 4}  # inputs, and as many outputs
WAYS = ("call", "out=", "by name", "onnxruntime")
CALLS = 2000


def parser():
    top = case_parser(
        "call",
        "Times calls of small networks from Python: us that a call adds to the run, on one thread, as the median "
        "of rounds. call: m(x). out=: m(x, out=y). by name: m.run({...}).")
    top.add_argument("--rounds", type=positive(int), default=20, help="default: 20")
    return top


def parse(words):
    return parse_cases(parser(), words, CASES)


def model_of(count):
    """y_k = x_k + 1, of eight elements each; and its inputs."""
    import numpy as np
    from support.model_builder import Model
    model, feeds = Model(), {}
    one = model.constant(np.ones(8, np.float32))
    for k in range(count):
        feeds[f"x{k}"] = np.full(8, k, np.float32)
        model.output(model.node("Add", [model.input(f"x{k}", "f32", [8]), one]))
    return model, feeds


def job_of(name):
    import numpy as np
    import onnx
    folder = environment.BUILD / "bench" / f"call_{name}"
    folder.mkdir(parents=True, exist_ok=True)
    model, feeds = model_of(CASES[name])
    onnx.save(model.onnx(), folder / "model.onnx")
    subprocess.run([environment.BUILD / "compiler" / "rnncc", model.write(folder), "-o", folder / "module.so"], check=True)
    outputs = {output: np.zeros(8, np.float32) for output in model.outputs}
    return SimpleNamespace(folder=folder, feeds=feeds, outputs=outputs)


def ways_of(job):
    """name -> a function without arguments."""
    import onnxruntime
    from support.module import rnncc
    module = rnncc.load(job.folder / "module.so", threads=1)
    inputs, out = tuple(job.feeds.values()), tuple(job.outputs.values())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(job.folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    return {"call": lambda: module(*inputs), "out=": lambda: module(*inputs, out=out),
            "by name": lambda: module.run(job.feeds), "onnxruntime": lambda: session.run(None, job.feeds)}


def microseconds(function):
    """Of a call; the loop's own time is taken off."""
    turns = range(CALLS)
    began = time.perf_counter()
    for _ in turns:
        pass
    empty = time.perf_counter() - began
    began = time.perf_counter()
    for _ in turns:
        function()
    return 1e6 * (time.perf_counter() - began - empty) / CALLS


def added(name, rounds):
    """way -> us that it adds to the run in C, or of ONNX Runtime to its own run in C."""
    from benchmarks.contestants import OnnxRuntime, Rnncc
    job = job_of(name)
    ways, in_c = ways_of(job), {"rnncc": Rnncc().open(job, 1), "onnxruntime": OnnxRuntime().open(job, 1)}
    found = {way: [] for way in ways}
    for _ in range(rounds):
        runs = {who: 1e6 * statistics.median(runner.times(CALLS)) for who, runner in in_c.items()}
        for way, function in ways.items():
            found[way].append(microseconds(function) - runs.get(way, runs["rnncc"]))
    return {way: statistics.median(times) for way, times in found.items()}


def run(given):
    print(f"{'us added':10}" + "".join(f"{way:>13}" for way in WAYS))
    for name in given.names:
        times = added(name, given.rounds)
        print(f"{name:10}" + "".join(f"{times[way]:13.2f}" for way in WAYS), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(run(parse(sys.argv[1:])))
