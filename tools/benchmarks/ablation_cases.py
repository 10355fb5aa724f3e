# SPDX-License-Identifier: MIT
"""The steps from row-major tensors to tuned schedules, and the networks on which each is measured, as in NeoCPU (USENIX
ATC 2019), section 4.2 and table 3. A step's options are complete: it includes all steps before it.
"""
import re
from dataclasses import dataclass

from benchmarks.cnn_cases import LISTED


@dataclass(frozen=True)
class Step:
    name: str
    title: str
    what: str
    options: tuple
    default_schedules: bool = False  # or those that the command line names; else none

    def command_options(self, schedules):
        """The options of rnncc. schedules: from the command line, or None."""
        if not self.default_schedules:
            return [*self.options, "--schedules=none"]
        return [*self.options, *([f"--schedules={schedules}"] if schedules else [])]


DIRECT = "--no-winograd"
STEPS = [
    Step("plain", "plain NCHW", "vectorised along rows, on all threads, activations and sums fused: but no tensor is "
         "blocked", ("--conv=plain", DIRECT)),
    Step("blocked", "blocked convolutions", "NCHW[x]c within each convolution, and transforms around it",
         ("--layout-search=none", DIRECT)),
    Step("eliminated", "transforms eliminated", "what follows a convolution keeps its layout where it can",
         ("--layout-search=greedy", DIRECT)),
    Step("searched", "global search", "the layouts whose schedules and transforms together are predicted to take least",
         ("--layout-search=auto", DIRECT)),
    Step("winograd", "Winograd", "convolutions by Winograd's algorithm where that is predicted to be faster",
         ("--layout-search=auto",)),
    Step("tuned", "tuning", "measured schedules instead of predicted ones", ("--layout-search=auto",), True),
]
BASELINE = STEPS[0].name
TITLES = {step.name: step.title for step in STEPS}



def recorded(explained):
    """[convolutions whose schedule is from a record, all], counted in the output of --explain=conv -v."""
    found = re.findall(r"^\S+: [\d.]+ MFLOP: (.*)$|^  chosen: .*: (.*)$", explained, re.MULTILINE)
    nodes = [len(names.split(", ")) for names, _ in found if names]
    reasons = [reason for _, reason in found if reason]
    return [sum(n for n, reason in zip(nodes, reasons) if reason.startswith("measured")), sum(nodes)]


NETWORKS = ("resnet50", "vgg19", "densenet201", "inception_v3", "ssd_resnet50")
CASES = [LISTED[name] for name in NETWORKS if name in LISTED]
