# SPDX-License-Identifier: MIT
"""The networks run blocked from end to end: what is moved rather than computed is told by `rnncc inspect`."""
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "models"))

from networks import NETWORKS  # noqa: E402

# What follows the pooled vector of SqueezeNet: its 1000 channels are no whole number of vectors.
TRANSFORMS = {"resnet50": 1, "densenet121": 1, "inception_v3": 1, "mobilenet_v2": 1, "squeezenet": 2}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_network_is_transformed_at_its_ends_and_concatenates_without_copies(rnncc, tmp_path, name):
    path = NETWORKS[name](size=139 if name == "inception_v3" else 64).write(tmp_path)
    done = rnncc("inspect", path, "--target=x86-64-v4", "--dump-after=insert_layout_transforms")
    assert done.returncode == 0, done.stderr
    nodes = [line.split(" = ")[1] for line in done.stderr.splitlines() if line.startswith("n") and " = " in line]
    transforms = [position for position, node in enumerate(nodes) if node.startswith("LayoutTransform(")]
    assert len(transforms) == TRANSFORMS[name] and transforms[0] == 0
    assert not [line for line in done.stdout.splitlines() if " Concat " in line]
