# SPDX-License-Identifier: MIT
"""tools/bench width: a text-line reader whose width only the run knows, beside readers that are compiled for one width."""
import argparse
import json
import shlex
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks import isas
from benchmarks.environment import BUILD, exit_code, output_of

RNNCC, RNNRUN = BUILD / "compiler" / "rnncc", BUILD / "tools" / "rnnrun"
WIDTHS = [32, 48, 64, 100, 256, 512]
RANGE = (32, 256, 512)  # of the reader of any width: minimum, optimum, maximum
AT_MOST = 1.15


def parser():
    top = argparse.ArgumentParser(
        prog="tools/bench width",
        description="Compiles the convolutions of a text-line reader for lines of 32 pixels' height and a width of 32 to 512 "
                    "that only the run knows, best at 256; and for each width alone. Runs the two in turns.",
        epilog=f"Exit 1 if a run takes more than {AT_MOST} times as long as where the width is known.")
    top.add_argument("width", nargs="*", type=int, help=f"default: {' '.join(map(str, WIDTHS))}")
    top.add_argument("--list", action="store_true", help="prints the widths")
    top.add_argument("--target", choices=list(isas.OF_TARGET), metavar="NAME", help="default: native")
    top.add_argument("--threads", type=int, default=1, metavar="N", help="threads that are planned for, and run (1)")
    top.add_argument("--turns", type=int, default=9, metavar="N", help="of each module (9)")
    top.add_argument("--runs", type=int, default=20, metavar="N", help="of a turn (20)")
    top.add_argument("--under", type=shlex.split, default=[], metavar="COMMAND",
                     help="measures under this command, such as 'chrt -f 1'")
    return top


def parse(words):
    top = parser()
    given = top.parse_args(words)
    given.widths = given.width or WIDTHS
    given.names = list(map(str, given.widths))
    if bad := [width for width in given.widths if not RANGE[0] <= width <= RANGE[-1]]:
        top.error(f"expected a width of {RANGE[0]} to {RANGE[-1]}, found {bad[0]}")
    return given


def reader(width):
    """B. Shi et al., An End-to-End Trainable Neural Network for Image-based Sequence Recognition, 2015, table 1: up to the
    sequence, with normalisation folded. width None: what the run says."""
    import numpy  # needs the venv's packages
    from support.model_builder import Model
    net, rng = Model(f"reader_{width or 'any'}"), numpy.random.default_rng(1)
    if not width:
        net.dim("W", *RANGE)
    x, channels = net.input("line", "f32", [1, 1, 32, width or "W"]), 1
    tall = dict(kernel_shape=[2, 2], strides=[2, 1], pads=[0, 1, 0, 1])
    for kernels, window, pool in ((64, 3, dict(kernel_shape=[2, 2], strides=[2, 2])),
                                  (128, 3, dict(kernel_shape=[2, 2], strides=[2, 2])), (256, 3, None), (256, 3, tall),
                                  (512, 3, None), (512, 3, tall), (512, 2, None)):
        weights = rng.standard_normal((kernels, channels, window, window)) * (2 / (channels * window**2)) ** 0.5
        inputs = [x, net.constant(weights.astype(numpy.float32)), net.constant(rng.uniform(-1, 1, kernels).astype(numpy.float32))]
        x, channels = net.node("Relu", [net.node("Conv", inputs, pads=[window // 2 if window > 2 else 0] * 4)]), kernels
        x = net.node("MaxPool", [x], **pool) if pool else x
    net.output(x)
    return net


def compiled(width, folder, given):
    module = folder / f"{width or 'any'}.so"
    target = [f"--target={given.target}", "--machine=native"] if given.target else []
    path = reader(width).write(folder)
    output_of(RNNCC, path, "-o", module, f"--threads={given.threads}", *target)
    return module


def median_us(module, dims, given):
    said = output_of(*given.under, RNNRUN, "bench", module, f"--threads={given.threads}", f"--runs={given.runs}", "--json", *dims)
    return json.loads(said)["p50_us"]


def turns(of_any, alone, width, given):
    """Pairs of microseconds: of any width, of this one. Each is first in half of the turns."""
    pairs = []
    for turn in range(given.turns):
        takes = [lambda: median_us(of_any, ["--dim", f"W={width}"], given), lambda: median_us(alone, [], given)]
        first = turn % 2
        found = {first: takes[first](), 1 - first: takes[1 - first]()}
        pairs.append((found[0], found[1]))
    return pairs


def line(width, pairs):
    of_any, alone = (statistics.median(each) for each in zip(*pairs))
    return f"{width:5}{of_any:14.0f}{alone:14.0f}{ratio(pairs):8.2f}"


def ratio(pairs):
    return statistics.median(of_any / alone for of_any, alone in pairs)


def run(given):
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        of_any = compiled(None, Path(folder), given)
        print("width   any width us  this width us   ratio")
        for width in given.widths:
            pairs = turns(of_any, compiled(width, Path(folder), given), width, given)
            worst = max(worst, ratio(pairs))
            print(line(width, pairs), flush=True)
    return 1 if worst > AT_MOST else 0


def main(words):
    return exit_code(run, parse(words))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
