# SPDX-License-Identifier: MIT
"""Networks from both of PyTorch's exporters, of opsets 18 to 24: the compiled module computes the same as PyTorch, with
every extent."""
import numpy
import pytest

from pytorch.apart import apart
from support import amount, machine
from support.module import Module

machine.need_package("torch")
import torch  # noqa: E402
from pytorch import image_networks, sequence_networks, speech_networks, wide_networks  # noqa: E402, F401
from pytorch.modules import DIMS, EXPORTERS, NETWORKS, NOT_EXPORTED, exported_axes, sized  # noqa: E402

TOLERANCE = 1e-4  # relative to the largest result
SIZES = 3  # besides the example's
OPSETS = range(18, 25)
SLOW_BY_DYNAMO = {"lstm_autoencoder", "transducer"}  # by default the other takes them
CASES = [(name, exporter) for k, name in enumerate(amount.half([*NETWORKS], 0))
         for exporter in amount.half([of for of in EXPORTERS if (name, of) not in NOT_EXPORTED],
                                     0 if name in SLOW_BY_DYNAMO else k)]


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
    axes = exported_axes(name, exporter, axes)
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
