# SPDX-License-Identifier: MIT
"""The networks of models/networks; and one of each kind, for sweeps over them, in long tests all."""
import sys

from conftest import ROOT

from support.amount import long_tests

sys.path.insert(0, str(ROOT / "models"))

from networks import NETWORKS  # noqa: E402
from networks.compare import error  # noqa: E402, F401

SOME_NETWORKS = list(NETWORKS) if long_tests() else [
    "resnet18", "vgg11", "densenet121", "inception_v3", "mobilenet_v2", "squeezenet", "ssd_resnet50"]
