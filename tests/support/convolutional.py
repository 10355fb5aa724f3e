# SPDX-License-Identifier: MIT
"""Random convolutions and random small networks of them, on integers that f32 sums exactly.

Weights are -1, 0 or 1 and activations are clipped to a few units, so every sum stays far below 2^24: whatever order a
kernel adds in, every bit must agree with the reference.
"""
import re

import numpy

from support.model_builder import Model

MAX_ACTIVATION = 4  # of an activation's absolute value


def whole(rng, *shape, most=MAX_ACTIVATION):
    return rng.integers(-most, most + 1, shape).astype(numpy.float32)


def signs(rng, *shape):
    return rng.integers(-1, 2, shape).astype(numpy.float32)


def reach(kernel, dilation):
    return (kernel - 1) * dilation + 1


def random_groups(rng):
    """(groups, channels, kernels of all groups): plain, depthwise, groups of whole vectors, and groups of a few channels."""
    kind = rng.choice(["plain", "plain", "plain", "depthwise", "wide", "narrow"])
    if kind == "plain":
        return 1, int(rng.choice([1, 2, 3, 8, 15, 16, 17, 33, 48, 100])), int(rng.choice([1, 3, 16, 17, 24, 32, 33, 100]))
    if kind == "depthwise":
        channels = int(rng.choice([3, 8, 16, 17, 33, 64]))
        return channels, channels, channels * int(rng.choice([1, 1, 1, 2]))
    groups = int(rng.integers(2, 5))
    each = 16 if kind == "wide" else int(rng.integers(2, 8))
    return groups, groups * each, groups * int(rng.choice([each, 16, 5]))


def random_axis(rng):
    """(extent, kernel, stride, dilation, pads): any that leaves an output."""
    kernel, stride, dilation = int(rng.choice([1, 1, 2, 3, 3, 3, 5, 7])), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    stride, dilation = (1 if rng.random() < 0.6 else stride), (1 if rng.random() < 0.7 else dilation)
    pads = [int(p) for p in rng.integers(0, reach(kernel, dilation), 2)] if rng.random() < 0.6 else [0, 0]
    smallest = max(1, reach(kernel, dilation) - sum(pads))
    return int(rng.integers(smallest, smallest + 20)), kernel, stride, dilation, pads


def random_convolution(rng, spatial=None):
    """(model, feeds): one convolution, perhaps followed by nodes that may become part of its kernel."""
    model = Model()
    groups, channels, kernels = random_groups(rng)
    axes = [random_axis(rng) for _ in range(spatial or int(rng.choice([1, 2, 2, 2])))]
    batch = int(rng.choice([1, 1, 2, 3]))
    x = model.input("x", "f32", [batch, channels, *(extent for extent, *_ in axes)])
    weights = model.constant(signs(rng, kernels, channels // groups, *(axis[1] for axis in axes)))
    bias = [model.constant(whole(rng, kernels))] if rng.random() < 0.7 else []
    attributes = {"group": groups, "strides": [axis[2] for axis in axes], "dilations": [axis[3] for axis in axes]}
    if rng.random() < 0.2 and all(axis[3] == 1 for axis in axes):
        attributes["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    else:
        attributes["pads"] = [axis[4][0] for axis in axes] + [axis[4][1] for axis in axes]
    valid = attributes.get("auto_pad") == "VALID"
    if valid and any(extent < kernel for extent, kernel, *_ in axes):
        attributes["auto_pad"] = "SAME_UPPER"
    y = model.node("Conv", [x, weights, *bias], **attributes)
    feeds = {"x": whole(rng, batch, channels, *(extent for extent, *_ in axes))}
    if rng.random() < 0.5:
        y = model.node(str(rng.choice(["Relu", "Neg", "Abs"])), [y])
    model.output(y)
    return model, feeds


class RandomNetwork:
    """Grows a network op by op over values of one batch; `values` are (name, channels, height, width)."""

    def __init__(self, rng, batch="N"):
        self.rng, self.model = rng, Model()
        if isinstance(batch, str):
            self.model.dim(batch, 1, 1, 3)
        channels, height, width = int(rng.choice([1, 3, 16, 20])), *(int(e) for e in rng.integers(6, 20, 2))
        self.shape = (channels, height, width)
        self.values = [(self.model.input("x", "f32", [batch, channels, height, width]), channels, height, width)]
        self.low, self.high = (self.model.constant(numpy.float32(bound)) for bound in (-MAX_ACTIVATION, MAX_ACTIVATION))

    def pick(self):
        return self.values[int(self.rng.integers(max(0, len(self.values) - 4), len(self.values)))]

    def clip(self, name):
        return self.model.node("Clip", [name, self.low, self.high])

    def convolved(self, value, kernels, kernel, group=1, **attributes):
        name, channels, height, width = value
        weights = self.model.constant(signs(self.rng, kernels, channels // group, kernel, kernel))
        bias = self.model.constant(whole(self.rng, kernels))
        pad = (kernel - 1) // 2
        y = self.model.node("Conv", [name, weights, bias], pads=[pad] * 4, group=group, **attributes)
        stride = attributes.get("strides", [1, 1])
        out = [(extent + 2 * pad - kernel) // s + 1 for extent, s in zip((height, width), stride)]
        return (y, kernels, *out)

    def add_conv(self):
        value = self.pick()
        kernels, kernel = int(self.rng.choice([4, 16, 17, 32, 48])), int(self.rng.choice([1, 1, 3, 3, 5]))
        stride = [int(self.rng.choice([1, 1, 1, 2]))] * 2
        y = self.convolved(value, kernels, kernel, strides=stride)
        self.values.append((self.clip(y[0]), *y[1:]))

    def add_depthwise(self):
        value = self.pick()
        y = self.convolved(value, value[1], 3, group=value[1])
        self.values.append((self.clip(y[0]), *y[1:]))

    def add_residual(self):
        """Conv, Add, Relu; the other summand on either side."""
        value = self.pick()
        y = self.convolved(value, value[1], 3)
        pair = [y[0], value[0]] if self.rng.random() < 0.5 else [value[0], y[0]]
        self.values.append((self.clip(self.model.node("Relu", [self.model.node("Add", pair)])), *value[1:]))

    def add_concat(self):
        """Concatenates this value, a convolution of it, and perhaps a second; some parts have other readers, too."""
        value = self.pick()
        parts = [value] + [self.convolved(value, int(self.rng.choice([8, 16, 32])), 1)
                           for _ in range(int(self.rng.integers(1, 3)))]
        self.rng.shuffle(parts)
        parts = [(name, int(channels)) for name, channels, *_ in parts]
        y = self.model.node("Concat", [name for name, _ in parts], axis=1)
        self.values.append((self.clip(y), sum(channels for _, channels in parts), *value[2:]))

    def add_dense_block(self):
        """DenseNet: each convolution reads all results before it."""
        name, channels, height, width = self.pick()
        features = [(name, channels)]
        for _ in range(int(self.rng.integers(2, 4))):
            whole_ = (self.model.node("Concat", [f for f, _ in features], axis=1), sum(c for _, c in features), height, width)
            y = self.convolved(whole_, int(self.rng.choice([16, 16, 8])), 3)
            features.append((self.clip(y[0]), y[1]))
        y = self.model.node("Concat", [f for f, _ in features], axis=1)
        self.values.append((y, sum(c for _, c in features), height, width))

    def add_split(self):
        """Both halves, convolved separately and concatenated in the other order."""
        name, channels, height, width = self.pick()
        if channels < 2:
            return
        first = 16 if channels > 16 else channels // 2
        halves = self.model.node("Split", [name, self.model.constant(numpy.array([first, channels - first]))], 2, axis=1)
        parts = [self.convolved((half, count, height, width), 16, 1)
                 for half, count in zip(halves, (first, channels - first))]
        y = self.model.node("Concat", [parts[1][0], parts[0][0], halves[1]], axis=1)
        self.values.append((self.clip(y), 32 + channels - first, height, width))

    def add_pool(self):
        name, channels, height, width = self.pick()
        if min(height, width) < 3:
            return
        y = self.model.node("MaxPool", [name], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        self.values.append((y, channels, (height - 1) // 2 + 1, (width - 1) // 2 + 1))

    def add_scale(self):
        """Squeeze and excitation, a mask over pixels, a constant a channel, or batch normalisation."""
        value = self.pick()
        name, channels, height, width = value
        kind = self.rng.choice(["squeeze", "mask", "constant", "normalise"])
        if kind == "squeeze":
            top = self.model.node("GlobalMaxPool", [name])
            by = self.clip(self.convolved((top, channels, 1, 1), channels, 1)[0])
        elif kind == "mask":
            by = self.clip(self.convolved(value, 1, 1)[0])
        else:
            by = self.model.constant(signs(self.rng, channels, 1, 1))
        if kind == "normalise":
            vectors = [self.model.constant(v) for v in (signs(self.rng, channels), whole(self.rng, channels),
                                                        whole(self.rng, channels), numpy.ones(channels, "f"))]
            y = self.model.node("BatchNormalization", [self.model.node("Abs", [name]), *vectors], epsilon=0)
        else:
            y = self.model.node("Mul", [name, by])
        self.values.append((self.clip(y), channels, height, width))

    def grow(self, ops):
        makers = [self.add_conv, self.add_conv, self.add_residual, self.add_concat, self.add_dense_block,
                  self.add_split, self.add_pool, self.add_scale, self.add_depthwise]
        self.add_conv()
        for _ in range(ops):
            makers[int(self.rng.integers(len(makers)))]()
        return self

    def finish(self):
        """The last value is an output, and so may others be, before and after a dense layer."""
        name, channels, height, width = self.values[-1]
        flat = self.model.node("Flatten", [name])
        weights = self.model.constant(signs(self.rng, channels * height * width, 5))
        self.model.output(self.model.node("MatMul", [flat, weights]))
        for value in {v[0] for v in self.values[1:] if self.rng.random() < 0.3}:
            self.model.output(value)
        return self.model

    def feeds(self, batch):
        return {"x": whole(self.rng, batch, *self.shape)}


def convolution_in(workload):
    """The computation of a record's workload, in any blocks of channels: which blocks are tried depends on the CPU."""
    return re.sub(r"_in\d+(_out\d+)?", "", workload)
