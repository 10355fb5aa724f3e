# SPDX-License-Identifier: MIT
"""The command line of tools/bench."""
import argparse
import fnmatch
import os
import shlex
from pathlib import Path

from benchmarks.ablation_cases import CASES as ABLATION_CASES
from benchmarks.cases import CASES
from benchmarks.cases import case_named as rnn_case_named
from benchmarks.cnn_cases import CASES as CNN_CASES
from benchmarks.cnn_cases import case_named as cnn_case_named
from benchmarks.environment import PEERS, UNTUNED
from benchmarks.isas import OF_TARGET
from benchmarks.lowp_cases import CASES as LOWP_CASES
from benchmarks.lowp_cases import case_named as lowp_case_named
from benchmarks.product_cases import CASES as PRODUCT_CASES
from benchmarks.product_cases import case_named as product_case_named


def thread_counts(text):
    counts = [int(part) for part in text.split(",")]
    if not counts or min(counts) < 1:
        raise ValueError
    return counts


thread_counts.__name__ = "list of thread counts"


def one_thread_count(text):
    return [positive(int)(text)]


one_thread_count.__name__ = "thread count"


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


def add_peer_options(sub, what, example):
    sub.add_argument("--quick", action="store_true", help="a few of the cases, for a shorter time: some three minutes")
    sub.add_argument("--case", action="append", default=[], metavar="PATTERN", help=f"cases by name, such as {example}; "
                     "may repeat")
    sub.add_argument("--without", action="append", default=[], choices=(*UNTUNED.get(what, ()), *PEERS[what]),
                     help=f"leaves a peer{' or the untuned modules' if what in UNTUNED else ''} out; may repeat")
    sub.add_argument("--threads", type=thread_counts, default=cores(), metavar="1,2,...",
                     help="thread counts to choose from; default: up to all cores")
    sub.set_defaults(schedules=None)
    add_target(sub, "; on a CPU that has more, peers are held to the same instructions")
    add_options(sub, "20; quick 8", "8; quick 4")


def add_ablation_options(sub):
    sub.add_argument("case", nargs="*", default=[], metavar="NETWORK", help="of --list, or a pattern of names; "
                     "default: all")
    sub.add_argument("--threads", type=one_thread_count, default=cores()[-1:], metavar="N", help="default: all cores")
    sub.add_argument("--schedules", metavar="FILE", help="records of `rnncc tune` for the last step; default: those "
                     "that rnncc has")
    sub.set_defaults(quick=False, without=[])
    add_target(sub)
    add_options(sub, "20", "30")


def add_compare_options(sub):
    sub.add_argument("other", type=Path, metavar="RNNCC", help="the other compiler, such as that of a build of an older "
                     "commit")
    sub.add_argument("--quick", action="store_true", help="a few of the cases")
    sub.add_argument("--case", action="append", default=[], metavar="PATTERN", help="cases by name, such as 'resnet*' "
                     "or 'lstm_256*'; may repeat")
    sub.add_argument("--threads", type=one_thread_count, default=cores()[-1:], metavar="N", help="default: all cores")
    sub.set_defaults(schedules=None, without=[])
    add_target(sub)
    add_options(sub, "12", "3")


def add_target(sub, more=""):
    sub.add_argument("--target", choices=OF_TARGET, help="what the modules are compiled for, with this machine's caches "
                     f"and CPUs{more}. Default: all that this CPU has")


def add_options(sub, rounds, seconds):
    """rounds, seconds: their defaults, in words."""
    sub.add_argument("--list", action="store_true", help="prints the names of the cases")
    sub.add_argument("--rounds", type=positive(int), metavar="N", help=f"maximum turns of each contestant ({rounds})")
    sub.add_argument("--seconds", type=positive(float), metavar="S", help=f"for the turns of a case, about ({seconds})")
    sub.add_argument("--under", type=shlex.split, default=[], metavar="COMMAND",
                     help="measures each case under this command, such as 'chrt -f 1'")
    sub.add_argument("--rnncc", type=shlex.split, default=[], metavar="OPTIONS",
                     help="compiles with these options, such as --rnncc=--schedules=none")
    sub.add_argument("--output", metavar="DIRECTORY", help="where the page goes")


def case_parser(what, description, default="all", **more):
    """Of a benchmark that has a command line of its own: which cases, and --list."""
    top = argparse.ArgumentParser(prog=f"tools/bench {what}", description=description, **more)
    top.add_argument("case", nargs="*", help=f"of --list, or a pattern of names; default: {default}")
    top.add_argument("--list", action="store_true", help="prints the names of the cases")
    return top


def add_turns(top, others):
    """Of a table of contestants that take turns on a number of threads."""
    top.add_argument("--without", action="append", default=[], choices=others, help="leaves a peer out; may repeat")
    top.add_argument("--threads", type=positive(int), default=2, metavar="N", help="of all (2)")
    top.add_argument("--turns", type=positive(int), default=9, metavar="N", help="of each (9)")
    top.add_argument("--record", type=Path, metavar="PAGE.md", help="writes the tables there, too")


def parse_cases(top, words, cases):
    """What is given, and the names of the cases that it chooses."""
    given = top.parse_args(words)
    given.names = chosen_names(given.case, list(cases), "case", top)
    return given


# Those that have command lines of their own, which tools/bench calls.
OWN = {
    "model": "predicted times of convolutions, against measured ones",
    "predict": "predicted times of all that runs, against measured ones",
    "static": "loops, against what other CPUs could do at best",
    "width": "a width that only the run knows, against known ones",
    "exported": "what PyTorch exports, against ONNX Runtime",
    "deepcpu": "the applications of DeepCPU's paper, against ONNX Runtime, OpenVINO and PyTorch",
    "blocks": "blocks of networks that read text, against the same graph unfused, ONNX Runtime and PyTorch",
    "train": "training steps of recurrent layers, against PyTorch's",
    "steps": "training steps of convolutional networks and losses, against PyTorch's",
    "fft": "Fourier transforms, against pocketfft and ONNX Runtime",
    "call": "what a call from Python adds to the run, against ONNX Runtime",
    "weights": "setting weights, against a copy of as many bytes",
}


def parser():
    top = argparse.ArgumentParser(
        prog="tools/bench",
        description="Compares compiled modules with their peers, or with modules made without a step of the "
                    "compiler: same weights, same input, in turns.",
        epilog="exit: 0 ok, 1 outputs disagree, 2 usage, 5 environment")
    what = top.add_subparsers(dest="what", required=True, metavar="BENCHMARK")
    rnn = what.add_parser(
        "rnn", help="recurrent layers, against ONNX Runtime, OpenVINO and PyTorch",
        epilog="Writes RESULTS.avx512.md, results.avx512.json and rnn.avx512.svg, or those of another instruction set, "
               "to build/bench, and after a full run to tools/benchmarks. Times mean something on an idle machine only.")
    add_peer_options(rnn, "rnn", "'lstm_256*', or one of the same form, such as gru_129_t50_b4")
    cnn = what.add_parser(
        "cnn", help="convolutional networks, tuned and untuned, against ONNX Runtime, OpenVINO and ncnn",
        epilog="Writes CNN_RESULTS.avx512.md, cnn_results.avx512.json and cnn.avx512.svg, or those of another "
               "instruction set, to build/bench, and after a full run to tools/benchmarks. Times mean something on an "
               "idle machine only.")
    add_peer_options(cnn, "cnn", "'resnet*'")
    products = what.add_parser(
        "products", help="matrix products, and networks of attention and recurrent layers, against ONNX Runtime and "
        "OpenVINO",
        epilog="Writes PRODUCT_RESULTS.avx512.md, product_results.avx512.json and products.avx512.svg, or those of "
               "another instruction set, to build/bench, and after a full run to tools/benchmarks. Times mean something "
               "on an idle machine only.")
    add_peer_options(products, "products", "'encoder*', or one of the same form, such as linear_64x100x30 or "
                     "decoder_t50_b4")
    lowp = what.add_parser(
        "lowp", help="quantised layers and networks, against ONNX Runtime's and OpenVINO's, and against f32",
        epilog="Writes LOWP_RESULTS.avx512.md, lowp_results.avx512.json and lowp.avx512.svg, or those of another "
               "instruction set, to build/bench, and after a full run to tools/benchmarks. With --target=x86-64-v3 all "
               "are held to AVX2, without VNNI. Times mean something on an idle machine only.")
    add_peer_options(lowp, "lowp", "'lstm*', or one of the same form, such as lstm_300_t50 or encoder_t64_b1_dynamic")
    ablation = what.add_parser(
        "ablation", help="what each step of the compiler brings to convolutional networks",
        epilog="Writes ABLATION_RESULTS.avx512.md, ablation_results.avx512.json and ablation.avx512.svg, or those of "
               "another instruction set, to build/bench, and after a full run to tools/benchmarks. Times mean something "
               "on an idle machine only.")
    add_ablation_options(ablation)
    compare = what.add_parser(
        "compare", help="modules of this rnncc, against those of another: recurrent layers and convolutional networks",
        epilog="Writes COMPARE_RESULTS.md and compare_results.json to build/bench. Times mean something on an idle "
               "machine only.")
    add_compare_options(compare)
    for name, says in OWN.items():
        what.add_parser(name, help=says)
    return top


DEFAULTS = {"ablation": (20, 30), "compare": (12, 3)}  # rounds and seconds, where they are not those of peers


def any_case_named(name):
    return rnn_case_named(name) or cnn_case_named(name)


def parse(words):
    top = parser()
    given = top.parse_args(words)
    given.rounds = given.rounds or DEFAULTS.get(given.what, (8 if given.quick else 20, 0))[0]
    given.seconds = given.seconds or DEFAULTS.get(given.what, (0, 4 if given.quick else 8))[1]
    if any(option.startswith("--target") for option in given.rnncc):
        top.error("--rnncc: expected no --target: peers are to know it, too; give it to tools/bench")
    if given.what == "compare" and not os.access(given.other, os.X_OK):
        top.error(f"expected the path of an rnncc, found {given.other}")
    given.cases = chosen_cases(given, top)
    return given


def chosen_names(patterns, names, what, top):
    """The names that a pattern matches, in their order; all without patterns."""
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            top.error(f"{pattern}: no such {what}; --list has their names")
    return [name for name in names if not patterns or any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]


def chosen_cases(given, top):
    """The chosen cases in the order of the list, then unlisted ones as named."""
    cases, case_named = {"rnn": (CASES, rnn_case_named), "cnn": (CNN_CASES, cnn_case_named),
                         "products": (PRODUCT_CASES, product_case_named),
                         "lowp": (LOWP_CASES, lowp_case_named),
                         "ablation": (ABLATION_CASES, cnn_case_named),
                         "compare": (CASES + CNN_CASES, any_case_named)}[given.what]
    if not given.case:
        return [case for case in cases if case.quick or not given.quick]
    chosen = []
    for pattern in given.case:
        matching = [case for case in cases if fnmatch.fnmatch(case.name, pattern)] or [case_named(pattern)]
        if matching == [None]:
            top.error(f"{pattern}: no such case; --list has their names")
        chosen += [case for case in matching if case not in chosen]
    return sorted(chosen, key=lambda case: cases.index(case) if case in cases else len(cases))
