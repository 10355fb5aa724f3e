# SPDX-License-Identifier: MIT
"""tools/bench exported: the networks of tests/pytorch, as PyTorch's exporter writes them, beside ONNX Runtime."""
import argparse
import importlib.machinery
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from benchmarks.environment import BUILD, ENVIRONMENT_ERROR, ROOT, Missing

RNNCC = BUILD / "compiler" / "rnncc"
SLICE = 0.02  # seconds of counted runs in a turn, and of uncounted ones before
PEER_PAUSE = 0.06  # seconds: ONNX Runtime's threads spin on for some 40 ms after a run
TOLERANCE = 1e-4  # relative to the largest value
# PyTorch's older exporter cannot write this one; the newer one needs packages that no contestant does.
NOT_EXPORTED = {"library_encoder"}


def names():
    """Of the networks, in the files' order, without importing PyTorch."""
    files = sorted((ROOT / "tests" / "pytorch").glob("*s.py"))
    lines = [line for file in files for line in file.read_text().splitlines()]
    named = [after[4:after.index("(")] for line, after in zip(lines, lines[1:]) if line == "@network"]
    return [name for name in named if name not in NOT_EXPORTED]


def parser():
    top = argparse.ArgumentParser(
        prog="tools/bench exported",
        description="Exports networks from PyTorch, with their run-time axes, compiles them, and runs them at the sizes of "
                    "their examples in turns with ONNX Runtime. Results must agree to 1e-4 with PyTorch's.")
    top.add_argument("network", nargs="*", help="default: all")
    top.add_argument("--list", action="store_true", help="prints the networks")
    top.add_argument("--threads", type=int, default=2, metavar="N", help="of both (2)")
    top.add_argument("--turns", type=int, default=9, metavar="N", help="of each (9)")
    top.add_argument("--record", type=Path, metavar="PAGE.md", help="writes the table there, too")
    return top


def parse(words):
    top = parser()
    given = top.parse_args(words)
    given.names = given.network or names()
    if bad := [name for name in given.names if name not in names()]:
        top.error(f"expected networks that --list prints, found {bad[0]}")
    return given


class ExportedJob:
    """One network's files, its inputs, memory for outputs, and what PyTorch computes."""

    def __init__(self, name, folder):
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
        warnings.simplefilter("ignore")  # of tracing, and of batches of another size: the results are compared
        import torch
        from pytorch.modules import DIMS, NETWORKS
        torch.manual_seed(0)
        self.folder = folder
        module, inputs, axes = NETWORKS[name]()
        from_torch().export(module, inputs, axes, folder / "model.onnx", "script")
        with torch.no_grad():
            computed = module(*inputs)
        computed = computed if isinstance(computed, tuple) else (computed,)
        self.expected = [value.numpy() for value in computed]
        self.feeds = {f"x{k}": tensor.contiguous().numpy() for k, tensor in enumerate(inputs)}
        self.outputs = dict(zip(output_names(folder / "model.onnx"), map(memory_like, self.expected), strict=True))
        sizes = {dim: tensor.shape[axis] for tensor, named in zip(inputs, axes) for axis, dim in named.items()}
        self.bounds = [f"--dim={dim}={DIMS[dim][0]}..{size}..{DIMS[dim][1]}" for dim, size in sizes.items()]

    def check(self, who, outputs):
        import numpy
        for got, wanted in zip(outputs.values(), self.expected, strict=True):
            most = float(abs(wanted).max())
            if not numpy.allclose(got, wanted, rtol=0, atol=TOLERANCE * most):
                raise Missing(f"{who} computes something else than PyTorch")


def from_torch():
    loader = importlib.machinery.SourceFileLoader("from_torch", str(ROOT / "tools" / "from_torch"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("from_torch", loader))
    loader.exec_module(module)
    return module


def output_names(path):
    import onnx
    return [output.name for output in onnx.load(path).graph.output]


def memory_like(array):
    import numpy
    return numpy.zeros(array.shape, array.dtype)


def compile_model(job, threads):
    command = [RNNCC, job.folder / "model.onnx", "-o", job.folder / "module.so", f"--threads={threads}", *job.bounds]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise Missing(done.stderr)


def median_of_turn(runner):
    end = time.perf_counter() + SLICE
    while time.perf_counter() < end:
        runner.times(1)
    found, end = [], time.perf_counter() + SLICE
    while time.perf_counter() < end or len(found) < 3:
        found += runner.times(1)
    return 1e6 * statistics.median(found)


def measured(name, given):
    """Microseconds of rnncc and of ONNX Runtime, a pair a turn."""
    from benchmarks.contestants import OnnxRuntime, Rnncc
    with tempfile.TemporaryDirectory() as folder:
        job = ExportedJob(name, Path(folder))
        compile_model(job, given.threads)
        runners = {who.title: who.open(job, given.threads) for who in (Rnncc(), OnnxRuntime())}
        for who, runner in runners.items():
            job.check(who, runner.run())
        pairs = []
        for turn in range(given.turns):
            found = {}
            for who in list(runners)[::1 if turn % 2 else -1]:
                found[who] = median_of_turn(runners[who])
                time.sleep(PEER_PAUSE)
            pairs.append(tuple(found[who] for who in runners))
        for runner in runners.values():
            runner.close()
        return pairs


def page(rows, threads, machine, versions):
    ratios = [row[3] for row in rows]
    return "\n".join([
        "# Networks that PyTorch exports", "",
        f"`tools/bench exported` on {machine}, {threads} threads: medians of runs in turns, in microseconds, at the sizes of "
        f"tests/pytorch, with run-time axes. {', '.join(' '.join(pair) for pair in versions.items())}. The ratio is the median "
        "of the turns'. All results agree with PyTorch's to 1e-4.",
        "", "| network | rnncc | ONNX Runtime | ratio |", "|---|---|---|---|",
        *(f"| {name} | {own:.1f} | {peer:.1f} | {ratio:.2f} |" for name, own, peer, ratio in rows), "",
        f"Geometric mean of the ratios: {statistics.geometric_mean(ratios):.2f}; the largest: {max(ratios):.2f}.", ""])


def write_page(path, rows, threads):
    import onnxruntime
    import torch
    from benchmarks import machine
    versions = {"PyTorch": torch.__version__, "ONNX Runtime": onnxruntime.__version__}
    path.write_text(page(rows, threads, f"{machine.cpu_name()}, {machine.best_isa()}", versions))


def run(given):
    rows = []
    print(f"{'network':24}{'rnncc us':>12}{'ONNX Runtime us':>18}{'ratio':>8}")
    for name in given.names:
        pairs = measured(name, given)
        own, peer = (statistics.median(each) for each in zip(*pairs))
        rows.append((name, own, peer, statistics.median(a / b for a, b in pairs)))
        print(f"{name:24}{own:12.1f}{peer:18.1f}{rows[-1][3]:8.2f}", flush=True)
    if given.record:
        write_page(given.record, rows, given.threads)
    return 0


def main(words):
    given = parse(words)
    try:
        from pytorch import image_networks, sequence_networks, speech_networks  # noqa: F401
        return run(given)
    except Missing as reason:
        print(f"tools/bench: {reason}", file=sys.stderr)
        return ENVIRONMENT_ERROR


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
