# SPDX-License-Identifier: MIT
"""U-Nets, feature pyramids and segmentation heads from both of PyTorch's exporters: the compiled module computes the same
as PyTorch, of any height and width, odd ones too."""
import numpy
import pytest

from pytorch.apart import apart
from pytorch.test_exporters import compare
from support import amount, machine
from support.module import Module

machine.need_package("torch")
import torch  # noqa: E402
from pytorch.modules import EXPORTERS, sized  # noqa: E402
from pytorch.plane_networks import LARGEST, LEAST, PLANES, plain_u_net  # noqa: E402

BATCHES = 3
SIZES = 5  # of each network
# By default of each kind some, with one exporter.
COMMON = ["strided_u_net", "half_pixel_u_net", "bicubic_pyramid", "reflecting_to_multiple"]
CASES = [(name, exporter) for k, name in enumerate(PLANES if amount.long_tests() else COMMON)
         for exporter in amount.half(EXPORTERS, k)]


@pytest.mark.parametrize(("name", "exporter"), CASES)
def test_network_of_any_extents_computes_what_pytorch_does(from_torch, compile, tmp_path, name, exporter):
    torch.manual_seed(0)
    module, inputs, axes = PLANES[name]()
    module.eval()
    path, rng = tmp_path / f"{name}.onnx", numpy.random.default_rng(1)
    apart(from_torch.export, module, inputs, axes, path, exporter, None)
    names = sorted(set(axes[0].values()) - {"batch"})
    bounds = [f"--dim=batch=1..{BATCHES}", *[f"--dim={name}={LEAST}..{LARGEST}" for name in names]]
    with Module(compile(path, *bounds)) as compiled, compiled.context(2) as context:
        compare(context, module, inputs)
        for k in range(SIZES):
            extents = {name: int(rng.integers(LEAST, LARGEST) // 2 * 2 + (k + i) % 2) for i, name in enumerate(names)}
            compare(context, module, list(sized(inputs, axes, extents | {"batch": int(rng.integers(1, BATCHES + 1))})))


@pytest.mark.parametrize("exporter", amount.half(EXPORTERS, 1))
def test_a_u_net_that_pads_nothing_runs_at_multiples(from_torch, compile, tmp_path, exporter):
    torch.manual_seed(0)
    module, inputs, axes = plain_u_net()
    module.eval()
    path = tmp_path / "u_net.onnx"
    apart(from_torch.export, module, inputs, axes, path, exporter, None)
    bounds = [f"--dim=batch=1..{BATCHES}", "--dim=height=16..64:8", "--dim=width=8..40..72:8"]
    with Module(compile(path, *bounds)) as compiled, compiled.context(2) as context:
        compare(context, module, inputs)
        for extents in ({"height": 16, "width": 72}, {"height": 64, "width": 8}, {"height": 24, "width": 24}):
            compare(context, module, list(sized(inputs, axes, extents | {"batch": 2})))
