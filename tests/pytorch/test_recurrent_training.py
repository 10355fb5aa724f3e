# SPDX-License-Identifier: MIT
"""Random recurrent networks, as PyTorch exports them, have the gradients of its autograd: of weights, biases, initial
states and inputs.

Inputs and initial states are weights of the test's networks, so that they have gradients; so are the factors of the
loss, sum(y * factor), whose gradients are y: the results are compared, too. Exporting and compiling takes longer than
everything else, so GROUP networks are one module.
"""
import dataclasses

import numpy
import pytest
import torch
from torch import nn

from pytorch.apart import apart
from support.amount import some
from support.module import rnncc as package

GROUP = 10
EPS = float(numpy.finfo(numpy.float32).eps)


@dataclasses.dataclass
class Configuration:
    kind: str
    I: int
    H: int
    T: int
    B: int
    layers: int
    both_ways: bool
    bias: bool
    batch_first: bool
    lengths: list  # of packed sequences, in falling order; None: not packed
    initial: bool
    relu: bool
    finals: bool  # the last states are results, too


def random_configuration(seed):
    rng = numpy.random.default_rng([4711, seed])

    def chance(share):
        return bool(rng.random() < share)

    T, B = int(rng.integers(1, 10)), int(rng.integers(1, 6))
    lengths = sorted((int(n) for n in rng.integers(1, T + 1, B)), reverse=True)
    return Configuration(kind=("RNN", "GRU", "LSTM")[seed % 3], I=int(rng.integers(1, 20)), H=int(rng.integers(1, 24)), T=T, B=B,
                         layers=int(rng.integers(1, 4)), both_ways=chance(0.5), bias=chance(0.7), batch_first=chance(0.4),
                         lengths=[T, *lengths[1:]] if chance(0.4) else None, initial=chance(0.4), relu=chance(0.5),
                         finals=chance(0.5))


class Network(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.of = c
        more = {"nonlinearity": "relu"} if c.kind == "RNN" and c.relu else {}
        self.layers = getattr(nn, c.kind)(c.I, c.H, c.layers, bias=c.bias, batch_first=c.batch_first,
                                          bidirectional=c.both_ways, **more)
        directions = 2 if c.both_ways else 1
        state, sequence = (directions * c.layers, c.B, c.H), (c.B, c.T) if c.batch_first else (c.T, c.B)
        self.x = nn.Parameter(torch.randn(*sequence, c.I))
        states = 2 if c.kind == "LSTM" else 1
        self.initial = nn.ParameterList(torch.randn(*state) for _ in range(states if c.initial else 0))
        self.of_y = nn.Parameter(torch.randn(*sequence, directions * c.H))
        self.of_finals = nn.ParameterList(torch.randn(*state) for _ in range(states if c.finals else 0))

    def forward(self, lengths):
        x, c = self.x, self.of
        if c.lengths:
            x = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=c.batch_first)
        initial = tuple(self.initial)
        y, finals = self.layers(x, (initial if c.kind == "LSTM" else initial[0]) if initial else None)
        if c.lengths:
            y, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=c.batch_first)
        loss = (y * self.of_y).sum()
        for final, factor in zip(finals if c.kind == "LSTM" else [finals], self.of_finals):
            loss = loss + (final * factor).sum()
        return loss


class Group(nn.Module):
    def __init__(self, seeds):
        super().__init__()
        self.networks = nn.ModuleList(Network(random_configuration(seed)) for seed in seeds)

    def forward(self, *lengths):
        lengths = iter(lengths)
        return torch.stack([network(next(lengths) if network.of.lengths else None) for network in self.networks]).sum()

    def lengths(self):
        return tuple(torch.tensor(network.of.lengths) for network in self.networks if network.of.lengths)


@pytest.mark.parametrize("first", some(range(0, 300, GROUP), 2))
def test_gradients_are_those_of_autograd(rnncc, tmp_path, first):
    """In double precision. A gradient is a sum over the ways through the network, each of a hundred or so roundings; where
    they cancel, the largest of the tensor, or 1, says how large the ways are."""
    torch.manual_seed(first)
    torch.set_num_threads(1)
    group, path = Group(range(first, first + GROUP)), tmp_path / "group.onnx"
    apart(lambda: torch.onnx.export(group, group.lengths(), path, dynamo=False, do_constant_folding=False,
                                    output_names=["loss"]))
    done = rnncc(path, "--train", "-o", tmp_path / "step.so")
    assert done.returncode == 0, done.stderr
    trainer = package.load(tmp_path / "step.so", threads=2, share_all=True).trainer()
    group.double()(*group.lengths()).backward()
    trainer(*(it.numpy() for it in group.lengths()))
    trainer.backward()
    gradients, due = trainer.gradients(), {name: it.grad.numpy() for name, it in group.named_parameters()}
    assert gradients.keys() == due.keys()
    wrong = []
    for name, expected in due.items():
        error = numpy.abs(gradients[name] - expected).max() / max(numpy.abs(expected).max(), 1)
        if not error < 64 * EPS:
            wrong.append(f"{name}: off by {error:.2g} of {group.networks[int(name.split('.')[1])].of}")
    assert not wrong, "\n".join(wrong)
