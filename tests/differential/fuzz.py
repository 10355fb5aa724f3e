# SPDX-License-Identifier: MIT
"""tools/fuzz --differential [--hours=H] [--seed=S] [--graphs=K] [--group=N]: random graphs of all operators, compiled and
compared with the reference interpreter and ONNX Runtime, on one CPU.

H hours (default 1) of groups of K graphs (default 50) that are compiled together, each by another plan: target and forced
schedules. Groups for vectors that this CPU lacks are left out. A finding shrinks to a small model, which is printed with the
command that repeats it; it does not end the run. --group: that group alone. Exit 1 if there is a finding, 5 if this CPU cannot
run that group. A seed makes the same graphs in each run; without one it is drawn.
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
from support.machine import ISAS, lacking_isa  # noqa: E402


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


def lacking(number):
    """What this CPU lacks for the group, in words, or None."""
    isa = lacking_isa(f"--target={plans.plan(number).target}")
    return isa and f"this CPU has no {ISAS[isa][0]}"


def check_groups(given, folder):
    """Until the time is over. Returns how many findings there are."""
    findings, graphs, groups, number = 0, 0, 0, 0
    until = time.monotonic() + 3600 * given.hours
    while time.monotonic() < until:
        if not lacking(number):
            found, counts = check_group(given, number, folder)
            findings, graphs, groups = findings + found, graphs + counts["compiled"], groups + 1
            print(f"tools/fuzz: {groups} groups, {graphs} graphs compiled, {findings} findings", flush=True)
        number += 1
    return findings


def main():
    given = options()
    print(f"tools/fuzz: seed {given.seed}, build {os.environ.get('RNNCC_BUILD', ROOT / 'build')}", flush=True)
    why = given.group is not None and lacking(given.group)
    if why:
        print(f"tools/fuzz: group {given.group} is for {plans.plan(given.group).target}: {why}", file=sys.stderr)
        return 5
    with tempfile.TemporaryDirectory(prefix="rnncc-fuzz-") as folder:
        found = check_groups(given, Path(folder)) if given.group is None else check_group(given, given.group, Path(folder))[0]
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
