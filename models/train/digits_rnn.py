# SPDX-License-Identifier: MIT
"""Trains the digit reader that takes an image a row a step: a GRU over eight rows, and a dense layer on its last state.

    python digits_rnn.py [--out DIRECTORY]
"""

import numpy
import torch

import digits
import export

HIDDEN = 64


class Network(torch.nn.Module):
    """Images [B,8,8] -> logits [B,10]."""

    def __init__(self):
        super().__init__()
        self.gru = torch.nn.GRU(8, HIDDEN)
        self.output = torch.nn.Linear(HIDDEN, 10)

    def forward(self, images):
        _, last = self.gru(images.transpose(0, 1))
        return self.output(last[0])


def describe(network, model):
    x = model.input("x", "f32", ["B", 8, 8])
    weights = model.recurrent_weights("gru", network.gru, 0, export.ZRH)
    rows = model.node("Transpose", [x], "rows", perm=[1, 0, 2])
    last = model.node("GRU", [rows, *weights], ["", "last"], hidden_size=HIDDEN, linear_before_reset=1)
    direction = model.constant(numpy.array([0]), "direction")
    features = model.node("Squeeze", [last, direction], "features")
    digits.describe_output(network.output, model, features)


if __name__ == "__main__":
    digits.main("digits_rnn", Network, describe, epochs=60, peak_rate=1e-2)
