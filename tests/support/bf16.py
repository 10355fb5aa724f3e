# SPDX-License-Identifier: MIT
"""Products of bf16 with sums in f32, in double precision, with the error that they may have: MatMul and recurrent layers,
step by step. `rounded` is what becomes of inputs and states: bf16() where they are rounded, too, else exact().

Each two products take two sums, which may each be wrong by one part in 2^23 of what is summed up: K / 2 times two of a sum of K."""
import ml_dtypes
import numpy as np

from support.model_builder import Model
from support.module import Module

EPS = 2.0**-23


def bf16(x):
    return np.asarray(x, np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)


def exact(x):
    return np.asarray(x, np.float64)


def product(x, w, rounded=bf16):
    """Of numbers of bf16, and how far f32 may be from it; the last addend and element-wise step may add an EPS each."""
    terms = np.abs(rounded(x)) @ np.abs(bf16(w))
    return rounded(x) @ bf16(w), (x.shape[-1] + 4) * EPS * terms


def assert_within(got, due, limit, what):
    assert got.shape == due.shape and (np.abs(got - due) <= limit + 1e-37).all(), f"{what}: {np.abs(got - due).max()}"


def run_here(module, feeds, threads):
    """Between pages that must not be touched."""
    with Module(module) as opened, opened.context(threads) as context:
        return context.run(feeds)


# ---- products ----

def check_products(built, shapes, rounded):
    """shapes: rows, K and N of each MatMul. built(model) -> run(feeds, threads) -> name -> array."""
    net, rng, due, feeds = Model(), np.random.default_rng(1), {}, {}
    for i, (rows, K, N) in enumerate(shapes):
        x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((rows, K), (K, N)))
        net.node("MatMul", [net.input(f"x{i}", "f32", [rows, K]), net.constant(w)], [f"y{i}"])
        net.output(f"y{i}")
        due[f"y{i}"], feeds[f"x{i}"] = product(x, w, rounded), x
    got = built(net)(feeds)
    for name, (values, limit) in due.items():
        assert_within(got[name], values, limit, name)


def check_gemm(built, depths, transA, rounded):
    """Relu(alpha x w + beta c): K of a transposed x does not stand side by side; sums of the deepest are put by."""
    rng, net, feeds, due = np.random.default_rng(2), Model(), {}, {}
    for K in depths:
        x, w, c = (rng.standard_normal(shape).astype(np.float32) for shape in ((7, K), (21, K), (21,)))
        a = net.input(f"x{K}", "f32", [K, 7] if transA else [7, K])
        b = net.node("Gemm", [a, net.constant(w), net.constant(c)], transA=transA, transB=1, alpha=.5, beta=2.0)
        net.node("Relu", [b], [f"y{K}"])
        net.output(f"y{K}")
        values, limit = product(x, w.T, rounded)
        feeds[f"x{K}"] = np.ascontiguousarray(x.T) if transA else x
        due[f"y{K}"] = np.maximum(values / 2 + 2 * c.astype(np.float64), 0), limit + 4 * EPS * np.abs(c)
    got = built(net)(feeds)
    for name, (values, limit) in due.items():
        assert_within(got[name], values, limit, name)


def check_rows(built, most, runs):
    """Rows have the same bits alone and among others. runs: how many of `most` rows, on how many threads."""
    net, rng = Model(), np.random.default_rng(3)
    net.dim("M", 1, 6, most)
    net.output(net.node("MatMul", [net.input("x", "f32", ["M", 301]), net.constant(rng.standard_normal((301, 50)).astype(np.float32))]))
    run, x = built(net), rng.standard_normal((most, 301)).astype(np.float32)
    (due,) = run({"x": x}).values()
    for rows, threads in runs:
        for first in (0, most - rows):
            (got,) = run({"x": x[first:first + rows]}, threads).values()
            assert np.array_equal(got.view(np.uint32), due[first:first + rows].view(np.uint32)), (rows, threads)


# ---- recurrent layers ----

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
T, B = 5, 7


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Layer:
    def __init__(self, net, op, inputs, units, batch=B, rounded=bf16, largest=.5, **attributes):
        rng = np.random.default_rng([4, inputs, units])
        self.op, self.H, self.attributes, self.rounded = op, units, attributes, rounded
        self.directions = 1 + (attributes.get("direction") == "bidirectional")
        rows = GATES[op] * units
        self.W, self.R = (rng.uniform(-largest, largest, (self.directions, rows, depth)).astype(np.float32) for depth in (inputs, units))
        self.b = rng.uniform(-.1, .1, (self.directions, 2 * rows)).astype(np.float32)
        self.input, self.output = f"x_{op}{inputs}", f"Y_{op}{inputs}"
        x = net.input(self.input, "f32", ["T", "B", inputs])
        net.node(op, [x, *map(net.constant, (self.W, self.R, self.b))], [self.output], hidden_size=units, **attributes)
        net.output(self.output)
        self.x = rng.standard_normal((T, batch, inputs)).astype(np.float32)

    def sums(self, d, weights, v, rows=slice(None)):
        return self.rounded(v) @ bf16(weights[d][rows]).T

    def step(self, d, x, h, c):
        """The next state, c, and what a state that is rounded here, and next to a tie, may change."""
        H, Wb, Rb = self.H, *np.split(self.b[d].astype(np.float64), 2)
        W, R = self.sums(d, self.W, x) + Wb, self.sums(d, self.R, h) + Rb
        if self.op == "RNN":
            return np.tanh(W + R), c, 0
        if self.op == "LSTM":
            i, o, f, g = np.split(W + R, 4, axis=-1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            return sigmoid(o) * np.tanh(c), c, 0
        z, r = (sigmoid(W[:, k:k + H] + R[:, k:k + H]) for k in (0, H))
        last, doubt = slice(2 * H, 3 * H), 0
        if self.attributes.get("linear_before_reset"):
            hidden = r * R[:, last]
        else:
            hidden = self.sums(d, self.R, r * h, last) + Rb[last]
            doubt = np.abs(self.rounded(r * h * (1 + 1e-5)) - self.rounded(r * h * (1 - 1e-5))) @ np.abs(self.R[d][last].astype(np.float64)).T
        return (1 - z) * np.tanh(W[:, last] + hidden) + z * h, c, doubt

    def check(self, y, samples=slice(None)):
        """Each step by the states that the kernel itself has made of the steps before, so that no rounding goes the other way.
        An error of a gate, or of a cell state, is at most as large in what is made of it, and adds up over the steps."""
        magnitude = (np.abs(self.W).sum(-1).max() * np.abs(self.x).max() + np.abs(self.R).sum(-1).max() + 1)
        limit = T * (self.W.shape[2] + self.H + 4) * EPS * magnitude
        assert limit < 5e-3, "as large as a number that is not rounded"
        for d in range(self.directions):
            back = d == 1 or self.attributes.get("direction") == "reverse"
            h = c = np.zeros(y.shape[2:])
            for t in range(T)[::-1 if back else 1]:
                due, c, doubt = self.step(d, self.x[t, samples], h, c)
                error = np.abs(y[t, d] - due)
                assert (error <= limit + doubt).all() and np.median(error) < 2e-6, (self.output, t, error.max(), limit)
                h = y[t, d].astype(np.float64)


def feeds_of(layers, samples=slice(None)):
    return {layer.input: np.ascontiguousarray(layer.x[:, samples]) for layer in layers}


def assert_same_bits(got, due, samples, what):
    for name in due:
        part = np.ascontiguousarray(due[name][:, :, samples])
        assert np.array_equal(got[name].view(np.uint32), part.view(np.uint32)), (name, what)
