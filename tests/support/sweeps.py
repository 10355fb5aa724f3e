# SPDX-License-Identifier: MIT
"""Which cases of a sweep run by default, the same on every machine. A sweep is a test that compiles networks to see what
they compute, with more cases than FEW. Of those, long tests, quick ones and `--op` choose otherwise, and a case that is
named on the command line runs."""
import os
import zlib
from collections import Counter
from pathlib import Path

from support import amount

FEW = 3
SHARE = 3  # one of so many cases of a sweep runs
BUILDS = {"compile", "rnnrun_of"}  # fixtures
TARGETS = {"target", "isa", "run_on_target"}  # parameters
SWEPT = {"graphs", "kernels", "networks", "modules", "benchmarks"}  # rooms; in others, each case is a property


def is_case(item):
    """Whether it is one of a test that may be a sweep, and not of a table."""
    return (item.path.parent.name in SWEPT and not item.get_closest_marker("every_case") and
            bool(BUILDS & set(item.fixturenames)) and hasattr(item, "callspec"))


def parameters(item):
    """name -> the value, as text that cases of this process share where they have the same object, or an equal one of
    these types. The choice is the same in each process, as nothing is sorted by it."""
    return {name: str(value) if isinstance(value, (str, int, float, tuple, Path, type(None))) else f"#{id(value)}"
            for name, value in item.callspec.params.items()}


def on_some_targets(name, cases):
    """The places of those for the first target and for every second one of the others: tests take these in turn."""
    targets = [next((case[key] for key in sorted(TARGETS & set(case))), None) for case in cases]
    first, *others = dict.fromkeys(targets)
    kept = {first, *others[zlib.crc32(name.encode()) % 2 if len(others) > 1 else 0::2]}
    return [place for place, target in enumerate(targets) if target in kept]


def each_once(values):
    """Places of cases that have each value that several cases have; values: a set for each place, in order."""
    kept, seen = [], set()
    for value in dict.fromkeys(value for case in values.values() for value in sorted(case)):
        if value not in seen:
            kept.append(max((place for place in values if value in values[place]), key=lambda place: len(values[place] - seen)))
            seen |= values[kept[-1]]
    return kept


def chosen(name, cases):
    """The places of the cases that run, of a sweep with this name: on half of the targets, of each parameter whose values recur
    each value, and SHARE of the whole, spread over it. cases: parameter -> value of each."""
    if len(cases) <= FEW:
        return set(range(len(cases)))
    places = on_some_targets(name, cases)
    distinct = Counter(key for key, _ in {pair for place in places for pair in cases[place].items()})
    recurring = {key for key, count in distinct.items() if 2 * count <= len(places)}
    kept = each_once({place: {pair for pair in cases[place].items() if pair[0] in recurring} for place in places})
    rest = [place for place in places if place not in kept]
    more = min(len(rest), max(FEW, -(-len(cases) // SHARE)) - len(kept))
    return {*kept, *(rest[k * len(rest) // more] for k in range(more))}


def named_by(words):
    """The cases that a command line names, by file and name."""
    return {(Path(file).name, case) for file, _, case in (word.partition("::") for word in words) if "[" in case}


def left_out(items, words):
    """The ids of the cases that do not run. words: the command line's."""
    named = named_by(words)
    if amount.long_tests() or amount.quick_tests() or "RNNCC_PROFILES" in os.environ:  # coverage chooses by itself
        return set()
    sweeps = {}
    for item in items:
        if is_case(item) and (item.path.name, item.nodeid.partition("::")[2]) not in named:
            sweeps.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return {item.nodeid for name, cases in sweeps.items() for kept in [chosen(name, [parameters(item) for item in cases])]
            for place, item in enumerate(cases) if place not in kept}
