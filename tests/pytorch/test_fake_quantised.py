# SPDX-License-Identifier: MIT
"""Networks that were trained to be quantised, as both of PyTorch's exporters write them: pairs around operators, weights in
floats before theirs. The module multiplies integers, and its results are PyTorch's but for one step."""
import numpy
import pytest

from pytorch.apart import apart
from support import machine
from support.module import Module

machine.need_package("torch")
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

STEP = 0.05  # of the result


class Numbers(nn.Module):
    """Activations in u8, of the whole tensor."""

    def __init__(self, scale, zero):
        super().__init__()
        self.scale, self.zero = scale, zero

    def forward(self, x):
        return torch.fake_quantize_per_tensor_affine(x, self.scale, self.zero, 0, 255)


def weights(layer):
    """In i8, each channel in its own scale."""
    steps = layer.weight.detach().abs().amax(dim=tuple(range(1, layer.weight.dim()))) / 127
    return torch.fake_quantize_per_channel_affine(layer.weight, steps, torch.zeros(len(steps), dtype=torch.int32), 0, -128, 127)


class Classifier(nn.Module):
    """Two convolutions, the second with what came before it, a mean, a dense layer."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.dense = nn.Conv2d(3, 16, 3), nn.Conv2d(16, 16, 3), nn.Linear(16, 10)
        self.image, self.hidden, self.sum = Numbers(0.05, 128), Numbers(0.02, 0), Numbers(0.03, 0)
        self.mean, self.result = Numbers(0.02, 0), Numbers(STEP, 128)

    def forward(self, x):
        y = self.hidden(torch.relu(functional.conv2d(self.image(x), weights(self.first), self.first.bias, padding=1)))
        z = self.sum(torch.relu(y + functional.conv2d(y, weights(self.second), self.second.bias, padding=1)))
        mean = self.mean(functional.adaptive_avg_pool2d(functional.max_pool2d(z, 2), 1)).flatten(1)
        return self.result(functional.linear(mean, weights(self.dense), self.dense.bias))


class Perceptron(nn.Module):
    """Dense layers of sequences, by MatMul."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(24, 40), nn.Linear(40, 12)
        self.words, self.hidden, self.result = Numbers(0.04, 120), Numbers(0.02, 0), Numbers(STEP, 128)

    def forward(self, x):
        y = self.hidden(torch.relu(functional.linear(self.words(x), weights(self.first), self.first.bias)))
        return self.result(functional.linear(y, weights(self.second), self.second.bias))


NETWORKS = {"classifier": (Classifier, (2, 3, 12, 12), {"QLinearConv", "MaxPool"}), "perceptron": (Perceptron, (2, 5, 24), set())}


def export(network, x, path, dynamo):
    torch.onnx.export(network, (x,), str(path), dynamo=dynamo, opset_version=18 if dynamo else 17)


@pytest.mark.parametrize("dynamo", [False, True], ids=["traced", "exported"])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_module_computes_what_pytorch_does(compile, rnncc, tmp_path, name, dynamo):
    make, shape, of_integers = NETWORKS[name]
    torch.manual_seed(3)
    network, x, path = make().eval(), torch.randn(shape), tmp_path / "network.onnx"
    apart(export, network, x, path, dynamo)
    with torch.no_grad():
        due = network(x).numpy()
    with Module(compile(path)) as module:
        got, = module.context(1).run({module.inputs[0].name: x.numpy()}).values()
    numpy.testing.assert_allclose(got, due, rtol=0, atol=1.01 * STEP)
    assert len(set(due.flat)) > 5
    rows = rnncc("inspect", path, "--explain=int8").stdout
    assert of_integers <= {row.split()[1] for row in rows.splitlines() if " int8 " in row}, rows
    assert any(product in rows for product in ("QGemm", "MatMulIntegerToFloat", "QLinearMatMul")), rows
