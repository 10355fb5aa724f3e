# SPDX-License-Identifier: MIT
"""How good the compiler's predicted times are: what `rnncc inspect --explain=conv -v` predicts of each schedule of a
convolution, beside what `rnncc tune` recorded of it. Only Python's own library.
"""
import json
import math
import re
from dataclasses import dataclass, field
from itertools import groupby
from statistics import mean, median

GOOD = ("ok", "best")  # statuses of records that are times
MIN_SCHEDULES = 5  # minimum schedules of a workload for a rank correlation


@dataclass
class Workload:
    """A convolution, as records name it."""
    name: str
    nodes: int = 1  # of a network
    predicted: dict = field(default_factory=dict)  # schedule -> us, those first that the compiler prefers
    measured: dict = field(default_factory=dict)  # schedule -> us

    @property
    def both(self):
        """[(predicted, measured)] of the schedules that have both."""
        return [(us, self.measured[schedule]) for schedule, us in self.predicted.items() if schedule in self.measured]

    @property
    def first(self):
        """The schedule that is taken without records; if it was not measured, the next that was."""
        return next((schedule for schedule in self.predicted if schedule in self.measured), None)

    @property
    def first_is_measured(self):
        return next(iter(self.predicted), None) in self.measured

    @property
    def best(self):
        """The fastest that may still be chosen."""
        return min((s for s in self.measured if s in self.predicted), key=self.measured.get, default=None)

    @property
    def behind(self):
        """Time of the first choice over that of the best."""
        return self.measured[self.first] / self.measured[self.best]

    @property
    def correlation(self):
        return spearman(self.both) if len(self.both) >= MIN_SCHEDULES else None


def parse_explained(text):
    """The workloads of the output of --explain=conv -v."""
    found = []
    for line in text.splitlines():
        if match := re.fullmatch(r"(\S+): [\d.]+ MFLOP: (.*)", line):
            found.append(Workload(match[1], nodes=match[2].count(", ") + 1))
        elif match := re.fullmatch(r"[ *] +([\d.]+)  (\S+)", line):
            found[-1].predicted[match[2]] = float(match[1])
    return found


MACHINE = ("cores", "l1", "l2", "l3")  # of a record's key


def convolution_records(lines, target):
    for line in lines:
        try:
            record = json.loads(line)
            if record["family"] == "conv" and record["target"] == target:
                yield record
        except (ValueError, KeyError, TypeError):
            continue  # rnncc warns of lines that are no records


def read_measured(lines, target):
    """workload -> schedule -> us, of the target's records of convolutions on the machine of the last record. Of two
    records of one schedule the later counts; trials that crashed, hung or were wrong have no time."""
    records, measured = list(convolution_records(lines, target)), {}
    for record in records:
        if any(record.get(key) != records[-1].get(key) for key in MACHINE):
            continue
        schedules = measured.setdefault(record["workload"], {})
        if record.get("status", "best") in GOOD and record["median_us"] > 0:
            schedules[record["schedule"]] = record["median_us"]
        else:
            schedules.pop(record["schedule"], None)
    return measured


# Statistics


def ranks(values):
    """From 1; equal values share the mean of their ranks."""
    found, before = [0.0] * len(values), 0
    for _, same in groupby(sorted(range(len(values)), key=values.__getitem__), key=values.__getitem__):
        same = list(same)
        for k in same:
            found[k] = before + (len(same) + 1) / 2
        before += len(same)
    return found


def spearman(pairs):
    """Correlation of the ranks, -1 to 1; None if all values of one side are equal."""
    x, y = (ranks(side) for side in zip(*pairs))
    dx, dy = ([value - mean(side) for value in side] for side in (x, y))
    norm = math.sqrt(sum(d * d for d in dx) * sum(d * d for d in dy))
    return sum(a * b for a, b in zip(dx, dy)) / norm if norm else None


def geometric_mean(values):
    return math.exp(mean(map(math.log, values)))


@dataclass
class Summary:
    """Statistics of some workloads."""
    workloads: int
    schedules: int  # with both times
    correlations: list
    overall: float  # rank correlation of all times of all workloads, None: too few
    behind: float  # geometric mean of first over best, None: nothing measured
    within: float  # part of the workloads where the first choice is within 10% of the best
    off: float  # typical factor between predicted and measured: exp of the logarithms' standard deviation
    bias: float  # geometric mean of measured over predicted


def summarise(workloads):
    known = [w for w in workloads if w.best]
    pairs = [pair for w in known for pair in w.both]
    logs = [math.log(measured / predicted) for predicted, measured in pairs if predicted > 0]
    spread = math.sqrt(mean((value - mean(logs)) ** 2 for value in logs)) if logs else None
    return Summary(workloads=len(known), schedules=len(pairs),
                   correlations=[w.correlation for w in known if w.correlation is not None],
                   overall=spearman(pairs) if len(pairs) >= MIN_SCHEDULES else None,
                   behind=geometric_mean(w.behind for w in known) if known else None,
                   within=mean(w.behind <= 1.1 for w in known) if known else None,
                   off=math.exp(spread) if logs else None, bias=math.exp(mean(logs)) if logs else None)


def network_behind(workloads):
    """Time of all of a network's convolutions by first choice, over that by the best; None if nothing is known."""
    known = [w for w in workloads if w.best]
    if not known:
        return None
    return (sum(w.nodes * w.measured[w.first] for w in known) / sum(w.nodes * w.measured[w.best] for w in known))


def median_of(values):
    return median(values) if values else None
