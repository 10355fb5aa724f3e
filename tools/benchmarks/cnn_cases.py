# SPDX-License-Identifier: MIT
"""The convolutional networks, and for each the maximum ratio of rnncc's time to the best peer's.

A name is that of models/generate. With `_b4` at its end a run has 4 images; such a case is not listed and has no goal.
"""
import re
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Case:
    network: str
    title: str
    at_most: float = None  # maximum of rnncc's median over the best peer's; None: no goal
    B: int = 1  # images
    without: tuple = ()  # peers that cannot run all of it

    @property
    def name(self):
        return f"{self.network}_b{self.B}" if self.B > 1 else self.network

    @property
    def quick(self):
        return self.name in QUICK


CASES = [
    Case("resnet18", "ResNet-18", 0.6),
    Case("resnet34", "ResNet-34", 0.58),
    *(Case(f"resnet{depth}", f"ResNet-{depth}", 0.75) for depth in (50, 101, 152)),
    Case("vgg11", "VGG-11", 0.5),
    Case("vgg13", "VGG-13", 0.45),
    *(Case(f"vgg{depth}", f"VGG-{depth}", 0.42) for depth in (16, 19)),
    *(Case(f"densenet{depth}", f"DenseNet-{depth}", 0.75) for depth in (121, 161, 169, 201)),
    Case("inception_v3", "Inception-v3", 0.75),
    Case("mobilenet_v2", "MobileNet-v2", 0.7),
    Case("squeezenet", "SqueezeNet 1.1", 0.7),
    Case("ssd_resnet50", "SSD-ResNet-50", 0.75, without=("ncnn",)),  # its converter does not support NonMaxSuppression
]
LISTED = {case.name: case for case in CASES}
QUICK = ["resnet18", "resnet50", "vgg16", "densenet121", "mobilenet_v2"]


def case_named(name):
    """The case of that name, listed or not; None if the name describes no case."""
    found = re.fullmatch(r"(\w+?)(?:_b([1-9]\d*))?", name)
    if not found or found[1] not in LISTED or found[2] == "1":
        return None
    listed = LISTED[found[1]]
    if not found[2]:
        return listed
    return replace(listed, title=f"{listed.title}, {found[2]} images", at_most=None, B=int(found[2]))
