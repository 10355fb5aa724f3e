# SPDX-License-Identifier: MIT
"""Predicted and measured times of what a module runs: of a recurrent network as a whole, and of each convolution of a
network in its place there. Only Python's own library."""
import re
import statistics
from dataclasses import dataclass

from benchmarks.cost_model import geometric_mean, parse_explained

NEAR = 1.15  # the goal: within this factor, either way
QUIET = 0.95  # of the most that a run's cores multiply, and read from L1: what shares a core takes of the one or of the other
APART = 1.5  # of the least time of a barrier: a virtual machine's cores that take longer are parts of two chips for a while
SLOW = 1.07  # of the fastest slice of a module: others may have come meanwhile


@dataclass(frozen=True)
class Pair:
    """us. calibrated: predicted with measured speeds of the machine, for the same schedule."""
    case: str
    name: str  # of a convolution: its work; of a recurrent case its own
    schedule: str
    measured: float
    predicted: float
    calibrated: float | None

    def ratio(self, calibrated):
        return self.measured / (self.calibrated if calibrated else self.predicted)

    @property
    def kind(self):
        return self.schedule.split(",")[0] if self.name != self.case else "recurrent"


# What rnncc predicts

CANDIDATE = re.compile(r"(\*?) +(ahead|step) +(\d+) +(\d+x *\d+x\d+) +\S+ +(yes|no) +(\d+)" + r" +([\d.]+)" * 5)
STACK = re.compile(r"(\*?) +(wavefront, chunk=\d+|layer by layer) +([\d.]+)")


def candidates(explained):
    """Of what --explain=rnn prints: ({(layer, words of a schedule): us}, keys of those that are chosen). A stack counts
    as a layer of its own."""
    found, chosen, layer = {}, [], 0
    for line in explained.splitlines():
        layer += line.startswith(("layer ", "stack "))
        match = CANDIDATE.fullmatch(line) or STACK.fullmatch(line)
        if match:
            key = (layer, *match.groups()[1:6]) if match.re is CANDIDATE else (layer, match[2])
            found[key] = float(match[match.re.groups])
            chosen += [key] * bool(match[1])
    return found, chosen


def recurrent(case, explained, calibrated, measured):
    """The Pair of a whole recurrent network. calibrated: None, or what --explain=rnn prints with that."""
    found, chosen = candidates(explained)
    stacks = [key for key in chosen if len(key) == 2]
    keys = stacks or chosen  # a stack's time is that of its layers
    others = candidates(calibrated)[0] if calibrated else {}
    known = all(key in others for key in keys)
    words = " ".join(dict.fromkeys(" ".join(key[1:]) for key in chosen))
    return Pair(case, case, words, measured, sum(found[key] for key in keys),
                sum(others[key] for key in keys) if calibrated and known else None)


def chosen_schedules(explained):
    """Work -> (schedule, its nodes), of what --explain=conv -v prints."""
    found = {}
    for line in explained.splitlines():
        if match := re.fullmatch(r"(\S+): [\d.]+ MFLOP: (.*)", line):
            name, nodes = match[1], match[2].split(", ")
        elif match := re.fullmatch(r"  chosen: (\S+): .*", line):
            found[name] = (match[1], nodes)
    return found


def convolutions(case, explained, calibrated, measured):
    """A Pair for each distinct convolution. measured: node -> us."""
    predicted, others = ({work.name: work.predicted for work in parse_explained(text or "")}
                         for text in (explained, calibrated))
    pairs = []
    for name, (schedule, nodes) in chosen_schedules(explained).items():
        times = [measured[node] for node in nodes if node in measured]
        if times:
            pairs.append(Pair(case, name, schedule, statistics.median(times), predicted[name][schedule],
                              others.get(name, {}).get(schedule)))
    return pairs


# What was measured


@dataclass(frozen=True)
class Best:
    """Of all slices of a run of the benchmark."""
    gflops: float
    gbps: float
    meeting_ns: float

    @staticmethod
    def of(slices):
        """Two threads of one core meet sooner than two cores can, but multiply half as much."""
        most = max(each["gflops"] for each in slices)
        return Best(most, max(each["gbps"] for each in slices),
                    min(each["meeting_ns"] for each in slices if each["gflops"] >= QUIET * most))


def is_quiet(one, best):
    return (one["gflops"] >= QUIET * best.gflops and one["gbps"] >= QUIET * best.gbps
            and one["meeting_ns"] <= APART * best.meeting_ns)


def undisturbed(slices, best):
    """Those of a module that began when the cores did at least QUIET of the best GFLOP/s and GB/s and met within APART of
    the least time, less those that took more than SLOW of the fastest. If there are none, the fastest of all."""
    quiet = [each for each in slices if is_quiet(each, best)] or [min(slices, key=lambda each: each["us"])]
    least = min(each["us"] for each in quiet)
    return [each for each in quiet if each["us"] <= SLOW * least]


def measured_run(slices, best):
    return statistics.median(each["us"] for each in undisturbed(slices, best))


def measured_nodes(slices, best):
    """Node -> us of its convolution's kernels."""
    found = {}
    for k, (kernel, node) in enumerate(slices[0]["kernels"]):
        if "_conv_" in kernel:
            us = statistics.median(each["kernel_us"][k] for each in undisturbed(slices, best))
            found[node] = found.get(node, 0) + us
    return found


# Statistics


@dataclass(frozen=True)
class Errors:
    count: int
    near: float  # part within NEAR
    bias: float  # geometric mean of measured over predicted
    quantiles: tuple  # of that ratio: least, 5%, 25%, 50%, 75%, 95%, most


def errors(pairs, calibrated=False):
    """None if there are no such predictions."""
    ratios = sorted(pair.ratio(calibrated) for pair in pairs if not calibrated or pair.calibrated)
    if not ratios:
        return None
    at = [ratios[round(part * (len(ratios) - 1))] for part in (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)]
    return Errors(len(ratios), sum(1 / NEAR <= ratio <= NEAR for ratio in ratios) / len(ratios),
                  geometric_mean(ratios), tuple(at))


def far(pairs):
    """Pairs beyond NEAR, the worst first."""
    off = {pair: max(pair.ratio(False), 1 / pair.ratio(False)) for pair in pairs}
    return sorted((pair for pair in off if off[pair] > NEAR), key=off.get, reverse=True)
