# SPDX-License-Identifier: MIT
"""The page of tools/bench train."""
from collections import namedtuple

from benchmarks import train_cases as goals
from benchmarks.report import table

# seconds and steps (of the optimiser): by contestant; ratios: to each other one; gflops: of a core; bytes: of a context; command: that
# measured it, without its cases
Row = namedtuple("Row", "case threads seconds steps ratios gflops bytes command")
TITLES = {"rnncc": "rnncc", "torch": "PyTorch", "cells": "cell", "written": "written out"}


def limit(row):
    """Seconds that the multiply-adds take at the peak of all cores."""
    return goals.flops(row.case) / (1e9 * row.gflops * row.threads)


def part_of_peak(row):
    return limit(row) / row.seconds["rnncc"]


def unfused(row):
    """The ratio to the faster of the graphs that are not fused; None: neither was run."""
    return max((row.ratios[who] for who in ("cells", "written") if who in row.ratios), default=None)


def number(value):
    return "" if value is None else f"{value:.2f}"


def met(value, least, goal):
    """least: what the peak allows."""
    if value is None or goal is None:
        return ""
    return "yes" if value <= goal else "no: beyond the peak" if least > goal else "no"


def milliseconds(seconds):
    return "" if seconds is None else f"{1e3 * seconds:.2f}"


def size_of(case):
    return f"{case.op} T={case.T} B={case.B} H={case.H}"


def line(row):
    times = "".join(f"  {who} {milliseconds(each)} ms" for who, each in row.seconds.items())
    ratios = "".join(f"  of {who} {ratio:.2f}" for who, ratio in row.ratios.items())
    return f"{row.case.name}, {row.threads} threads:{times}{ratios}  {100 * part_of_peak(row):.0f}% of the peak"


def ratios_of(row):
    wide = row.case.H >= goals.WIDTH
    torch, slow = row.ratios.get("torch"), unfused(row)
    torch_least = limit(row) / row.seconds["torch"] if torch else None
    torch_goal, slow_goal = (goals.OF_TORCH[row.case.op], goals.UNFUSED) if wide else (None, None)
    slow_least = slow and limit(row) / row.seconds["rnncc"] * slow
    return [size_of(row.case), str(row.threads), *(milliseconds(row.seconds.get(who)) for who in TITLES), number(torch),
            number(torch_least), number(torch_goal), met(torch, torch_least, torch_goal), number(slow), number(slow_least),
            number(slow_goal), met(slow, slow_least, slow_goal)]


def peak_of(row):
    goal = goals.PEAK if row.case.H >= goals.WIDTH else None
    part = part_of_peak(row)
    return [size_of(row.case), str(row.threads), f"{goals.flops(row.case) / 1e9:.1f}",
            f"{goals.flops(row.case) / 1e9 / row.seconds['rnncc']:.0f}", f"{row.gflops * row.threads:.0f}", f"{100 * part:.0f}%",
            f"{100 * goal:.0f}%" if goal else "", "" if goal is None else "yes" if part >= goal else "no"]


def step_of(row):
    return [size_of(row.case), str(row.threads), *(milliseconds(row.steps.get(who)) for who in ("rnncc", "torch"))]


def workspace_of(row):
    saved, loss = (of(row.case) for of in (goals.saved_bytes, goals.loss_bytes))
    ratio = row.bytes / (saved + loss)
    return [size_of(row.case), str(row.threads), *(f"{each / 1e6:.1f}" for each in (saved, loss, row.bytes)),
            f"{ratio:.2f}", f"{goals.WORKSPACE:.2f}", "yes" if ratio <= goals.WORKSPACE else "no"]


CLOCK = {"wall": "", "cpu": "**The machine did other work, too: times are CPU times of the calling thread, in which a thread that "
                            "sleeps counts nothing and one that spins does. With two threads they say less than with one.** "}


def page(rows, machine, torch, clock):
    """torch: its version."""
    size, threads = "layer", "threads"
    commands = ", ".join(f"`{command}`" for command in dict.fromkeys(row.command for row in rows))
    return "\n".join([
        "# Training steps of recurrent layers", "",
        f"{commands} on {machine}: medians of runs in turns; ratios are medians of the turns'. PyTorch {torch}. {CLOCK[clock]}"
        "The network is one layer whose input is scaled by trained numbers, so that the input's gradient is needed, too, "
        "under the mean of squared differences. All gradients agree to 1e-4. The peak is that of multiply-adds in "
        "registers, measured between the turns with as many threads; what is \"at least\" follows from it: no program that "
        "does the multiply-adds of the layer can have a lower ratio to the same run of the other.", "",
        "## Forward and backward", "",
        "*PyTorch* is its layer (`nn.LSTM`, ...); *cell* a loop over its cell (`nn.LSTMCell`, ...); *written out* rnncc's module "
        "of the same steps as nodes, for 50 steps at most. *Unfused* is the faster of the last two.", "",
        table([size, threads, *(f"{title}, ms" for title in TITLES.values()), "of PyTorch", "at least", "at most", "met",
                "of unfused", "at least", "at most", "met"], map(ratios_of, rows)), "",
        "## Beside the peak of multiply-adds", "",
        table([size, threads, "GFLOP", "GFLOP/s", "peak", "part", "goal", "met"], map(peak_of, rows)), "",
        "## The optimiser's step", "", "Adam on all weights. PyTorch's is its fused one.", "",
        table([size, threads, "rnncc, ms", "PyTorch, ms"], map(step_of, rows)), "",
        "## Memory", "",
        "*Layer* is what its backward pass reads of the forward one: its input and output, the gates as activated, and LSTM's "
        "cell states or the candidate's recurrent product in GRU. *Loss* is what the loss's gradient reads, the differences: the "
        "gradient of the layer's output takes their place, and the gates' gradients that of the gates. *Context* is all memory "
        "that a context works in; the weights and their gradients are beside it. W and R as kernels read them, and what else is "
        "needed for a time, are where gradients will be, until these are written. *Of saved* is the context's ratio to what "
        "layer and loss save.", "",
        table([size, threads, "layer, MB", "loss, MB", "context, MB", "of saved", "at most", "met"], map(workspace_of, rows)), ""])
