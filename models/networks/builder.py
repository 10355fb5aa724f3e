# SPDX-License-Identifier: MIT
"""Builds convolutional networks from layers that draw their own weights, from a seed.

    net = Network("tiny", size=32)
    with net.scope("stem"):
        x = net.relu(net.batch_norm(net.conv(net.image, 16, 3, pad=1)))
    net.classifier(net.global_pool(x))

Values are of order 1 at any depth: the builder estimates the mean square of each value, and draws a layer's weights so
that its result has a mean square of 1 (K. He et al., Delving Deep into Rectifiers, ICCV 2015, section 2.2). The
statistics of batch normalisation differ from channel to channel.

A value is [N,C,H,W], or [N,C] from `flat` on. `width` scales the channel counts between image and classes.
"""
import contextlib
import zlib

import numpy

from support.model_builder import Model

RELU = 0.5  # the part of the mean square that is left when the negative half of a symmetric distribution is cut off
MAX_POOL = 2.5  # grows the mean square of what is rectified
AVERAGE_POOL = 0.8  # shrinks it, but little: deep in a network, neighbours are much alike
LOGITS = 2.0  # standard deviation of what the classifier gives: some classes are clearly more likely than others


def pair(extent):
    return list(extent) if isinstance(extent, (tuple, list)) else [extent, extent]


class Network(Model):
    def __init__(self, name, size, batch=1, width=1.0, classes=1000):
        """size: of the image, in pixels. batch: maximum images of a run; from 2 on, their number is a run-time N."""
        super().__init__(name)
        self.width, self.classes = width, classes
        self.rng = numpy.random.default_rng(zlib.crc32(name.encode()))
        self.channels, self.mean_square = {}, {}
        self.scopes, self.uses = [], {}
        images = self.dim("N", 1, 1, batch) if batch > 1 else 1
        self.image = self.known(self.input("image", "f32", [images, 3, size, size]), 3, 1.0)

    # Names, and the estimates of values

    @contextlib.contextmanager
    def scope(self, name):
        """The nodes made in it, and their weights, have names that begin with `name`."""
        self.scopes.append(name)
        yield
        self.scopes.pop()

    def fresh(self, kind):
        """A new name, such as stage2.unit1.conv3."""
        name = ".".join([*self.scopes, kind])
        self.uses[name] = self.uses.get(name, 0) + 1
        return f"{name}{self.uses[name]}"

    def known(self, value, channels, mean_square):
        self.channels[value], self.mean_square[value] = channels, mean_square
        return value

    def layer(self, kind, op, inputs, channels, mean_square, weights=None, **attributes):
        """A node, its result and its weights (name -> array), named for `kind` and the scope."""
        name = self.fresh(kind)
        constants = [self.constant(array, f"{name}.{part}") for part, array in (weights or {}).items()]
        value = self.node(op, [*inputs, *constants], [name], **attributes)
        self.nodes[-1]["name"] = name
        return self.known(value, channels, mean_square)

    def scaled(self, channels):
        return max(1, round(channels * self.width))

    # Weights

    def normal(self, deviation, *shape):
        array = self.rng.standard_normal(shape, numpy.float32)
        array *= numpy.float32(deviation)
        return array

    def uniform(self, low, high, *shape):
        return self.rng.uniform(low, high, shape).astype(numpy.float32)

    # Layers

    def conv(self, x, channels, kernel, stride=1, pad=0, groups=1, bias=False):
        """`channels` of the result are not scaled by `width`. kernel and pad: a number, or one for H and one for W."""
        (R, S), pads = pair(kernel), pair(pad)
        C = self.channels[x] // groups
        weights = {"weight": self.normal((C * R * S * self.mean_square[x]) ** -0.5, channels, C, R, S)}
        if bias:
            weights["bias"] = self.uniform(-0.1, 0.1, channels)
        return self.layer("conv", "Conv", [x], channels, 1.0, weights, kernel_shape=[R, S], strides=pair(stride),
                          pads=pads * 2, group=groups)

    def batch_norm(self, x, scale=1.0, epsilon=1e-5):
        """scale: of the result, less than 1 for a branch that is added to its own input."""
        C, square = self.channels[x], self.mean_square[x]
        weights = {"scale": scale * self.uniform(0.8, 1.2, C), "shift": scale * self.uniform(-0.2, 0.2, C),
                   "mean": self.uniform(-0.2, 0.2, C) * square ** 0.5, "variance": square * self.uniform(0.8, 1.2, C)}
        return self.layer("norm", "BatchNormalization", [x], C, scale ** 2, weights, epsilon=epsilon)

    def relu(self, x, left=RELU):
        """left: the part of the mean square that is left."""
        return self.layer("relu", "Relu", [x], self.channels[x], left * self.mean_square[x])

    def relu6(self, x):
        bounds = {"min": numpy.float32(0), "max": numpy.float32(6)}
        return self.layer("relu", "Clip", [x], self.channels[x], RELU * self.mean_square[x], bounds)

    def add(self, x, y):
        return self.layer("add", "Add", [x, y], self.channels[x], self.mean_square[x] + self.mean_square[y])

    def concat(self, *parts):
        channels = [self.channels[part] for part in parts]
        squares = sum(C * self.mean_square[part] for C, part in zip(channels, parts))
        return self.layer("concat", "Concat", parts, sum(channels), squares / sum(channels), axis=1)

    def max_pool(self, x, kernel, stride, pad=0, ceil=False):
        return self.layer("pool", "MaxPool", [x], self.channels[x], MAX_POOL * self.mean_square[x],
                          kernel_shape=pair(kernel), strides=pair(stride), pads=pair(pad) * 2, ceil_mode=int(ceil))

    def average_pool(self, x, kernel, stride, pad=0):
        """Padding counts as zero."""
        return self.layer("pool", "AveragePool", [x], self.channels[x], AVERAGE_POOL * self.mean_square[x],
                          kernel_shape=pair(kernel), strides=pair(stride), pads=pair(pad) * 2, count_include_pad=1)

    def global_pool(self, x):
        return self.layer("pool", "GlobalAveragePool", [x], self.channels[x], AVERAGE_POOL * self.mean_square[x])

    def flat(self, x, pixels=1):
        """[N,C,H,W] as [N,C*H*W]; pixels: H*W."""
        return self.layer("flat", "Flatten", [x], self.channels[x] * pixels, self.mean_square[x], axis=1)

    def dense(self, x, channels, deviation=1.0):
        C = self.channels[x]
        weights = {"weight": self.normal(deviation * (C * self.mean_square[x]) ** -0.5, channels, C),
                   "bias": self.uniform(-0.1, 0.1, channels)}
        return self.layer("dense", "Gemm", [x], channels, deviation ** 2, weights, transB=1)

    def probabilities(self, logits):
        """The network's output."""
        self.output(self.node("Softmax", [logits], ["probabilities"], axis=1))
        self.nodes[-1]["name"] = "probabilities"
        return self

    def classifier(self, x):
        """From the pooled features to the output."""
        return self.probabilities(self.dense(self.flat(x), self.classes, LOGITS))
