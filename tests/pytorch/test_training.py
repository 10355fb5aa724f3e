# SPDX-License-Identifier: MIT
"""Training steps of networks that PyTorch exports: the gradients of its autograd, and the losses of its optimisers; and
the example of tools/docs/training.md."""
import copy
import os
import subprocess
import sys

import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional

from pytorch.apart import apart
from support import pages
from support.module import PACKAGE, rnncc as package

STEPS = 8
CLASSES = 5


class Dense(nn.Module):
    """Words as vectors, normalised layers of several activations, a residual sum."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 16)
        self.norm = nn.LayerNorm(16)
        self.inner, self.outer = nn.Linear(16, 32), nn.Linear(32, 16)
        self.scores = nn.Linear(16, CLASSES)

    def forward(self, words, labels):
        x = self.words(words)
        x = x + self.outer(functional.gelu(self.inner(self.norm(x))))
        return functional.cross_entropy(self.scores(torch.tanh(x).mean(1)), labels)

    @staticmethod
    def batch(rng):
        return torch.from_numpy(rng.integers(0, 20, (6, 7))), torch.from_numpy(rng.integers(0, CLASSES, 6))


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 12, 3, stride=2, groups=2)
        self.scores = nn.Linear(12, CLASSES)

    def forward(self, x, labels):
        x = functional.max_pool2d(functional.relu(self.first(x)), 2)
        x = functional.avg_pool2d(functional.silu(self.second(x)), 2)
        return functional.cross_entropy(self.scores(x.flatten(2).mean(2)), labels)

    @staticmethod
    def batch(rng):
        return (torch.from_numpy(rng.standard_normal((4, 1, 16, 14)).astype(numpy.float32)),
                torch.from_numpy(rng.integers(0, CLASSES, 4)))


class Segmenter(nn.Module):
    """Down and up again, by a transposed convolution and by interpolation, with what was on the way down beside it; scores
    are of the places that are hardest. The exporter makes one weight of those that begin equal, so none do; a bias before a
    normalisation of each channel changes nothing, and Adam would divide roundings by roundings."""

    def __init__(self):
        super().__init__()
        self.down, self.inner = nn.Conv2d(2, 8, 3, stride=2, padding=1), nn.Conv2d(8, 8, 3, stride=2, padding=1, bias=False)
        self.groups, self.own = nn.GroupNorm(4, 8), nn.InstanceNorm2d(8, affine=True)
        for parameter in (*self.groups.parameters(), *self.own.parameters()):
            nn.init.uniform_(parameter, 0.5, 1.5)
        self.up = nn.ConvTranspose2d(8, 8, 3, stride=2, padding=1, output_padding=1)
        self.mixed, self.scores = nn.Conv2d(16, 8, 3, padding=1), nn.Conv2d(8, 1, 1)

    def forward(self, x, y):
        high = functional.silu(self.groups(self.down(x)))
        low = functional.elu(self.own(self.inner(high)))
        joined = self.mixed(torch.cat([high, self.up(low)], 1))
        wide = functional.interpolate(joined, scale_factor=2, mode="bilinear", align_corners=False)
        return ((self.scores(wide) - y)**2).flatten(1).topk(20).values.mean()

    @staticmethod
    def batch(rng):
        return (torch.from_numpy(rng.standard_normal((3, 2, 16, 12)).astype(numpy.float32)),
                torch.from_numpy(rng.standard_normal((3, 1, 16, 12)).astype(numpy.float32)))


class Attention(nn.Module):
    """Without biases: that of the keys changes no softmax, and Adam would divide roundings by roundings."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, bias=False, batch_first=True)
        self.out = nn.Linear(16, 3)

    def forward(self, x, y):
        mixed, _ = self.attention(x, x, x, need_weights=False)
        return functional.mse_loss(self.out(mixed), y)

    @staticmethod
    def batch(rng):
        return (torch.from_numpy(rng.standard_normal((3, 6, 16)).astype(numpy.float32)),
                torch.from_numpy(rng.standard_normal((3, 6, 3)).astype(numpy.float32)))


class Recurrent(nn.Module):
    def __init__(self, kind, bidirectional=False):
        super().__init__()
        self.layers = kind(12, 16, num_layers=2, bidirectional=bidirectional)
        self.scores = nn.Linear(32 if bidirectional else 16, CLASSES)

    def forward(self, x, labels):
        y, _ = self.layers(x)
        return functional.cross_entropy(self.scores(y).flatten(0, 1), labels.flatten())

    @staticmethod
    def batch(rng):
        return (torch.from_numpy(rng.standard_normal((9, 4, 12)).astype(numpy.float32)),
                torch.from_numpy(rng.integers(0, CLASSES, (9, 4))))


NETWORKS = {
    "dense": Dense, "convolutional": Convolutional, "segmenter": Segmenter,
    "attention": Attention, "rnn": lambda: Recurrent(nn.RNN),
    "gru": lambda: Recurrent(nn.GRU), "lstm": lambda: Recurrent(nn.LSTM),
    "lstm_both_ways": lambda: Recurrent(nn.LSTM, True), "gru_both_ways": lambda: Recurrent(nn.GRU, True),
}


@pytest.fixture(scope="module", params=NETWORKS)
def trained(request, rnncc, tmp_path_factory):
    """The network, and a module of it. Weights keep their names where constants are not folded."""
    torch.manual_seed(5)
    torch.set_num_threads(1)
    network, folder = NETWORKS[request.param](), tmp_path_factory.mktemp("trained")
    arguments, path = network.batch(numpy.random.default_rng(0)), folder / "network.onnx"
    apart(lambda: torch.onnx.export(network, arguments, path, dynamo=False, do_constant_folding=False, output_names=["loss"]))
    done = rnncc(path, "--train", "-o", folder / "step.so")
    assert done.returncode == 0, done.stderr
    return network, folder / "step.so"


def loaded(trained):
    network, path = trained
    return copy.deepcopy(network), package.load(path, threads=2, share_all=True).trainer()


def test_gradients_are_those_of_autograd(trained):
    """In double precision: ours are off by the roundings of some 100 sums in f32."""
    network, trainer = loaded(trained)
    exact = network.double()
    batch = network.batch(numpy.random.default_rng(1))
    loss = exact(*(it.double() if it.is_floating_point() else it for it in batch))
    loss.backward()
    got = float(trainer(*(it.numpy() for it in batch)))
    trainer.backward()
    gradients = trainer.gradients()
    assert abs(got - loss.item()) < 2.0**-20 * max(1, abs(loss.item()))
    due = {name: parameter.grad.numpy() for name, parameter in exact.named_parameters()}
    named = gradients.keys() & due.keys()
    assert len(named) >= len(due) / 2
    for name in named:
        assert numpy.abs(gradients[name] - due[name]).max() < 2.0**-18 * max(numpy.abs(due[name]).max(), 2.0**-4)
    total = numpy.sqrt(sum((it**2).sum() for it in due.values()))
    assert abs(trainer.gradient_norm() - total) < 2.0**-18 * total


@pytest.mark.parametrize("rule", ["sgd", "adam", "adamw"])
def test_losses_are_those_of_its_optimiser(trained, rule):
    network, trainer = loaded(trained)
    options = {"sgd": {"momentum": 0.9, "weight_decay": 0.01}, "adam": {}, "adamw": {"weight_decay": 0.05}}[rule]
    optimiser = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[rule](
        network.parameters(), lr=0.01, **options)
    rng = numpy.random.default_rng(2)
    for _ in range(STEPS):
        batch = network.batch(rng)
        optimiser.zero_grad()
        loss = network(*batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 0.5)
        optimiser.step()
        got = float(trainer(*(it.numpy() for it in batch)))
        trainer.backward()
        trainer.step(rule, 0.01, max_norm=0.5, **options)
        assert abs(got - loss.item()) < 1e-4 * max(1, abs(loss.item()))


def test_the_page_prints_what_it_says(rnncc, tmp_path):
    """A network with lengths is trained, and a module that runs takes its weights."""
    blocks = [it for it in pages.blocks(pages.text("training")) if "pytorch/test_training.py" in it.skip]
    code, printed = ("".join(it.code for it in blocks if it.language == language) for language in ("python", "text"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, cwd=tmp_path,
                          env={**os.environ, "RNNCC": str(rnncc.path), "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1"})
    assert printed and done.stdout == printed, done.stderr
