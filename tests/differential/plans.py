# SPDX-License-Identifier: MIT
"""How groups of random graphs are compiled: FORMS and TARGETS, in turns. A graph is the same whatever its plan, but for
`winograd` and `most_steps`."""
from typing import NamedTuple

TARGETS = ("x86-64-v4", "x86-64-v3", "x86-64")
EXACT = "--no-winograd"


class Plan(NamedTuple):
    target: str
    options: tuple
    winograd: bool  # convolutions may run by Winograd's algorithm, whose results are rounded
    most_steps: int  # operators of a graph, besides one that is due and those that prepare their inputs

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


def plan(number):
    """Each form on each target within len(FORMS) * len(TARGETS) groups; a third of them has long graphs, each form among them."""
    options = FORMS[number % len(FORMS)]
    return Plan(TARGETS[number % len(TARGETS)], options, EXACT not in options, 6 if number // len(FORMS) % 3 else 12)
