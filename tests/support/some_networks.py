# SPDX-License-Identifier: MIT
"""One network of each kind of models/networks, for sweeps over networks; in long tests all."""
import sys

from conftest import ROOT

from support.amount import long_tests

sys.path.insert(0, str(ROOT / "models"))

from networks import NETWORKS  # noqa: E402

SOME_NETWORKS = list(NETWORKS) if long_tests() else [
    "resnet18", "vgg11", "densenet121", "inception_v3", "mobilenet_v2", "squeezenet", "ssd_resnet50"]
