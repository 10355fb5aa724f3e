# SPDX-License-Identifier: MIT
"""Trains the convolutional digit reader: two convolutions with batch normalisation, pooling, and a dense layer.

Batch normalisation is exported as a node of its own; folding it into the convolution is the compiler's work.

    python digits_cnn.py [--out DIRECTORY]
"""

import numpy
import torch

import digits

CHANNELS = (16, 32)


class Network(torch.nn.Module):
    """Images [B,8,8] -> logits [B,10]."""

    def __init__(self):
        super().__init__()
        first, second = CHANNELS
        self.conv1 = torch.nn.Conv2d(1, first, 3, padding=1, bias=False)
        self.norm1 = torch.nn.BatchNorm2d(first)
        self.conv2 = torch.nn.Conv2d(first, second, 3, padding=1, bias=False)
        self.norm2 = torch.nn.BatchNorm2d(second)
        self.output = torch.nn.Linear(second * 2 * 2, 10)

    def forward(self, images):
        pool = torch.nn.functional.max_pool2d
        x = pool(self.norm1(self.conv1(images.unsqueeze(1))).relu(), 2)
        x = pool(self.norm2(self.conv2(x)).relu(), 2)
        return self.output(x.flatten(1))


def describe(network, model):
    x = model.input("x", "f32", ["B", 8, 8])
    channel = model.constant(numpy.array([1]), "channel")
    x = model.node("Unsqueeze", [x, channel], "image")
    for layer, (conv, norm) in enumerate(((network.conv1, network.norm1), (network.conv2, network.norm2)), 1):
        kernel = model.weight(f"conv{layer}.weight", conv.weight)
        x = model.node("Conv", [x, kernel], f"conv{layer}", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        statistics = {"scale": norm.weight, "bias": norm.bias, "mean": norm.running_mean, "variance": norm.running_var}
        names = [model.weight(f"norm{layer}.{part}", tensor) for part, tensor in statistics.items()]
        x = model.node("BatchNormalization", [x, *names], f"norm{layer}", epsilon=norm.eps)
        x = model.node("Relu", [x], f"relu{layer}")
        x = model.node("MaxPool", [x], f"pool{layer}", kernel_shape=[2, 2], strides=[2, 2])
    features = model.node("Flatten", [x], "features", axis=1)
    digits.describe_output(network.output, model, features)


if __name__ == "__main__":
    digits.main("digits_cnn", Network, describe, epochs=40, peak_rate=1e-2)
