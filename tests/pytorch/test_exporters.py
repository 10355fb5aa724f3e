# SPDX-License-Identifier: MIT
"""Networks from both of PyTorch's exporters, of opsets 18 to 23: the compiled module computes the same as PyTorch, with
every extent."""
import importlib.machinery
import importlib.util
import logging

import numpy
import pytest

from conftest import ROOT
from pytorch.apart import apart
from support import amount, machine
from support.module import Module

machine.need_package("torch")
import torch  # noqa: E402
from pytorch import image_networks, sequence_networks, speech_networks  # noqa: E402, F401
from pytorch.modules import DIMS, NETWORKS  # noqa: E402

TOLERANCE = 1e-4  # relative to the largest result
EXPORTERS = ("script", "dynamo")
SIZES = 3  # besides the example's
OPSETS = range(18, 24)  # those that PyTorch 2.13 writes
# It takes these extents for those of the example, or cannot decompose recurrent layers of that many steps.
STATIC_FOR_DYNAMO = {"deep_speech": {"frames"}, "voice_activity": {"frames"}, "elman_tagger": {"length"}}
# Nor can it trace its own encoder layer ("argument 'is_causal' must be bool, not Tensor") and packed sequences ("argument
# 'size' failed to unpack").
NOT_EXPORTED = {("library_encoder", "script"), ("packed_bilstm", "dynamo")}
CASES = [(name, exporter) for k, name in enumerate(NETWORKS)
         for exporter in amount.half(EXPORTERS, k) if (name, exporter) not in NOT_EXPORTED]


@pytest.fixture(scope="module")
def from_torch():
    loader = importlib.machinery.SourceFileLoader("from_torch", str(ROOT / "tools" / "from_torch"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("from_torch", loader))
    loader.exec_module(module)
    torch.set_num_threads(1)
    logging.getLogger("torch").setLevel(logging.ERROR)
    return module


def axes_for(name, exporter, axes):
    fixed = STATIC_FOR_DYNAMO.get(name, set()) if exporter == "dynamo" else set()
    return [{axis: dim for axis, dim in of_input.items() if dim not in fixed} for of_input in axes]


def sized(inputs, axes, extents):
    """Other inputs of the same kind, at these extents."""
    for tensor, of_input in zip(inputs, axes):
        shape = [extents.get(of_input.get(axis), extent) for axis, extent in enumerate(tensor.shape)]
        if tensor.is_floating_point():
            yield torch.randn(shape)
        else:
            yield torch.randint(0, int(tensor.max()) + 1, shape)


def compare(context, module, inputs):
    with torch.no_grad():
        expected = module(*inputs)
    outputs = context.run({described.name: tensor.numpy() for described, tensor in zip(context.module.inputs, inputs)})
    expected = expected if isinstance(expected, tuple) else (expected,)
    assert len(outputs) == len(expected)
    for got, wanted in zip(outputs.values(), expected, strict=True):
        bound = TOLERANCE * float(wanted.abs().max())
        numpy.testing.assert_allclose(got, wanted.numpy(), rtol=0, atol=bound)


@pytest.mark.parametrize(("name", "exporter"), CASES)
def test_network_computes_what_pytorch_does(from_torch, compile, tmp_path, name, exporter):
    torch.manual_seed(0)
    module, inputs, axes = NETWORKS[name]()
    module.eval()
    axes = axes_for(name, exporter, axes)
    path = tmp_path / f"{name}.onnx"
    opset = OPSETS[list(NETWORKS).index(name) % len(OPSETS)] if exporter == "dynamo" else None
    apart(from_torch.export, module, inputs, axes, path, exporter, opset)
    names = sorted({dim for of_input in axes for dim in of_input.values()})
    bounds = [f"--dim={dim}={DIMS[dim][0]}..{DIMS[dim][1]}" for dim in names]
    rng = numpy.random.default_rng(1)
    with Module(compile(path, *bounds)) as compiled, compiled.context(2) as context:
        assert set(compiled.dims) == set(names)
        compare(context, module, inputs)
        for _ in range(SIZES):
            extents = {dim: int(rng.integers(DIMS[dim][0], DIMS[dim][1] + 1)) for dim in names}
            compare(context, module, list(sized(inputs, axes, extents)))


@pytest.mark.parametrize("exporter", ["dynamo", "script"])
def test_outputs_have_the_names_that_are_given(from_torch, compile, tmp_path, exporter):
    path = tmp_path / "gru.onnx"
    from_torch.export(torch.nn.GRU(3, 4), [torch.ones(2, 1, 3), torch.zeros(1, 1, 4)], [{}, {}], path, exporter, outputs=["y", "hN"])
    with Module(compile(path, "--state=x1=hN")) as compiled:
        assert [output.name for output in compiled.outputs] == ["y"]
        assert [state.name for state in compiled.states] == ["x1"]
