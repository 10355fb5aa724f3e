# SPDX-License-Identifier: MIT
"""tools/bench exported: the networks of tests/pytorch, as PyTorch's exporters write them, beside ONNX Runtime."""
import argparse
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections import namedtuple
from pathlib import Path

from benchmarks.environment import BUILD, ENVIRONMENT_ERROR, ROOT, Missing, output_of
from benchmarks.turns import take_round

RNNCC = BUILD / "compiler" / "rnncc"
EXPORTERS = ("script", "dynamo")
TOLERANCE = 1e-4  # relative to the largest value
SIZES = {"wide_encoder": ({"tokens": 64}, {"tokens": 128}, {"tokens": 256}, {"tokens": 512})}  # default: the example's
Row = namedtuple("Row", "network exporter own peer ratio")


def names():
    """Of the networks, in the files' order, without importing PyTorch."""
    files = sorted((ROOT / "tests" / "pytorch").glob("*s.py"))
    lines = [line for file in files for line in file.read_text().splitlines()]
    return [after[4:after.index("(")] for line, after in zip(lines, lines[1:]) if line == "@network"]


def parser():
    top = argparse.ArgumentParser(
        prog="tools/bench exported",
        description="Exports networks from PyTorch, with their run-time axes, compiles them, and runs them at the sizes of "
                    "their examples in turns with ONNX Runtime. Results must agree to 1e-4 with PyTorch's.")
    top.add_argument("network", nargs="*", help="default: all")
    top.add_argument("--list", action="store_true", help="prints the networks")
    top.add_argument("--exporter", choices=EXPORTERS, help="of PyTorch (both)")
    top.add_argument("--threads", type=int, default=2, metavar="N", help="of both (2)")
    top.add_argument("--turns", type=int, default=9, metavar="N", help="of each (9)")
    top.add_argument("--record", type=Path, metavar="PAGE.md", help="writes the table there, too")
    return top


def parse(words):
    top = parser()
    given = top.parse_args(words)
    given.names = given.network or names()
    given.exporters = [given.exporter] if given.exporter else EXPORTERS
    if bad := [name for name in given.names if name not in names()]:
        top.error(f"expected networks that --list prints, found {bad[0]}")
    return given


class Exported:
    """One network's file and its module, by one exporter."""

    def __init__(self, name, exporter, folder):
        warnings.simplefilter("ignore")  # of tracing, and of batches of another size: the results are compared
        import torch
        from benchmarks.measure import in_fork  # PyTorch's exporters leave something behind in their process
        from pytorch.modules import NETWORKS, exported_axes
        torch.set_num_threads(1)  # or the fork waits for threads that it does not have
        torch.manual_seed(0)
        self.folder = folder
        self.module, self.inputs, axes = NETWORKS[name]()
        self.module.eval()
        self.axes = exported_axes(name, exporter, axes)
        self.output_names = in_fork(self.export, exporter)

    def export(self, exporter):
        import logging
        import onnx
        from support import from_torch
        logging.getLogger("torch").setLevel(logging.ERROR)
        from_torch.load().export(self.module, self.inputs, self.axes, self.folder / "model.onnx", exporter)
        return [output.name for output in onnx.load(self.folder / "model.onnx").graph.output]

    def compile(self, threads):
        from pytorch.modules import DIMS
        sizes = {dim: tensor.shape[axis] for tensor, named in zip(self.inputs, self.axes) for axis, dim in named.items()}
        bounds = [f"--dim={dim}={DIMS[dim][0]}..{size}..{DIMS[dim][1]}" for dim, size in sizes.items()]
        output_of(RNNCC, self.folder / "model.onnx", "-o", self.folder / "module.so", f"--threads={threads}", *bounds)


class ExportedJob:
    """A network's inputs of these extents, memory for outputs, and what PyTorch computes."""

    def __init__(self, exported, extents):
        import numpy
        import torch
        from pytorch.modules import sized
        self.folder = exported.folder
        inputs = list(sized(exported.inputs, exported.axes, extents)) if extents else exported.inputs
        with torch.no_grad():
            computed = exported.module(*inputs)
        computed = computed if isinstance(computed, tuple) else (computed,)
        self.expected = [value.numpy() for value in computed]
        self.feeds = {f"x{k}": tensor.contiguous().numpy() for k, tensor in enumerate(inputs)}
        memory = [numpy.zeros(value.shape, value.dtype) for value in self.expected]
        self.outputs = dict(zip(exported.output_names, memory, strict=True))

    def check(self, who, outputs):
        import numpy
        for got, wanted in zip(outputs.values(), self.expected, strict=True):
            most = float(abs(wanted).max())
            if not numpy.allclose(got, wanted, rtol=0, atol=TOLERANCE * most):
                raise Missing(f"{who} computes something else than PyTorch")


def pairs_of(job, given):
    """Microseconds of rnncc and of ONNX Runtime, a pair a turn."""
    from benchmarks.contestants import OnnxRuntime, Rnncc
    from benchmarks.measure import PEER_PAUSE, Turn
    runners = [who.open(job, given.threads) for who in (Rnncc(), OnnxRuntime())]
    for runner in runners:
        job.check(runner.name, runner.run())
    turns = [Turn(runner, PEER_PAUSE) for runner in runners]
    time.sleep(PEER_PAUSE)
    for number in range(given.turns):
        take_round(turns, number)
    for runner in runners:
        runner.close()
    return list(zip(*([1e6 * statistics.median(part) for part in turn.seconds] for turn in turns)))


def rows_of(name, exporter, given):
    with tempfile.TemporaryDirectory() as folder:
        exported = Exported(name, exporter, Path(folder))
        exported.compile(given.threads)
        for extents in SIZES.get(name, ({},)):
            pairs = pairs_of(ExportedJob(exported, extents), given)
            own, peer = (statistics.median(each) for each in zip(*pairs))
            label = " ".join([name, *(f"{dim}={size}" for dim, size in extents.items())])
            yield Row(label, exporter, own, peer, statistics.median(a / b for a, b in pairs))


def page(rows, threads, machine, versions):
    ratios = [row.ratio for row in rows]
    return "\n".join([
        "# Networks that PyTorch exports", "",
        f"`tools/bench exported` on {machine}, {threads} threads: medians of runs in turns, in microseconds, at the sizes of "
        f"tests/pytorch, with run-time axes. {', '.join(' '.join(pair) for pair in versions.items())}. The ratio is the median "
        "of the turns'. All results agree with PyTorch's to 1e-4.",
        "", "| network | exporter | rnncc | ONNX Runtime | ratio |", "|---|---|---|---|---|",
        *(f"| {row.network} | {row.exporter} | {row.own:.1f} | {row.peer:.1f} | {row.ratio:.2f} |" for row in rows), "",
        f"Geometric mean of the ratios: {statistics.geometric_mean(ratios):.2f}; the largest: {max(ratios):.2f}.", ""])


def write_page(path, rows, threads):
    import onnxruntime
    import torch
    from benchmarks import machine
    versions = {"PyTorch": torch.__version__, "ONNX Runtime": onnxruntime.__version__}
    path.write_text(page(rows, threads, f"{machine.cpu_name()}, {machine.best_isa()}", versions))


def run(given):
    from pytorch.modules import NOT_EXPORTED
    rows = []
    print(f"{'network':26}{'exporter':>10}{'rnncc us':>12}{'ONNX Runtime us':>18}{'ratio':>8}")
    for name in given.names:
        for exporter in given.exporters:
            for row in rows_of(name, exporter, given) if (name, exporter) not in NOT_EXPORTED else ():
                print(f"{row.network:26}{exporter:>10}{row.own:12.1f}{row.peer:18.1f}{row.ratio:8.2f}", flush=True)
                rows.append(row)
    if given.record:
        write_page(given.record, rows, given.threads)
    return 0


def main(words):
    from benchmarks.contestants import Failed  # needs the venv's packages
    given = parse(words)
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    try:
        from pytorch import image_networks, sequence_networks, speech_networks, wide_networks  # noqa: F401
        return run(given)
    except (Missing, Failed) as reason:
        print(f"tools/bench: {reason}", file=sys.stderr)
        return ENVIRONMENT_ERROR


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
