# SPDX-License-Identifier: MIT
"""Networks of transposed convolutions, those that tests/pytorch exports, as nodes with random weights: reading their object
code needs no PyTorch. One has planes of known sizes, the other a sequence whose length only the run knows."""
import math
from functools import partial

import numpy


def uniform(draw, inputs, shape):
    """Weights of sums over so many channels, about as large as their inputs."""
    return (draw.uniform(-1, 1, shape) / math.sqrt(inputs)).astype(numpy.float32)


def convolution(net, draw, x, inputs, outputs, window, **attributes):
    weights = [uniform(draw, inputs, shape) for shape in ((outputs, inputs, *window), outputs)]
    return net.node("Conv", [x, *map(net.constant, weights)], **attributes)


def transposed(net, draw, x, inputs, outputs, window, **attributes):
    weights = [uniform(draw, inputs, shape) for shape in ((inputs, outputs, *window), outputs)]
    return net.node("ConvTranspose", [x, *map(net.constant, weights)], **attributes)


def picture_generator(net, draw):
    """[1, 100, 1, 1] to [1, 3, 64, 64]; batch normalisation is part of its convolutions."""
    channels = (100, 256, 128, 64, 32, 3)
    x = net.input("noise", "f32", [1, channels[0], 1, 1])
    for step, (inputs, outputs) in enumerate(zip(channels, channels[1:])):
        doubling = {"strides": [2, 2], "pads": [1, 1, 1, 1]} if step else {}
        x = transposed(net, draw, x, inputs, outputs, (4, 4), **doubling)
        x = net.node("Tanh" if outputs == channels[-1] else "Relu", [x])
    net.output(x)


def vocoder(net, draw):
    """[1, 80, frames] to [1, 1, 128 frames]."""
    net.dim("frames", 1, 40, 400)
    leaky = partial(net.node, "LeakyRelu", alpha=0.1)
    channels = 256
    x = convolution(net, draw, net.input("mels", "f32", [1, 80, "frames"]), 80, channels, (7,), pads=[3, 3])
    for step in (8, 8, 2):
        x = transposed(net, draw, leaky([x]), channels, channels // 2, (2 * step,), strides=[step], pads=[step // 2] * 2)
        channels //= 2
        residual = convolution(net, draw, leaky([x]), channels, channels, (3,), pads=[3, 3], dilations=[3])
        x = net.node("Add", [x, residual])
    net.output(net.node("Tanh", [convolution(net, draw, leaky([x]), channels, 1, (7,), pads=[3, 3])]))


NETWORKS = {"picture_generator": picture_generator, "vocoder": vocoder}


def model(name):
    from support.model_builder import Model
    net = Model(name)
    NETWORKS[name](net, numpy.random.default_rng(1))
    return net
