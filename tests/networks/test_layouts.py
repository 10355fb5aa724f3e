# SPDX-License-Identifier: MIT
"""The networks run blocked from end to end: what is moved rather than computed is told by `rnncc inspect`."""
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "models"))

from networks import NETWORKS  # noqa: E402

# What follows the pooled vector of SqueezeNet: its 1000 channels are no whole number of vectors.
TRANSFORMS = {"resnet50": 1, "densenet121": 1, "inception_v3": 1, "mobilenet_v2": 1, "squeezenet": 2}


def passed(rnncc, path):
    """The nodes after transforms were inserted, and what is printed of the kernels."""
    done = rnncc("inspect", path, "--target=x86-64-v4", "--dump-after=insert_layout_transforms")
    assert done.returncode == 0, done.stderr
    return [line.split(" = ")[1] for line in done.stderr.splitlines() if line.startswith("n") and " = " in line], done.stdout


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_network_is_transformed_at_its_ends_and_concatenates_without_copies(rnncc, tmp_path, name):
    path = NETWORKS[name](size=139 if name == "inception_v3" else 64).write(tmp_path)
    nodes, kernels = passed(rnncc, path)
    transforms = [position for position, node in enumerate(nodes) if node.startswith("LayoutTransform(")]
    assert len(transforms) == TRANSFORMS[name] and transforms[0] == 0
    assert not [line for line in kernels.splitlines() if " Concat " in line]


def test_what_a_detector_predicts_is_permuted_from_where_it_stands(rnncc, tmp_path):
    """The image is transformed. That the heads' results are read channel by channel is no other transform."""
    nodes, _ = passed(rnncc, NETWORKS["ssd_resnet50"](size=64).write(tmp_path))
    assert len([node for node in nodes if node.startswith("LayoutTransform(")]) == 1
    assert len([node for node in nodes if node.startswith("Transpose(")]) == 13
