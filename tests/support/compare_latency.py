# SPDX-License-Identifier: MIT
"""Latency of one recurrent layer, compiled, against ONNX Runtime: in turns, so that both meet the same machine.

Both get one warm input and are called from Python, which costs each some 10 microseconds a call. ONNX Runtime is taken
at its best thread count of those tried.
"""
import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime

from support.model_builder import Model
from support.module import Module

ROOT = Path(__file__).resolve().parents[2]
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def layer(op, T, B, I, H):
    rng = np.random.default_rng(1)

    def weights(*shape):
        return (rng.uniform(-1, 1, shape) / np.sqrt(H)).astype(np.float32)

    model = Model(f"{op.lower()}_i{I}h{H}")
    gates = GATES[op]
    model.dim("T", 1, T, T)
    x = model.input("x", "f32", ["T", B, I])
    arrays = [weights(1, gates * H, I), weights(1, gates * H, H), weights(1, 2 * gates * H)]
    model.output(model.node(op, [x, *map(model.constant, arrays)], ["Y"], hidden_size=H))
    return model


def peer(model, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model.onnx().SerializeToString(), options, providers=["CPUExecutionProvider"])


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def contestants(model, module, feeds, threads):
    """Name -> a call of one run. The prepared call leaves out what Module.run does for convenience."""
    calls = {}
    for count in threads:
        session = peer(model, count)
        calls[f"ONNX Runtime, {count} threads"] = lambda session=session: session.run(None, feeds)
        calls[f"rnncc, {count} threads"] = module.context(count).prepared(feeds)
    return calls


def main():
    parser = argparse.ArgumentParser(prog="tools/bench", description="one recurrent layer against ONNX Runtime")
    parser.add_argument("--op", choices=list(GATES), default="LSTM")
    for name, default in (("T", 100), ("B", 1), ("I", 256), ("H", 256)):
        parser.add_argument(f"-{name}", type=int, default=default)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--warm", type=int, default=20)
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        model = layer(given.op, given.T, given.B, given.I, given.H)
        path = Path(folder) / "layer.so"
        subprocess.run([ROOT / "build" / "compiler" / "rnncc", model.write(folder), "-o", path], check=True)
        feeds = {"x": np.random.default_rng(2).uniform(-1, 1, (given.T, given.B, given.I)).astype(np.float32)}
        calls = contestants(model, Module(path), feeds, [int(count) for count in given.threads.split(",")])
        times = {name: [] for name in calls}
        for _ in range(given.rounds):
            for name, call in calls.items():
                # ONNX Runtime's threads spin on for some 40 ms after a run. Waking up and finding a CPU each takes
                # threads some milliseconds: the first runs of a slice are not counted.
                time.sleep(0.06)
                slice_times = [seconds(call) for _ in range(given.warm + given.runs)]
                times[name] += slice_times[given.warm:]

    print(f"{given.op} I={given.I} H={given.H} T={given.T} B={given.B}, {given.rounds} rounds of {given.runs} runs, microseconds")
    medians = {name: 1e6 * float(np.median(values)) for name, values in times.items()}
    for name, values in times.items():
        print(f"  {name:26} p50 {medians[name]:9.1f}   p90 {1e6 * float(np.quantile(values, 0.9)):9.1f}")
    best = {who: min(value for name, value in medians.items() if name.startswith(who)) for who in ("ONNX", "rnncc")}
    print(f"  best against best: rnncc takes {best['rnncc'] / best['ONNX']:.2f} of ONNX Runtime's time")


if __name__ == "__main__":
    main()
