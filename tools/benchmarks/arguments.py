# SPDX-License-Identifier: MIT
"""The command line of tools/bench."""
import argparse
import fnmatch
import os
import shlex

from benchmarks.cases import CASES
from benchmarks.cases import case_named as rnn_case_named
from benchmarks.cnn_cases import CASES as CNN_CASES
from benchmarks.cnn_cases import case_named as cnn_case_named
from benchmarks.environment import PEERS


def thread_counts(text):
    counts = [int(part) for part in text.split(",")]
    if not counts or min(counts) < 1:
        raise ValueError
    return counts


thread_counts.__name__ = "list of thread counts"


def positive(kind):
    def parse(text):
        value = kind(text)
        if value <= 0:
            raise ValueError
        return value

    parse.__name__ = f"positive {kind.__name__}"
    return parse


def cores():
    """Every count up to 8; beyond, doubling, and all."""
    n = len(os.sched_getaffinity(0))
    return sorted({k for k in range(1, n + 1) if k <= 8 or k & (k - 1) == 0} | {n})


def add_options(sub, what, example):
    peers = PEERS[what]
    sub.add_argument("--quick", action="store_true", help="a few of the cases, for a shorter time: under three minutes")
    sub.add_argument("--case", action="append", default=[], metavar="PATTERN", help=f"cases by name, such as {example}; "
                     "may repeat")
    sub.add_argument("--list", action="store_true", help="prints the names of the cases")
    sub.add_argument("--without", action="append", default=[], choices=peers, help="leaves a peer out; may repeat")
    sub.add_argument("--threads", type=thread_counts, default=cores(), metavar="1,2,...",
                     help="thread counts to choose from; default: up to all cores")
    sub.add_argument("--rounds", type=positive(int), metavar="N", help="turns of each contestant at most (20; quick 8)")
    sub.add_argument("--seconds", type=positive(float), metavar="S", help="for the turns of a case, about (8; quick 4)")
    sub.add_argument("--under", type=shlex.split, default=[], metavar="COMMAND",
                     help="measures each case under this command, such as 'chrt -f 1'")
    sub.add_argument("--rnncc", type=shlex.split, default=[], metavar="OPTIONS",
                     help="compiles with these options, such as --rnncc=--target=x86-64-v3")
    sub.add_argument("--output", metavar="DIRECTORY", help="where the page goes")


def parser():
    top = argparse.ArgumentParser(
        prog="tools/bench",
        description="Compares compiled modules with their peers: same weights, same input, in turns.",
        epilog="exit: 0 ok, 1 outputs disagree, 2 usage, 5 environment")
    what = top.add_subparsers(dest="what", required=True, metavar="rnn|cnn")
    rnn = what.add_parser(
        "rnn", help="recurrent layers, against ONNX Runtime, OpenVINO and PyTorch",
        epilog="A full run writes RESULTS.md, results.json and rnn.svg to tools/benchmarks, any other to build/bench. "
               "Times mean something on an idle machine only.")
    add_options(rnn, "rnn", "'lstm_256*', or one of the same form, such as gru_129_t50_b4")
    cnn = what.add_parser(
        "cnn", help="convolutional networks, against ONNX Runtime, OpenVINO and ncnn",
        epilog="A full run writes CNN_RESULTS.md, cnn_results.json and cnn.svg to tools/benchmarks, any other to "
               "build/bench. Times mean something on an idle machine only.")
    add_options(cnn, "cnn", "'resnet*'")
    return top


def parse(words):
    top = parser()
    given = top.parse_args(words)
    given.rounds = given.rounds or (8 if given.quick else 20)
    given.seconds = given.seconds or (4 if given.quick else 8)
    given.cases = chosen_cases(given, top)
    return given


def chosen_cases(given, top):
    """In the order of the list, then as named."""
    cases, case_named = (CNN_CASES, cnn_case_named) if given.what == "cnn" else (CASES, rnn_case_named)
    if not given.case:
        return [case for case in cases if case.quick or not given.quick]
    chosen = []
    for pattern in given.case:
        matching = [case for case in cases if fnmatch.fnmatch(case.name, pattern)] or [case_named(pattern)]
        if matching == [None]:
            top.error(f"--case {pattern}: no such case; --list has their names")
        chosen += [case for case in matching if case not in chosen]
    return sorted(chosen, key=lambda case: cases.index(case) if case in cases else len(cases))
