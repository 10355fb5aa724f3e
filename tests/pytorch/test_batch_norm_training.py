# SPDX-License-Identifier: MIT
"""Batch normalisation in training, as PyTorch exports it: gradients, weights and running statistics over some steps are
those of PyTorch.

ONNX's running variance is of the population, PyTorch's of the sample, n / (n - 1) of it: the test takes PyTorch's apart.
"""
import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional

from pytorch.apart import apart
from support.module import rnncc as package

STEPS = 5
CLASSES = 4


class Planes(nn.Module):
    """Convolutions of so many channels that they are blocked, and batches of vectors at the end."""
    shape = (6, 3, 9, 8)

    def __init__(self):
        super().__init__()
        self.convolutions = nn.ModuleList([nn.Conv2d(3, 32, 3, padding=1, bias=False), nn.Conv2d(32, 32, 3, stride=2)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(32), nn.BatchNorm2d(32, momentum=0.3, eps=1e-3)])
        self.hidden, self.last, self.scores = nn.Linear(32, 9), nn.BatchNorm1d(9), nn.Linear(9, CLASSES)

    def forward(self, x, labels):
        for convolution, norm in zip(self.convolutions, self.norms):
            x = torch.relu(norm(convolution(x)))
        x = self.last(self.hidden(x.flatten(2).mean(2)))
        return functional.cross_entropy(self.scores(torch.tanh(x)), labels)


class Lines(nn.Module):
    """Of sequences, without scales."""
    shape = (5, 7, 11)

    def __init__(self):
        super().__init__()
        self.convolution, self.norm = nn.Conv1d(7, 6, 3), nn.BatchNorm1d(6, affine=False)
        self.scores = nn.Linear(6, CLASSES)

    def forward(self, x, labels):
        return functional.cross_entropy(self.scores(torch.sigmoid(self.norm(self.convolution(x))).amax(2)), labels)


class Volumes(nn.Module):
    shape = (3, 2, 5, 6, 4)

    def __init__(self):
        super().__init__()
        self.convolution, self.norm, self.scores = nn.Conv3d(2, 5, 2), nn.BatchNorm3d(5), nn.Linear(5, CLASSES)

    def forward(self, x, labels):
        return functional.cross_entropy(self.scores(self.norm(self.convolution(x)).tanh().flatten(2).mean(2)), labels)


def counts(network, x):
    """By norm: of how many numbers each of its statistics is."""
    seen, hooks = {}, []
    for name, module in network.named_modules():
        if hasattr(module, "running_mean"):
            hooks.append(module.register_forward_pre_hook(
                lambda _, given, name=name: seen.update({name: given[0].numel() // given[0].shape[1]})))
    network(x, torch.zeros(len(x), dtype=torch.int64))
    for hook in hooks:
        hook.remove()
    return seen


@pytest.mark.parametrize("make", [Planes, Lines, Volumes])
def test_steps_are_those_of_pytorch(rnncc, tmp_path, make):
    torch.manual_seed(3)
    torch.set_num_threads(1)
    network, rng, path = make(), numpy.random.default_rng(4), tmp_path / "network.onnx"

    def batch():
        return (torch.from_numpy(rng.normal(0.5, 2, make.shape).astype(numpy.float32)),
                torch.from_numpy(rng.integers(0, CLASSES, make.shape[0])))

    example = batch()
    apart(lambda: torch.onnx.export(network, example, path, dynamo=False, do_constant_folding=False, output_names=["loss"],
                                    training=torch.onnx.TrainingMode.TRAINING))
    done = rnncc(path, "--train", "-o", tmp_path / "step.so")
    assert done.returncode == 0, done.stderr
    trainer = package.load(tmp_path / "step.so", threads=2, share_all=True).trainer()
    n_of = counts(make(), example[0])
    start = {name: torch.from_numpy(array) for name, array in trainer.weights().items()}
    network.load_state_dict(start, strict=False)  # the exporter runs the network, which changes the statistics
    network.double()
    variances = {f"{name}.running_var": start[f"{name}.running_var"].double() for name in n_of}
    assert start.keys() - set(trainer.names) == variances.keys() | {f"{name}.running_mean" for name in n_of}
    for _ in range(STEPS):
        x, labels = batch()
        # PyTorch has our weights, whose roundings a normalisation makes larger from step to step, and its own statistics.
        weights = {name: torch.from_numpy(trainer.weights()[name]) for name in trainer.names}
        network.load_state_dict(weights, strict=False)
        before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        network.zero_grad()
        loss = network(x.double(), labels)
        loss.backward()
        got = float(trainer(x.numpy(), labels.numpy()))
        trainer.backward()
        gradients = trainer.gradients()
        trainer.step("sgd", 0.05, momentum=0.9)
        assert abs(got - loss.item()) < 1e-5
        for name, parameter in network.named_parameters():
            due = parameter.grad.numpy()
            assert numpy.abs(gradients[name] - due).max() < 2.0**-16 * max(1, numpy.abs(due).max()), name
        weights = trainer.weights()
        for name, n in n_of.items():
            key, momentum = f"{name}.running_var", network.get_submodule(name).momentum
            of_sample = (network.state_dict()[key] - (1 - momentum) * before[key]) / momentum
            variances[key] = (1 - momentum) * variances[key] + momentum * of_sample * (n - 1) / n
            mean = network.state_dict()[f"{name}.running_mean"]
            assert numpy.abs(weights[key] - variances[key].numpy()).max() < 2.0**-16 * max(1, variances[key].max()), key
            assert numpy.abs(weights[f"{name}.running_mean"] - mean.numpy()).max() < 2.0**-16
