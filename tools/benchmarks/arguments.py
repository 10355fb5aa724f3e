# SPDX-License-Identifier: MIT
"""The command line of tools/bench."""
import argparse
import fnmatch
import os
import shlex

from benchmarks.cases import CASES, case_named
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


def parser():
    top = argparse.ArgumentParser(
        prog="tools/bench",
        description="Compares compiled modules with their peers: same weights, same input, in turns.",
        epilog="exit: 0 ok, 1 outputs disagree, 2 usage, 5 environment")
    what = top.add_subparsers(dest="what", required=True, metavar="rnn")
    rnn = what.add_parser(
        "rnn", help="recurrent layers, against ONNX Runtime, OpenVINO and PyTorch",
        epilog="A full run writes RESULTS.md, results.json and rnn.svg to tools/benchmarks, any other to build/bench. "
               "Times mean something on an idle machine only.")
    rnn.add_argument("--quick", action="store_true", help="a few of the cases, for a shorter time: under three minutes")
    rnn.add_argument("--case", action="append", default=[], metavar="PATTERN",
                     help="cases by name, such as 'lstm_256*', or one of the same form, such as "
                          "gru_129_t50_b4; may repeat")
    rnn.add_argument("--list", action="store_true", help="prints the names of the cases")
    rnn.add_argument("--without", action="append", default=[], choices=PEERS, help="leaves a peer out; may repeat")
    rnn.add_argument("--threads", type=thread_counts, default=cores(), metavar="1,2,...",
                     help="thread counts to choose from; default: up to all cores")
    rnn.add_argument("--rounds", type=positive(int), metavar="N", help="turns of each contestant at most (20; quick 8)")
    rnn.add_argument("--seconds", type=positive(float), metavar="S", help="for the turns of a case, about (8; quick 4)")
    rnn.add_argument("--under", type=shlex.split, default=[], metavar="COMMAND",
                     help="measures each case under this command, such as 'chrt -f 1'")
    rnn.add_argument("--rnncc", type=shlex.split, default=[], metavar="OPTIONS",
                     help="compiles with these options, such as --rnncc=--target=x86-64-v3")
    rnn.add_argument("--output", metavar="DIRECTORY", help="where the page goes")
    return top


def parse(words):
    top = parser()
    given = top.parse_args(words)
    if given.what == "rnn":
        given.rounds = given.rounds or (8 if given.quick else 20)
        given.seconds = given.seconds or (4 if given.quick else 8)
        given.cases = chosen_cases(given, top)
    return given


def chosen_cases(given, top):
    """In the order of the list, then as named."""
    if not given.case:
        return [case for case in CASES if case.quick or not given.quick]
    chosen = []
    for pattern in given.case:
        matching = [case for case in CASES if fnmatch.fnmatch(case.name, pattern)] or [case_named(pattern)]
        if matching == [None]:
            top.error(f"--case {pattern}: no such case; --list has their names")
        chosen += [case for case in matching if case not in chosen]
    return sorted(chosen, key=lambda case: CASES.index(case) if case in CASES else len(CASES))
