# SPDX-License-Identifier: MIT
"""How groups of random graphs are compiled and run: FORMS, TARGETS and THREADS, in turns. A graph is the same whatever its
plan, but for `winograd` and `most_steps`."""
from typing import NamedTuple

TARGETS = ("x86-64-v4", "x86-64-v3", "x86-64")
EXACT = "--no-winograd"
THREADS = (2, 3, 8)


class Plan(NamedTuple):
    target: str
    options: tuple
    winograd: bool  # convolutions may run by Winograd's algorithm, whose results are rounded
    most_steps: int  # operators of a graph, besides one that is due and those that prepare their inputs
    threads: tuple  # numbers of them that must give the same bits

    @property
    def words(self):
        return (f"--target={self.target}", *self.options)

    @property
    def of_graphs(self):
        return {"winograd": self.winograd, "most_steps": self.most_steps}


FORMS = [
    (EXACT,), (), (EXACT, "--conv=direct"), (EXACT, "--conv=plain"), ("--conv=winograd",), (EXACT, "--layout-search=wide"),
    (EXACT, "--rnn=workers=2"), (EXACT, "--layout-search=none"), (EXACT, "--rnn=input=step"),
    (EXACT, "--conv=plain,flat=0,w=1,k=3,tiles=1", "--rnn=chunk=3"), (EXACT, "--threads=8"),
    (EXACT, "--conv=direct,oc=2,px=1,pass=2,groups=1,tiles=2", "--rnn=workers=3,batch_parts=2"),
    (EXACT, "--conv=depthwise,px=3", "--layout-search=greedy"), ("--conv=winograd,tile=2", "--rnn=workers=4,depth_block=16"),
]


ONCE = len(FORMS) * len(TARGETS)  # groups that have each form on each target


def plan(number):
    """A third of the groups has long graphs, each form among them. Those of the first round, which the tests have by
    default, are shorter yet."""
    options, few = FORMS[number % len(FORMS)], number // len(FORMS) % 3
    steps = (3 if few else 5) if number < ONCE else (6 if few else 12)
    return Plan(TARGETS[number % len(TARGETS)], options, EXACT not in options, steps, (1, THREADS[number // 2 % len(THREADS)]))
