# SPDX-License-Identifier: MIT
"""tools/fuzz --differential [--hours=H] [--seed=S] [--graphs=K] [--group=N]: random graphs of all operators, compiled and
compared with the reference interpreter and ONNX Runtime, on one CPU.

H hours (default 1) of groups of K graphs (default 50) that are compiled together, each by another plan: target and forced
schedules. A finding shrinks to a small model, which is printed with the command that repeats it; it does not end the run.
--group: that group alone. Exit 1 if there is a finding. A seed makes the same graphs in each run; without one it is drawn.
"""
import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
from conftest import ROOT  # noqa: E402 (in that folder; it adds the package rnncc)
from differential import plans, report  # noqa: E402
from differential.check import Checker  # noqa: E402
from differential.grow import random_case  # noqa: E402


def options():
    parser = argparse.ArgumentParser(prog="tools/fuzz --differential", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    parser.add_argument("--graphs", type=int, default=50)
    parser.add_argument("--group", type=int)
    given = parser.parse_args()
    if given.hours <= 0 or given.graphs <= 0 or given.seed < 0 or (given.group or 0) < 0:
        parser.error("expected numbers above 0")
    return given


def check_group(given, number, folder):
    """Prints what is wrong with it. Returns how many findings there are, and the counts."""
    plan = plans.plan(number)
    checker = Checker(folder, threads=plan.threads)
    cases = [random_case(given.seed, number * given.graphs + k, prefix=f"g{k}_", **plan.of_graphs) for k in range(given.graphs)]
    found = checker.check(cases, *plan.words)
    counts = dict(checker.counts)
    for finding in found:
        print(report.told(finding, checker, report.command(given.seed, number, given.graphs)), flush=True)
    return len(found), counts


def main():
    given, findings, graphs, number = options(), 0, 0, 0
    until = time.monotonic() + 3600 * given.hours
    print(f"tools/fuzz: seed {given.seed}, build {os.environ.get('RNNCC_BUILD', ROOT / 'build')}", flush=True)
    with tempfile.TemporaryDirectory(prefix="rnncc-fuzz-") as folder:
        while given.group is not None or time.monotonic() < until:
            found, counts = check_group(given, number if given.group is None else given.group, Path(folder))
            findings, graphs, number = findings + found, graphs + counts["compiled"], number + 1
            if given.group is not None:
                break
            print(f"tools/fuzz: {number} groups, {graphs} graphs compiled, {findings} findings", flush=True)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
