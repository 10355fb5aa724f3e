# SPDX-License-Identifier: MIT
"""Builds networks that read text, of layers that draw their weights from a seed, as builder.py does for images.

    net = Reader("tiny")
    words = net.embedding("words", 1000, 50)
    text = net.tokens("text", 1000, 1, 20)
    steps, last = net.read("GRU", net.embed(text, words), net.cell("encoder", "GRU", 50, 64))

Sequences are [T,B,features], token numbers [B,T]. A layer's weights are apart from the layer, because one encoder may
read several texts.
"""
import math
import zlib

import numpy

from support.model_builder import Model

GATES = {"GRU": 3, "LSTM": 4}


class Reader(Model):
    def __init__(self, name):
        super().__init__(name)
        self.rng = numpy.random.default_rng(zlib.crc32(name.encode()))
        self.draws = {}  # by input: what draws its tokens

    def tokens(self, name, count, *shape):
        """An input of token numbers, below `count`."""
        self.draws[name] = lambda rng, feeds, extents: rng.integers(0, count, extents)
        return self.input(name, "i64", list(shape))

    def choices(self, name, text, *shape):
        """An input of tokens that stand in the same row of another input."""
        self.draws[name] = lambda rng, feeds, extents: rng.permuted(feeds[text], axis=1)[:, :extents[1]].copy()
        return self.input(name, "i64", list(shape))

    def feeds(self, seed, **dims):
        """Inputs by name. dims: of those known at run time; default: the most."""
        rng, feeds = numpy.random.default_rng(seed), {}
        most = {name: dim["max"] for name, dim in self.dims.items()} | dims
        for given in self.inputs:
            extents = [most.get(extent, extent) for extent in given["shape"]]
            feeds[given["name"]] = self.draws[given["name"]](rng, feeds, extents)
        return feeds

    # Weights, by name

    def uniform(self, name, scale, *shape):
        return self.constant(self.rng.uniform(-scale, scale, shape).astype(numpy.float32), name)

    def embedding(self, name, tokens, features):
        return self.uniform(name, 1, tokens, features)

    def cell(self, name, op, inputs, units):
        """Of a layer of both directions: names of W, R and B, as ONNX has them."""
        rows, scale = GATES[op] * units, 1 / math.sqrt(units)
        return [self.uniform(f"{name}.W", scale, 2, rows, inputs), self.uniform(f"{name}.R", scale, 2, rows, units),
                self.uniform(f"{name}.B", scale, 2, 2 * rows)]

    def linear(self, name, inputs, outputs, scale=None):
        """Of a dense layer: names of the weight, [inputs,outputs], and the bias. Without a scale results are smaller than x."""
        scale = scale or 1 / math.sqrt(inputs)
        return [self.uniform(f"{name}.weight", scale, inputs, outputs), self.uniform(f"{name}.bias", scale, outputs)]

    # Layers

    def call(self, op, *inputs, **attributes):
        return self.node(op, list(inputs), **attributes)

    def integers(self, *values):
        return self.constant(numpy.array(values, numpy.int64))

    def shaped(self, x, *shape):
        """0: as it was; -1: the rest."""
        return self.call("Reshape", x, self.integers(*shape))

    def embed(self, tokens, table):
        """[B,T] numbers as [T,B,features]."""
        return self.call("Gather", table, self.call("Transpose", tokens, perm=[1, 0]))

    def read(self, op, x, cell):
        """A layer of both directions: its steps, [T,2,B,units], and each direction's last state, [2,B,units]."""
        units = self.arrays[cell[1]].shape[2]
        steps, last, *_ = self.node(op, [x, *cell], 2 if op == "GRU" else 3, hidden_size=units, direction="bidirectional",
                                    linear_before_reset=1 if op == "GRU" else None)
        name = cell[0].removesuffix(".W")
        self.nodes[-1]["name"] = f"{name}.{len(self.nodes)}" if any(node["name"] == name for node in self.nodes) else name
        return steps, last

    def joined(self, steps):
        """Both directions of each step, [T,B,2*units]."""
        return self.shaped(self.call("Transpose", steps, perm=[0, 2, 1, 3]), 0, 0, -1)

    def joined_ends(self, last):
        """Both directions' last states, [B,2*units]."""
        return self.shaped(self.call("Transpose", last, perm=[1, 0, 2]), 0, -1)

    def dense(self, x, weights):
        """Of the last axis; weights: linear()'s."""
        return self.call("Add", self.call("MatMul", x, weights[0]), weights[1])

    def finish(self, value, name):
        """The value becomes the output of that name."""
        self.output(self.node("Identity", [value], [name]))
