# SPDX-License-Identifier: MIT
"""CTCLoss behind LogSoftmax against PyTorch's, in double precision: losses and gradients."""
import numpy
import pytest
import torch
from torch.nn import functional

from support.model_builder import Model
from support.module import rnncc as package

T, N, C, S = 40, 7, 12, 9


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("blank", [0, C - 1])
def test_losses_and_gradients_are_those_of_pytorch(compile, tmp_path, reduction, blank):
    """Repeated labels, empty targets, and one that is longer than its frames: PyTorch's zero_infinity, too."""
    rng = numpy.random.default_rng([5, blank])
    logits = rng.normal(0, 2, (T, N, C)).astype(numpy.float32)
    targets = rng.choice([k for k in range(C) if k != blank], (N, S))
    targets[0] = targets[0, 0]
    steps, lengths = rng.integers(2 * S + 1, T + 1, N), rng.integers(1, S + 1, N)
    lengths[0], lengths[1], steps[2], lengths[2] = S, 0, 3, S
    model = Model()
    given = [model.input("targets", "i64", [N, S]), model.input("steps", "i64", [N]), model.input("lengths", "i64", [N])]
    scale = model.input("scale", "f32", [1])
    scores = model.node("LogSoftmax", [model.node("Mul", [model.constant(logits, "logits"), scale])])
    model.output(model.node("CTCLoss", [scores, *given], ["loss"], blank=blank, reduction=reduction, zero_infinity=1))
    trainer = package.load(compile(model.write(tmp_path), "--train"), threads=2).trainer()
    got = float(trainer(targets, steps, lengths, numpy.ones(1, numpy.float32)))
    trainer.backward()
    x = torch.from_numpy(logits).double().requires_grad_()
    due = functional.ctc_loss(x.log_softmax(2), torch.from_numpy(targets), torch.from_numpy(steps), torch.from_numpy(lengths), blank,
                              reduction, zero_infinity=True)
    due.backward()
    assert abs(got - due.item()) < 2.0**-20 * due.item()
    error = numpy.abs(trainer.gradients()["logits"] - x.grad.numpy()).max()
    assert error < 2.0**-20 and numpy.abs(x.grad.numpy()).max() > 0.01
