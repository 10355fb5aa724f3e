# SPDX-License-Identifier: MIT
"""The networks of `tools/bench products`: each takes f32 inputs of fixed size and has seeded weights. B sequences, T steps,
E features, H heads.
"""
import math

import numpy as np


class Builder:
    """Adds layers to a model as PyTorch's exporters write them."""

    def __init__(self, net):
        self.net, self.rng = net, np.random.default_rng(1)

    def weights(self, *shape):
        return self.net.constant((self.rng.uniform(-1, 1, shape) / math.sqrt(shape[0])).astype(np.float32))

    def integers(self, *values):
        return self.net.constant(np.array(values, np.int64))

    def node(self, op, *inputs, **attributes):
        return self.net.node(op, list(inputs), **attributes)

    def linear(self, x, inputs, outputs):
        return self.node("Add", self.node("MatMul", x, self.weights(inputs, outputs)), self.weights(outputs))

    def norm(self, x, E):
        scale, shift = (self.net.constant((at + 0.1 * self.rng.standard_normal(E)).astype(np.float32)) for at in (1, 0))
        return self.node("LayerNormalization", x, scale, shift, axis=-1)

    def heads(self, x, B, T, E, H):
        """[B, T, E] -> [B, H, T, E/H]."""
        return self.node("Transpose", self.node("Reshape", x, self.integers(B, T, H, E // H)), perm=[0, 2, 1, 3])

    def attend(self, q, k, v, sizes, mask=None):
        """softmax(q k^T) v of [B, T, E] and [B, S, E], in H heads."""
        B, T, S, E, H = sizes
        q, v = self.heads(q, B, T, E, H), self.heads(v, B, S, E, H)
        k = self.node("Transpose", self.node("Reshape", k, self.integers(B, S, H, E // H)), perm=[0, 2, 3, 1])
        scores = self.node("Mul", self.node("MatMul", q, k), self.net.constant(np.float32(1 / math.sqrt(E // H))))
        if mask is not None:
            scores = self.node("Add", scores, self.net.constant(mask))
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        return self.node("Reshape", self.node("Transpose", mixed, perm=[0, 2, 1, 3]), self.integers(B, T, E))

    def self_attention(self, x, B, T, E, H, mask=None):
        split = self.net.node("Split", [self.linear(x, E, 3 * E), self.integers(E, E, E)], 3, axis=-1)
        return self.linear(self.attend(*split, (B, T, T, E, H), mask), E, E)

    def cross_attention(self, x, memory, sizes):
        B, T, S, E, H = sizes
        k, v = self.linear(memory, E, E), self.linear(memory, E, E)
        return self.linear(self.attend(self.linear(x, E, E), k, v, sizes), E, E)

    def feed_forward(self, x, E, hidden):
        return self.linear(self.node("Gelu", self.linear(x, E, hidden)), hidden, E)

    def added(self, x, y, E):
        return self.norm(self.node("Add", x, y), E)

    def gru(self, x, B, T, E):
        """A layer over [B, T, E]."""
        steps = self.node("Transpose", x, perm=[1, 0, 2])
        states = self.recurrent("GRU", steps, E, E, linear_before_reset=1)
        return self.node("Transpose", self.node("Squeeze", states, self.integers(1)), perm=[1, 0, 2])

    def recurrent(self, op, x, inputs, H, directions=1, **attributes):
        gates = {"GRU": 3, "LSTM": 4}[op] * H
        W, R, bias = ((self.rng.uniform(-1, 1, shape) / math.sqrt(H)).astype(np.float32) for shape in (
            (directions, gates, inputs), (directions, gates, H), (directions, 2 * gates)))
        return self.node(op, x, *map(self.net.constant, (W, R, bias)), hidden_size=H, **attributes)


def matmul(b, M, N, K):
    """Both matrices are inputs."""
    return b.node("MatMul", b.net.input("a", "f32", [M, K]), b.net.input("b", "f32", [K, N]))


def linear(b, M, N, K):
    return b.linear(b.net.input("x", "f32", [M, K]), K, N)


def encoder(b, T, B=1, E=256, H=4, layers=4):
    x = b.net.input("x", "f32", [B, T, E])
    for _ in range(layers):
        x = b.added(x, b.self_attention(x, B, T, E, H), E)
        x = b.added(x, b.feed_forward(x, E, 4 * E), E)
    return x


def decoder(b, T, B, S=64, E=256, H=4, layers=2):
    """T steps, each of which sees those before it, attend to a memory of S."""
    x, memory = b.net.input("x", "f32", [B, T, E]), b.net.input("memory", "f32", [B, S, E])
    mask = np.triu(np.full((T, T), -np.inf, np.float32), 1)
    for _ in range(layers):
        x = b.added(x, b.self_attention(x, B, T, E, H, mask), E)
        x = b.added(x, b.cross_attention(x, memory, (B, T, S, E, H)), E)
        x = b.added(x, b.feed_forward(x, E, 4 * E), E)
    return x


def bilstm(b, T, B, H=128, inputs=64):
    """Two layers, and a projection of both directions (Graves et al., 2013)."""
    x, width = b.net.input("x", "f32", [T, B, inputs]), inputs
    for _ in range(2):
        y = b.recurrent("LSTM", x, width, H, directions=2, direction="bidirectional")
        x, width = b.node("Reshape", b.node("Transpose", y, perm=[0, 2, 1, 3]), b.integers(T, B, 2 * H)), 2 * H
    return b.linear(x, width, 64)


def conformer(b, T, B=1, E=256, H=4, kernel=15):
    """Half a feed-forward layer, attention, a convolution with gates, a GRU, the other half (Gulati et al., 2020)."""
    half = b.net.constant(np.float32(0.5))
    x = b.net.input("x", "f32", [B, T, E])
    x = b.node("Add", x, b.node("Mul", b.feed_forward(b.norm(x, E), E, 4 * E), half))
    x = b.node("Add", x, b.self_attention(b.norm(x, E), B, T, E, H))
    x = b.node("Add", x, convolution(b, b.norm(x, E), E, kernel))
    x = b.node("Add", x, b.gru(b.norm(x, E), B, T, E))
    x = b.node("Add", x, b.node("Mul", b.feed_forward(b.norm(x, E), E, 4 * E), half))
    return b.norm(x, E)


def convolution(b, x, E, kernel):
    """Pointwise with gates, depthwise over time, pointwise."""
    x = b.node("Transpose", x, perm=[0, 2, 1])
    x = b.node("Conv", x, weights_of(b, 2 * E, E, 1), b.weights(2 * E), kernel_shape=[1])
    value, gate = b.net.node("Split", [x, b.integers(E, E)], 2, axis=1)
    x = b.node("Mul", value, b.node("Sigmoid", gate))
    x = b.node("Conv", x, weights_of(b, E, 1, kernel), b.weights(E), kernel_shape=[kernel], group=E,
               pads=[kernel // 2, kernel // 2])
    x = b.node("Mul", x, b.node("Sigmoid", x))
    x = b.node("Conv", x, weights_of(b, E, E, 1), b.weights(E), kernel_shape=[1])
    return b.node("Transpose", x, perm=[0, 2, 1])


def weights_of(b, outputs, inputs, kernel):
    values = b.rng.uniform(-1, 1, (outputs, inputs, kernel)) / math.sqrt(inputs * kernel)
    return b.net.constant(values.astype(np.float32))


def model(case):
    """The case's model, by its function and sizes."""
    from support.model_builder import Model
    net = Model(case.name)
    net.node("Identity", [globals()[case.network](Builder(net), **dict(case.sizes))], ["y"])
    net.output("y")
    return net


def multiply_adds(net, shapes):
    """shapes: of all values, by name."""
    return sum(of_node(node, net, shapes) for node in net.nodes)


def of_node(node, net, shapes):
    result = math.prod(shapes[node["outputs"][0]])
    if node["op"] == "MatMul":
        return result * shapes[node["inputs"][0]][-1]
    weights = [net.arrays[name].shape for name in node["inputs"][1:3] if name in net.arrays]
    if node["op"] == "Conv":
        return result * math.prod(weights[0][1:])
    if node["op"] in ("GRU", "LSTM"):  # Y is [T, directions, B, H], weights are [directions, gates, inputs]
        return result // weights[0][0] // node["attributes"]["hidden_size"] * sum(map(math.prod, weights))
    return 0
