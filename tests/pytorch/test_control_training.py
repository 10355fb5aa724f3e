# SPDX-License-Identifier: MIT
"""Loops and branches of PyTorch programs, exported as Scan, Loop and If, are trained: the gradients of autograd, and the
losses of its optimiser, for sequences of every length."""
import copy

import numpy
import pytest
import torch
from torch import nn
from torch._higher_order_ops import while_loop
from torch._higher_order_ops.scan import scan
from torch.nn import functional

from onnx_ir.passes.common.inliner import InlinePass
from pytorch.apart import apart
from support.amount import some
from support.module import rnncc as package

I, H, CLASSES, BATCH, STEPS = 6, 16, 4, 5, 12


class Cell(nn.Module):
    """A recurrent cell of one's own: a gate between the state and a new one, both normalised."""

    def __init__(self):
        super().__init__()
        self.x, self.h = nn.Linear(I, 2 * H), nn.Linear(H, 2 * H, bias=False)
        self.norm, self.scores = nn.LayerNorm(H), nn.Linear(H, CLASSES)

    def step(self, h, x):
        gate, new = (self.x(x) + self.h(h)).chunk(2, -1)
        gate = torch.sigmoid(gate)
        h = gate * h + (1 - gate) * torch.tanh(self.norm(new))
        return h, h.clone()

    def loss(self, last, steps, labels):
        return functional.cross_entropy(self.scores(steps.mean(0) + last), labels)

    def forward(self, x, labels):
        last, steps = scan(self.step, x.new_zeros(x.shape[1], H), x, dim=0)
        return self.loss(last, steps, labels)

    def plain(self, x, labels):
        h, steps = x.new_zeros(x.shape[1], H), []
        for it in x:
            h, _ = self.step(h, it)
            steps.append(h)
        return self.loss(h, torch.stack(steps), labels)

    @staticmethod
    def batch(rng, steps=7):
        """Labels that the first numbers tell."""
        x = torch.from_numpy(rng.standard_normal((steps, BATCH, I)).astype(numpy.float32))
        return x, x[0, :, :CLASSES].argmax(-1)

    dynamic = {"x": {0: torch.export.Dim("T", min=1, max=20)}, "labels": None}


class Ponder(nn.Module):
    """A state that is changed as often as the data says, then in one of two ways."""

    def __init__(self):
        super().__init__()
        self.inner, self.small, self.large, self.scores = (nn.Linear(I, I), nn.Linear(I, I), nn.Linear(I, I),
                                                           nn.Linear(I, CLASSES))

    def step(self, h):
        return torch.tanh(self.inner(h)) + h

    def small_step(self, h):
        return torch.tanh(self.small(h)) + h

    def large_step(self, h):
        return torch.sin(self.large(h)) - h

    def loss(self, h, labels):
        return functional.cross_entropy(self.scores(h), labels)

    def forward(self, x, turns, labels):
        most = torch.clamp(turns, max=9)

        def again(i, h):
            return i < most

        def turn(i, h):
            return i + 1, self.step(h)

        _, h = while_loop(again, turn, (torch.zeros_like(turns), x))
        return self.loss(torch.cond(h.mean() > 0, self.small_step, self.large_step, (h,)), labels)

    def plain(self, x, turns, labels):
        h = x
        for _ in range(min(int(turns), 9)):
            h = self.step(h)
        return self.loss(self.small_step(h) if h.mean() > 0 else self.large_step(h), labels)

    @staticmethod
    def batch(rng, turns=3):
        return (torch.from_numpy(rng.standard_normal((BATCH, I)).astype(numpy.float32)), torch.tensor(turns),
                torch.from_numpy(rng.integers(0, CLASSES, BATCH)))

    dynamic = None


class Within(Ponder):
    """The turns go one of two ways each."""

    def forward(self, x, turns, labels):
        most = torch.clamp(turns, max=9)

        def again(i, h):
            return i < most

        def turn(i, h):
            return i + 1, torch.cond(h.mean() > 0, self.small_step, self.large_step, (h,))

        _, h = while_loop(again, turn, (torch.zeros_like(turns), x))
        return self.loss(self.step(h), labels)

    def plain(self, x, turns, labels):
        h = x
        for _ in range(min(int(turns), 9)):
            h = self.small_step(h) if h.mean() > 0 else self.large_step(h)
        return self.loss(self.step(h), labels)


class Around(Ponder):
    """One of two ways has turns."""

    def forward(self, x, turns, labels):
        most = torch.clamp(turns, max=9)

        def turning(h, most):
            _, h = while_loop(lambda i, h: i < most, lambda i, h: (i + 1, self.step(h)), (torch.zeros_like(most), h))
            return self.small_step(h)

        return self.loss(torch.cond(x.mean() > 0, turning, lambda h, most: self.large_step(h), (x, most)), labels)

    def plain(self, x, turns, labels):
        if x.mean() <= 0:
            return self.loss(self.large_step(x), labels)
        h = x
        for _ in range(min(int(turns), 9)):
            h = self.step(h)
        return self.loss(self.small_step(h), labels)


def export(network, arguments, path):
    """The exporter of PyTorch 2.13 gives the functions that it makes of bodies within bodies another version of their own
    domain than the model has, and then refuses to inline them."""
    inline = InlinePass.call

    def call(self, model):
        for function in model.functions.values():
            for domain in set(function.opset_imports) & set(model.opset_imports):
                function.opset_imports[domain] = model.opset_imports[domain]
        return inline(self, model)

    InlinePass.call = call
    torch.onnx.export(network, arguments, dynamo=True, dynamic_shapes=network.dynamic).save(path)


@pytest.fixture(scope="module", params=some([Cell, Within, Ponder, Around], 2))
def trained(request, rnncc, tmp_path_factory):
    torch.manual_seed(5)
    torch.set_num_threads(1)
    network, folder = request.param(), tmp_path_factory.mktemp("trained")
    path, arguments = folder / "network.onnx", network.batch(numpy.random.default_rng(0))
    apart(export, network, arguments, path)
    done = rnncc(path, "--train", "-o", folder / "step.so")
    assert done.returncode == 0, done.stderr
    return network, folder / "step.so"


def loaded(trained, threads=2):
    network, path = trained
    return copy.deepcopy(network), package.load(path, threads=threads, share_all=True).trainer()


@pytest.mark.parametrize("length", [1, 2, 9])
def test_gradients_are_those_of_autograd(trained, length):
    """In double precision: ours are off by the roundings of some 300 sums in f32."""
    network, trainer = loaded(trained)
    batch = network.batch(numpy.random.default_rng(length), length)
    exact = network.double()
    loss = exact.plain(*(it.double() if it.is_floating_point() else it for it in batch))
    loss.backward()
    assert abs(float(trainer(*(it.numpy() for it in batch))) - loss.item()) < 2.0**-18
    trainer.backward()
    gradients = trainer.gradients()
    for name, weight in exact.named_parameters():
        due = numpy.zeros(weight.shape) if weight.grad is None else weight.grad.numpy()
        assert numpy.abs(gradients[name] - due).max() < 2.0**-15 * max(1, numpy.abs(due).max()), name
    assert len(gradients) == len(list(exact.parameters()))


def test_losses_are_those_of_pytorch_step_by_step(trained):
    network, trainer = loaded(trained)
    optimizer = torch.optim.Adam(network.parameters(), 0.01)
    rng = numpy.random.default_rng(2)
    for step in range(STEPS):
        batch = network.batch(rng, 1 + step % 7)
        optimizer.zero_grad()
        loss = network.plain(*batch)
        loss.backward()
        for weight in network.parameters():  # of a branch that was not taken: PyTorch would leave the weight as it is
            weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
        optimizer.step()
        found = float(trainer(*(it.numpy() for it in batch)))
        trainer.backward()
        trainer.step("adam", 0.01)
        assert abs(found - loss.item()) < 1e-4 * max(1, abs(loss.item()))


@pytest.mark.parametrize("trained", [Cell], indirect=True)
def test_training_a_cell_lowers_its_loss_with_the_same_bits_on_any_number_of_threads(trained):
    curves = []
    for threads in (1, 4):
        network, trainer = loaded(trained, threads)
        rng, losses = numpy.random.default_rng(3), []
        for step in range(150):
            losses.append(float(trainer(*(it.numpy() for it in network.batch(rng, 1 + step % 6)))))
            trainer.backward()
            trainer.step("adam", 0.02)
        curves.append(losses)
    assert curves[0] == curves[1]
    assert numpy.mean(curves[0][-20:]) < 0.8 * numpy.mean(curves[0][:20])
