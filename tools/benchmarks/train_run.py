# SPDX-License-Identifier: MIT
"""tools/bench train: a training step of recurrent layers, forward and backward, beside PyTorch's layer, a loop over
PyTorch's cell, and our own module of the same graph with its steps written out, in turns; and what part of the peak of
multiply-adds that is."""
import os
import shlex
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import train_page, train_record
from benchmarks.arguments import case_parser, parse_cases, positive, thread_counts
from benchmarks.environment import BUILD, Missing, exit_code, output_of
from benchmarks.train_cases import CASES, WIDTH
from benchmarks.turns import ratios_of, take_round

RNNCC = BUILD / "compiler" / "rnncc"
OTHERS = ("torch", "cells", "written")
WRITTEN_STEPS = 50  # maximum to be written out: compiling takes most of a second a step
CLOCKS = {"wall": time.perf_counter, "cpu": time.thread_time}
TOLERANCE = 1e-4  # of a gradient, relative to its largest value
SECONDS = 0.1  # of a contestant in a turn, about
RULE, RATE = "adam", 1e-6


def add_clock(top):
    top.add_argument("--clock", choices=CLOCKS, default="wall",
                     help="cpu: the CPU time of the calling thread, for one thread on a machine that does other work, too")


def parser():
    top = case_parser(
        "train",
        "Times training steps of recurrent layers in turns: rnncc's, PyTorch's layer (torch), a loop over "
        "PyTorch's cell (cells), and rnncc's module of the steps written out as nodes (written). Gradients "
        "must agree to 1e-4.")
    top.add_argument("--without", action="append", default=[], choices=OTHERS,
                     help="leaves one out; may repeat. `written` takes a minute a case to compile")
    add_clock(top)
    top.add_argument("--threads", type=thread_counts, default=[1, 2], metavar="N,...", help="of all (1,2)")
    top.add_argument("--turns", type=positive(int), default=9, metavar="N", help="of each (9)")
    top.add_argument("--record", type=Path, metavar="PAGE.md",
                     help="writes the tables there, too, after each case, and their numbers to PAGE.json; what these have of "
                          "other cases and numbers of threads stays")
    top.add_argument("--continue", action="store_true", dest="continues",
                     help="measures only what the page of --record lacks, such as one that was cut off")
    return top


def parse(words):
    top = parser()
    given = parse_cases(top, words, CASES)
    if given.continues and not given.record:
        top.error("--continue: expected --record=PAGE.md, the page to continue")
    given.command = shlex.join(["tools/bench", "train", *(word for word in words if word not in (*given.case, "--continue"))])
    return given


# Contestants


class OwnRunner:
    """A module of --train, compiled for so many threads."""

    def __init__(self, model, feeds, folder, compiled, threads, trained="--train"):
        from support.module import rnncc
        path = folder / f"{model.name}{compiled}.so"
        if not path.exists():
            output_of(RNNCC, model.write(folder), trained, f"--threads={compiled}", "-o", path)
        loaded = rnncc.load(str(path), threads=threads)
        self.feeds, self.trainer = list(feeds.values()), loaded.trainer()
        self.bytes = loaded._open().api.info.contents.arena_bytes

    def both_ways(self):
        self.trainer(*self.feeds)
        self.trainer.backward()

    def step(self):
        self.trainer.step(RULE, RATE)

    def gradient(self):
        gradient = self.trainer.gradients()["R"]
        return gradient.reshape(-1, gradient.shape[-1])


class TorchRunner:
    """PyTorch's layer, or a loop over its cell."""

    def __init__(self, case, feeds, threads, of_cells):
        import torch
        from benchmarks.train_networks import torch_network
        self.torch, self.case, self.threads = torch, case, threads
        self.network = torch_network(case, of_cells)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=RATE, fused=True)
        self.feeds = [torch.from_numpy(array) for array in feeds.values()]

    def both_ways(self):
        self.torch.set_num_threads(self.threads)
        self.optimizer.zero_grad(set_to_none=True)
        self.network(*self.feeds).backward()

    def step(self):
        self.optimizer.step()

    def gradient(self):
        from benchmarks.train_networks import onnx_order
        return onnx_order(self.case, self.network.recurrent.grad.numpy())


def is_written_out(case):
    """Where there is a goal, and compiling ends."""
    return case.H >= WIDTH and case.T <= WRITTEN_STEPS


def opened(case, threads, given, folder):
    """Runners by name, rnncc's first."""
    from benchmarks.train_networks import feeds_of, layer_model, written_model
    feeds = feeds_of(case)
    makers = {"torch": lambda: TorchRunner(case, feeds, threads, False),
              "cells": lambda: TorchRunner(case, feeds, threads, True),
              "written": lambda: OwnRunner(written_model(case), feeds, folder, max(given.threads), threads)}
    wanted = [name for name in OTHERS if name not in given.without and (name != "written" or is_written_out(case))]
    return {"rnncc": OwnRunner(layer_model(case), feeds, folder, threads, threads),
            **{name: makers[name]() for name in wanted}}


# Measuring


def check(case, runners):
    """The first one's gradients are those of all."""
    gradients = {}
    for name, runner in runners.items():
        runner.both_ways()
        gradients[name] = runner.gradient().copy()
    due = gradients["rnncc"]
    for name, found in gradients.items():
        error = float(abs(found - due).max()) / float(abs(due).max())
        if not error <= TOLERANCE:
            raise Missing(f"{case.name}: the gradient of R by {name} differs from rnncc's by {error:.1g} of its largest value")


def timed(function, clock):
    began = clock()
    function()
    return clock() - began


class Turn:
    """Of one contestant: seconds forward and backward, and of the optimiser's step, a median each turn."""

    def __init__(self, runner, clock):
        self.runner, self.clock, self.seconds, self.steps = runner, clock, [], []
        self.runner.step()  # of the gradients that were compared
        self.passes = max(1, int(SECONDS / min(timed(runner.both_ways, time.perf_counter) for _ in range(2))))

    def take(self):
        from benchmarks import machine
        from benchmarks.measure import PEER_PAUSE
        time.sleep(PEER_PAUSE)
        machine.cpus().wake()
        self.runner.both_ways()  # threads wake up
        both, steps = [], []
        for _ in range(self.passes):
            both.append(timed(self.runner.both_ways, self.clock))
            steps.append(timed(self.runner.step, self.clock))
        self.seconds.append(statistics.median(both))
        self.steps.append(statistics.median(steps))


def turns_of(runners, threads, given):
    """The turns by name, and GFLOP/s of a core meanwhile."""
    from benchmarks import machine
    turns = {who: Turn(runner, CLOCKS[given.clock]) for who, runner in runners.items()}
    meanwhile = machine.Meanwhile(threads, machine.best_isa())
    for number in range(given.turns):
        take_round(turns.values(), number)
        meanwhile.take()
    return turns, meanwhile.found["gflops"]


def measured(case, threads, given, folder):
    runners = opened(case, threads, given, folder)
    check(case, runners)
    turns, gflops = turns_of(runners, threads, given)
    seconds = {who: turn.seconds for who, turn in turns.items()}
    return train_page.Row(case, threads, {who: statistics.median(each) for who, each in seconds.items()},
                          {who: statistics.median(turn.steps) for who, turn in turns.items()}, ratios_of(seconds), gflops,
                          runners["rnncc"].bytes, given.command)


def rows_of(name, thread_counts, given):
    with tempfile.TemporaryDirectory() as folder:
        for threads in thread_counts:
            yield measured(CASES[name], threads, given, Path(folder))


# Recording


def setting_of(given):
    from importlib.metadata import version
    from benchmarks import machine
    return {"machine": f"{machine.cpu_name()}, {machine.best_isa()}", "torch": version("torch"), "clock": given.clock}


def wanted(given, recorded):
    """Case -> numbers of threads that are to be measured."""
    lacking = {name: [threads for threads in given.threads if not given.continues or (name, threads) not in recorded]
               for name in given.names}
    return {name: thread_counts for name, thread_counts in lacking.items() if thread_counts}


def run(given):
    setting = setting_of(given) if given.record else {}
    recorded = train_record.known(given.record, setting) if given.record else {}
    for name, thread_counts in wanted(given, recorded).items():
        for row in rows_of(name, thread_counts, given):
            recorded[train_record.key(row)] = row
            print(train_page.line(row), flush=True)
            if given.record:
                train_record.write(given.record, recorded, setting)
    return 0


def main(words):
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    return exit_code(run, parse(words))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
