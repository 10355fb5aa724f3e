# SPDX-License-Identifier: MIT
"""torch.nn.EmbeddingBag from both of PyTorch's exporters computes what PyTorch does, with any number of bags of any
length: dynamo writes a loop that inserts a row for each bag into a sequence, script a loop that collects the rows."""
import numpy
import pytest

from pytorch.apart import apart
from support import machine
from support.module import Module

machine.need_package("torch")
import torch  # noqa: E402

ROWS, WIDTH = 20, 6
DIMS = {"N": (1, 40), "B": (1, 25), "L": (1, 7)}
FLAT, FULL = ({0: "N"}, {0: "B"}, {0: "N"}), ({0: "B", 1: "L"}, {}, {0: "B", 1: "L"})
# name: (arguments of the layer, axes of ids, offsets and weights)
CASES = {"sum": ({"mode": "sum"}, FLAT[:2]), "mean": ({"mode": "mean"}, FLAT[:2]), "max": ({"mode": "max"}, FLAT[:2]),
         "weighted": ({"mode": "sum"}, FLAT), "to the last offset": ({"mode": "mean", "include_last_offset": True}, FLAT[:2]),
         "padded": ({"mode": "sum", "padding_idx": 3}, FLAT[:2]), "as long, padded": ({"mode": "mean", "padding_idx": 3}, FULL[:1]),
         "as long as each other": ({"mode": "mean"}, FULL[:1]), "as long, weighted": ({"mode": "sum"}, FULL)}


class Bags(torch.nn.Module):
    """Bags beside dense features, as in recommenders: as many bags as rows of these."""

    def __init__(self, **settings):
        super().__init__()
        self.bag = torch.nn.EmbeddingBag(ROWS, WIDTH, **settings)

    def forward(self, dense, ids, offsets=None, weights=None):
        return torch.cat([self.bag(ids, offsets, weights), dense], 1)


class Flat(Bags):
    def forward(self, dense, ids, offsets, weights=None):
        return super().forward(dense, ids, offsets, weights)


class Full(Bags):
    def forward(self, dense, ids, weights=None):
        return super().forward(dense, ids, None, weights)


def feeds_of(rng, axes, last, full, **extents):
    """Offsets rise from 0; where the mode is no maximum, which script leaves at -infinity, bags may be empty."""
    def shape(of_input):
        return [extents[of_input[axis]] for axis in sorted(of_input)]

    feeds = [rng.standard_normal((extents["B"], 2)).astype("f"), rng.integers(0, ROWS // 3, shape(axes[0]))]
    if len(axes) > 1 and axes[1]:
        offsets = numpy.sort(rng.choice(numpy.arange(1, extents["N"] + last), extents["B"] - 1, replace=not full))
        feeds.append(numpy.array([0, *offsets, *[extents["N"]] * last]))
    if len(axes) > 2:
        feeds.append(rng.random(shape(axes[2])).astype("f"))
    return feeds


@pytest.mark.parametrize("name, exporter", [(name, exporter) for name in CASES for exporter in ("dynamo", "script")
                                            if exporter == "dynamo" or "padded" not in name])  # which it cannot write
def test_bags_are_what_pytorch_makes_of_them(from_torch, compile, tmp_path, name, exporter):
    settings, axes = CASES[name]
    last, full, rng = settings.get("include_last_offset", False), settings["mode"] == "max", numpy.random.default_rng(1)
    torch.manual_seed(0)
    network = (Flat if axes[0] == FLAT[0] else Full)(**settings).eval()
    example = [torch.from_numpy(array) for array in feeds_of(rng, axes, last, full, B=5, N=9, L=3)]
    of_inputs = [{0: "B"}, *(dims for dims in axes if dims)]
    if last:
        of_inputs[2] = {0: "B1"}  # one more than there are bags
    path = tmp_path / "bags.onnx"
    apart(from_torch.export, network, example, of_inputs, path, exporter)
    known = {dim for dims in of_inputs for dim in dims.values()} & {*DIMS}
    with Module(compile(path, *(f"--dim={dim}={DIMS[dim][0]}..{DIMS[dim][1]}" for dim in sorted(known)))) as module:
        with module.context(2) as context:
            for extents in ({"B": 1, "N": 2, "L": 1}, {"B": 25, "N": 40, "L": 7}, {"B": 3, "N": 4, "L": 2}):
                arrays = feeds_of(rng, axes, last, full, **extents)
                [got] = context.run(dict(zip((given.name for given in module.inputs), arrays))).values()
                expected = network(*map(torch.from_numpy, arrays)).detach().numpy()
                numpy.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)
