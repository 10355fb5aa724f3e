# SPDX-License-Identifier: MIT
"""Recurrent networks written out as products, sums and activations, in many ways, as exporters and people do.

A Network has weights W[G,H,I], R[G,H,H], Wb[G,H], Rb[G,H], gates in ONNX's order. A Speller adds its cells to a model,
each choice of spelling drawn from a generator or fixed by a keyword. Shapes: x[B,I], h[B,H], c[B,H].
"""
import copy

import numpy

from support.model_builder import Model

GATES = {"RNN": "h", "GRU": "zrn", "LSTM": "iofg"}

# Between an old value h and a new one n: the first half multiplies h by z, the second half by 1 - z.
BLENDS = ["(1-z)*n + z*h", "n + z*(h-n)", "n - z*(n-h)", "h + (1-z)*(n-h)", "h - (1-z)*(h-n)", "(n - z*n) + z*h",
          "(n + z*h) - z*n", "n + (z*h - z*n)", "n - (z*n - z*h)"]
TURNED_BLENDS = [text.translate(str.maketrans("hn", "nh")) for text in BLENDS]

# The choices, besides the gates' order.
CHOICES = {
    "inputs": ["xh", "hx", "apart"],  # concatenated, or one product for each
    "product": ["gemm", "gemm_transposed", "matmul"],
    "together": [True, False],  # one product for all gates, or one for each
    "cut": ["split", "slice"],
    "activate": ["before_cut", "after_cut"],
    "hoisted": [False, True],  # the products with x of all steps at once, before the loop
    "blend": BLENDS + TURNED_BLENDS,
    "bias": ["first", "second", "both", "added"],  # at which product, or by a separate Add; "none": no bias
}


class Network:
    """kind: RNN, GRU, LSTM. Weights are scaled so that one step contracts: rounding errors do not grow."""

    def __init__(self, kind, I, H, seed=0, reset_after=True, activation="Tanh"):
        rng = numpy.random.default_rng(seed)
        self.kind, self.I, self.H, self.gates = kind, I, H, GATES[kind]
        self.reset_after, self.activation = reset_after, activation
        G = len(self.gates)

        def draw(*shape, scale):
            return (rng.uniform(-1, 1, shape) * scale).astype(numpy.float32)

        self.W, self.R = draw(G, H, I, scale=I**-0.5), draw(G, H, H, scale=0.5 * H**-0.5)
        self.Wb, self.Rb = draw(G, H, scale=0.5), draw(G, H, scale=0.5)


class Speller:
    def __init__(self, model, network, rng, **fixed):
        self.model, self.network, self.rng = model, network, rng
        self.all_x, self.products_with_x = None, {}  # of a hoisted loop: its X, and by gates the products' steps
        choices = {name: values[rng.integers(len(values))] for name, values in CHOICES.items()}
        choices["order"] = "".join(rng.permutation(list(network.gates)))
        unknown = set(fixed) - set(choices)
        assert not unknown, unknown
        self.choice = choices | fixed

    # nodes

    def op(self, name, *inputs, **attributes):
        return self.model.node(name, [i.name() if isinstance(i, Zeros) else i for i in inputs], **attributes)

    def constant(self, array):
        return self.model.constant(array)

    def either(self, name, a, b):
        return self.op(name, a, b) if self.rng.random() < 0.5 else self.op(name, b, a)

    def add(self, *terms):
        """In a random order and association."""
        terms = list(terms)
        while len(terms) > 1:
            a = terms.pop(self.rng.integers(len(terms)))
            b = terms.pop(self.rng.integers(len(terms)))
            terms.append(self.op("Add", a, b))
        return terms[0]

    def mul(self, a, b):
        return self.either("Mul", a, b)

    def formula(self, text, **values):
        """`(1-z)*n + z*h` of named values."""
        return eval(text, {}, {name: Term(self, value) for name, value in values.items()}).name

    # sums of products

    def product(self, value, weights, bias=None):
        """value[.., K] times weights[N, K], plus bias[N]."""
        way = self.choice["product"]
        if way == "matmul" or (self.choice["hoisted"] and value == self.all_x):
            product = self.op("MatMul", value, self.constant(weights.T))
            return product if bias is None else self.either("Add", product, self.constant(bias))
        transposed = way == "gemm_transposed"
        weights = self.constant(weights if transposed else weights.T)
        return self.op("Gemm", value, weights, *([] if bias is None else [self.constant(bias)]),
                       transB=int(transposed))

    def stacked(self, name, gates):
        return numpy.concatenate([getattr(self.network, name)[self.network.gates.index(gate)] for gate in gates])

    def sums(self, gates, x, h):
        """W x + Wb + R h + Rb of these gates, next to each other."""
        W, R, Wb, Rb = (self.stacked(name, gates) for name in ("W", "R", "Wb", "Rb"))
        bias = self.choice["bias"]
        if callable(x):
            return self.add(x(gates), self.product(h, R, Rb))
        if self.choice["inputs"] == "apart":
            both = [self.product(x, W, {"first": Wb + Rb, "both": Wb}.get(bias)),
                    self.product(h, R, {"second": Wb + Rb, "both": Rb}.get(bias))]
            return self.add(*both, *([self.constant(Wb), self.constant(Rb)] if bias == "added" else []))
        first = self.choice["inputs"] == "xh"
        joined = self.op("Concat", *([x, h] if first else [h, x]), axis=-1)
        weights = numpy.concatenate([W, R] if first else [R, W], axis=1)
        if bias == "added":
            return self.add(self.product(joined, weights), self.constant(Wb), self.constant(Rb))
        return self.product(joined, weights, None if bias == "none" else Wb + Rb)

    # gates

    def cut(self, value, sizes):
        if len(sizes) == 1:
            return [value]
        if self.choice["cut"] == "split":
            return self.model.node("Split", [value, self.constant(numpy.array(sizes))], len(sizes), axis=-1)
        ends = numpy.cumsum(sizes)
        return [self.op("Slice", value, *(self.constant(numpy.array([n])) for n in (end - size, end, -1)))
                for end, size in zip(ends, sizes)]

    def ordered(self, gates):
        return [gate for gate in self.choice["order"] if gate in gates]

    def activate(self, gates, block):
        """The gates of a block, each through its activation; the block is cut before or after it."""
        functions = [self.network.activation if gate == "h" else "Tanh" if gate in "ng" else "Sigmoid"
                     for gate in gates]
        H = self.network.H
        if self.choice["activate"] == "after_cut":
            return {gate: self.op(function, part) for gate, function, part in
                    zip(gates, functions, self.cut(block, [H] * len(gates)))}
        runs = []  # [function, consecutive gates that have it]
        for gate, function in zip(gates, functions):
            if runs and runs[-1][0] == function:
                runs[-1][1].append(gate)
            else:
                runs.append([function, [gate]])
        result = {}
        for (function, members), part in zip(runs, self.cut(block, [H * len(members) for _, members in runs])):
            result |= dict(zip(members, self.cut(self.op(function, part), [H] * len(members))))
        return result

    def gates(self, gates, x, h):
        """Their values by name."""
        if self.choice["together"]:
            return self.activate(self.ordered(gates), self.sums(self.ordered(gates), x, h))
        return {gate: self.activate(gate, self.sums(gate, x, h))[gate] for gate in self.ordered(gates)}

    # cells

    def step(self, x, h, c=None):
        """h' and c'. x: a value, or with `hoisted` a function from gates to their products with it."""
        return getattr(self, self.network.kind.lower())(x, h, c)

    def rnn(self, x, h, c):
        return self.gates("h", x, h)["h"], None

    def lstm(self, x, h, c):
        gate = self.gates("iofg", x, h)
        c = self.add(self.mul(gate["f"], c), self.mul(gate["i"], gate["g"]))
        return self.mul(gate["o"], self.op("Tanh", c)), c

    def gru(self, x, h, c):
        gate = self.gru_after(x, h) if self.network.reset_after else self.gru_before(x, h)
        if self.choice["blend"] in TURNED_BLENDS:
            gate["z"] = self.turned_gate("z", x, h)
        return self.formula(self.choice["blend"], z=gate["z"], n=gate["n"], h=h), None

    def turned_gate(self, name, x, h):
        """1 - the gate, as a network of the other convention computes it: from negated sums."""
        network, self.network = self.network, copy.copy(self.network)
        for weights in ("W", "R", "Wb", "Rb"):
            negative = getattr(network, weights).copy()
            negative[network.gates.index(name)] *= -1
            setattr(self.network, weights, negative)
        gate = self.gates(name, self.plain_x if callable(x) else x, h)[name]
        self.network = network
        return gate

    def needed(self, gates):
        return gates.replace("z", "") if self.choice["blend"] in TURNED_BLENDS else gates

    def gru_before(self, x, h):
        """n = tanh(W x + R (r*h) + b)"""
        gate = self.gates(self.needed("zr"), x, h)
        return gate | self.gates("n", x, self.mul(gate["r"], h))

    def gru_after(self, x, h):
        """n = tanh(W x + Wb + r*(R h + Rb)), with one product of x and one of h for all gates, or one for each."""
        wanted = self.ordered(self.needed("zrn"))
        H = self.network.H

        def parts(value, weights, bias):
            if self.choice["together"]:
                block = self.product(value, self.stacked(weights, wanted), self.stacked(bias, wanted))
                return dict(zip(wanted, self.cut(block, [H] * len(wanted))))
            return {gate: self.product(value, self.stacked(weights, gate), self.stacked(bias, gate))
                    for gate in wanted}

        of_x = dict(zip(wanted, self.cut(x(wanted), [H] * len(wanted)))) if callable(x) else parts(x, "W", "Wb")
        of_h = parts(h, "R", "Rb")
        gate = {name: self.op("Sigmoid", self.add(of_x[name], of_h[name])) for name in wanted if name != "n"}
        return gate | {"n": self.op("Tanh", self.add(of_x["n"], self.mul(gate["r"], of_h["n"])))}

    # loops

    def steps_of(self, X, T, time_axis=0, way="gather"):
        """x of each step, of X[T,B,I] or, with time_axis=1, X[B,T,I]."""
        if way == "split":
            pieces = self.model.node("Split", [X], T, axis=time_axis, num_outputs=T) if T > 1 else [X]
            return [self.op("Squeeze", piece, self.constant(numpy.array([time_axis]))) for piece in pieces]
        if way == "slice":
            return [self.op("Squeeze", self.op("Slice", X, *(self.constant(numpy.array([n]))
                                                             for n in (t, t + 1, time_axis))),
                            self.constant(numpy.array([time_axis]))) for t in range(T)]
        return [self.op("Gather", X, self.constant(numpy.array(t)), axis=time_axis) for t in range(T)]

    def unroll(self, X, T, h, c=None, time_axis=0, way="gather", backwards=False):
        """h' of every step in time, and the last c'."""
        xs = self.steps_of(X, T, time_axis, way)
        if self.choice["hoisted"]:
            xs = [self.hoist(X, xs, t, T, time_axis, way) for t in range(T)]
        hs = []
        for x in reversed(xs) if backwards else xs:
            h, c = self.step(x, h, c)
            hs.append(h)
        return hs[::-1] if backwards else hs, c

    def hoist(self, X, xs, t, T, time_axis, way):
        """For `step`: returns the products of gates with x at t, which are steps of one product before the loop."""

        def products(gates):
            key = "".join(gates)
            if key not in self.products_with_x:
                self.all_x = X
                block = self.product(X, self.stacked("W", gates), self.stacked("Wb", gates))
                self.products_with_x[key] = self.steps_of(block, T, time_axis, way)
            self.plain_x = xs[t]
            return self.products_with_x[key][t]

        return products

    def stack(self, values, axis=0):
        """[T,B,H], or with axis=1 [B,T,H]."""
        return self.op("Concat", *[self.op("Unsqueeze", v, self.constant(numpy.array([axis]))) for v in values],
                       axis=axis)


class Zeros:
    """An initial state: a separate constant wherever it is read."""

    def __init__(self, speller, shape):
        self.speller, self.shape = speller, shape

    def name(self):
        return self.speller.constant(numpy.zeros(self.shape, numpy.float32))


class Term:
    """A value in a formula."""

    def __init__(self, speller, name):
        self.speller, self.name = speller, name

    def __add__(self, other):
        return Term(self.speller, self.speller.either("Add", self.name, other.name))

    def __sub__(self, other):
        return Term(self.speller, self.speller.op("Sub", self.name, other.name))

    def __mul__(self, other):
        return Term(self.speller, self.speller.mul(self.name, other.name))

    def __rsub__(self, number):
        one = self.speller.constant(numpy.array(number, numpy.float32))
        return Term(self.speller, self.speller.op("Sub", one, self.name))


def unrolled(network, rng, T, B=2, initial="zeros", outputs="last", time_axis=0, way="gather", backwards=False,
             named_batch=False, **fixed):
    """A model of one unrolled network, and feeds for it. initial: zeros, input. outputs: last, each, stack, stack1."""
    model = Model("unrolled")
    batch = model.dim("B", 1, B, 8) if named_batch else B
    speller = Speller(model, network, rng, **fixed)
    x_shape = [T, batch, network.I] if time_axis == 0 else [batch, T, network.I]
    X = model.input("x", "f32", x_shape)
    feeds = {"x": rng.uniform(-1, 1, [B if n == "B" else n for n in x_shape]).astype(numpy.float32)}
    states = []
    for name in ("h0", "c0")[:2 if network.kind == "LSTM" else 1]:
        if initial == "zeros":
            rows = 1 if named_batch else B
            states.append(Zeros(speller, (rows, network.H)))
        else:
            states.append(model.input(name, "f32", [batch, network.H]))
            feeds[name] = rng.uniform(-1, 1, (B, network.H)).astype(numpy.float32)
    hs, c = speller.unroll(X, T, *states, time_axis=time_axis, way=way, backwards=backwards)
    if outputs == "last":
        model.output(hs[0] if backwards else hs[-1], *([c] if c else []))
    elif outputs == "each":
        model.output(*hs)
    else:
        model.output(speller.stack(hs, 1 if outputs == "stack1" else 0))
    return model, feeds
