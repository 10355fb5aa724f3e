# SPDX-License-Identifier: MIT
"""Random RNN, GRU and LSTM configurations over every ONNX attribute, and their values in double precision.

Shapes: T steps, B sequences, I inputs, H units, D directions; X[T,B,I], Y[T,D,B,H], states[D,B,H]; with layout=1
X[B,T,I], Y[B,T,D,H], states[B,D,H].
"""
import math
from dataclasses import dataclass, field

import numpy as np

from support.model_builder import Model

MAX_T, MAX_B = 20, 6
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ACTIVATIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}  # of one direction
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
OUTPUTS = {"RNN": ["Y", "Y_h"], "GRU": ["Y", "Y_h"], "LSTM": ["Y", "Y_h", "Y_c"]}

# name: (function of x, alpha, beta; alpha's range and beta's, None if it takes none). ThresholdedRelu jumps, so a
# rounding error in its input has no bound in its output: only cases with exact arithmetic use it.
FUNCTIONS = {
    "Affine": (lambda x, a, b: a * x + b, (0.3, 0.9), (-0.3, 0.3)),
    "Elu": (lambda x, a, b: np.where(x < 0, a * np.expm1(np.minimum(x, 0)), x), (0.3, 1.0), None),
    "HardSigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), (0.1, 0.5), (0.3, 0.7)),
    "LeakyRelu": (lambda x, a, b: np.where(x < 0, a * x, x), (0.01, 0.5), None),
    "Relu": (lambda x, a, b: np.maximum(x, 0), None, None),
    "ScaledTanh": (lambda x, a, b: a * np.tanh(b * x), (0.5, 1.2), (0.5, 1.0)),
    "Sigmoid": (lambda x, a, b: 1 / (1 + np.exp(-x)), None, None),
    "Softplus": (lambda x, a, b: np.logaddexp(x, 0), None, None),
    "Softsign": (lambda x, a, b: x / (1 + np.abs(x)), None, None),
    "Tanh": (lambda x, a, b: np.tanh(x), None, None),
    "ThresholdedRelu": (lambda x, a, b: np.where(x > a, x, 0), (1, 1), None),
}
BOUNDED = ["HardSigmoid", "ScaledTanh", "Sigmoid", "Softsign", "Tanh"]
SMOOTH = [name for name in FUNCTIONS if name != "ThresholdedRelu"]


@dataclass
class Configuration:
    op: str
    I: int
    H: int
    direction: str = "forward"
    layout: int = 0
    clip: float = None
    activations: list = None  # None: the defaults
    alpha: list = field(default_factory=list)
    beta: list = field(default_factory=list)
    linear_before_reset: int = 0
    input_forget: int = 0
    bias: bool = True
    peepholes: bool = False
    lengths: bool = False
    h0: bool = False
    c0: bool = False
    outputs: tuple = ("Y", "Y_h")
    seed: int = 0

    @property
    def D(self):
        return 2 if self.direction == "bidirectional" else 1

    @property
    def name(self):
        parts = [self.op, self.direction, f"i{self.I}h{self.H}", "batchfirst" if self.layout else "",
                 f"clip{self.clip:g}" if self.clip else "", "-".join(self.activations or []),
                 "lbr" if self.linear_before_reset else "", "coupled" if self.input_forget else "",
                 "" if self.bias else "nobias", "peep" if self.peepholes else "", "len" if self.lengths else "",
                 "h0" if self.h0 else "", "c0" if self.c0 else "", "+".join(self.outputs)]
        return "_".join(part for part in parts if part)

    # weights

    def random_weights(self):
        """Scaled so that one step contracts: rounding errors then do not grow from step to step."""
        rng = np.random.default_rng(self.seed)
        gates, D, I, H = GATES[self.op], self.D, self.I, self.H
        weights = {"W": rng.uniform(-1, 1, (D, gates * H, I)) / math.sqrt(I),
                   "R": rng.uniform(-1, 1, (D, gates * H, H)) * 0.5 / math.sqrt(H)}
        if self.bias:
            weights["B"] = rng.uniform(-0.5, 0.5, (D, 2 * gates * H))
        if self.peepholes:
            weights["P"] = rng.uniform(-0.3, 0.3, (D, 3 * H))
        return {name: array.astype(np.float32) for name, array in weights.items()}

    # the model

    def attributes(self, layout):
        attributes = {"hidden_size": self.H}
        if self.direction != "forward" or self.seed % 2:
            attributes["direction"] = self.direction
        if layout:
            attributes["layout"] = 1
        if self.clip:
            attributes["clip"] = float(self.clip)
        if self.activations:
            attributes["activations"] = self.activations
        if self.alpha:
            attributes["activation_alpha"] = [float(a) for a in self.alpha]
        if self.beta:
            attributes["activation_beta"] = [float(b) for b in self.beta]
        if self.linear_before_reset:
            attributes["linear_before_reset"] = 1
        if self.input_forget:
            attributes["input_forget"] = 1
        return attributes

    @property
    def prefix(self):
        return f"n{self.seed}_"

    def add_to(self, model, weights, layout=None, streaming=False):
        """One node with its own inputs, constants and outputs, with prefixed names. ONNX Runtime can run layout=0
        only. streaming: the states stay in the context."""
        layout = self.layout if layout is None else layout
        state_shape = ["B", self.D, self.H] if layout else [self.D, "B", self.H]
        wanted = [name if streaming or name in self.outputs else "" for name in OUTPUTS[self.op]]

        def named(name):
            return name and self.prefix + name

        def constant(name):
            return model.constant(weights[name], named(name)) if name in weights else ""

        def state(name, present, output):
            if streaming:
                return model.state(named(name), named(output), "f32", state_shape, batch_axis=0 if layout else 1)
            return model.input(named(name), "f32", state_shape) if present else ""

        inputs = [model.input(named("x"), "f32", ["B", "T", self.I] if layout else ["T", "B", self.I]),
                  constant("W"), constant("R"), constant("B"),
                  model.input(named("lengths"), "i32", ["B"]) if self.lengths else "", state("h0", self.h0, "Y_h")]
        if self.op == "LSTM":
            inputs += [state("c0", self.c0, "Y_c"), constant("P")]
        model.node(self.op, without_trailing_gaps(inputs), [named(name) for name in without_trailing_gaps(wanted)],
                   **self.attributes(layout))
        model.output(*[named(name) for name in (["Y"] if streaming else wanted) if name])

    def named(self, arrays):
        return {self.prefix + name: array for name, array in arrays.items()}

    def own(self, arrays):
        """This configuration's arrays, by their names without the prefix."""
        return {name.removeprefix(self.prefix): array for name, array in arrays.items()
                if name.startswith(self.prefix)}

    # data

    def random_feeds(self, T, B, seed):
        rng = np.random.default_rng([self.seed, T, B, seed])
        feeds = {"x": rng.uniform(-1, 1, (T, B, self.I)).astype(np.float32)}
        if self.lengths:
            feeds["lengths"] = rng.integers(1, T + 1, B).astype(np.int32)
        for name in ("h0", "c0"):
            if getattr(self, name):
                feeds[name] = rng.uniform(-1, 1, (self.D, B, self.H)).astype(np.float32)
        return feeds

    def to_layout(self, arrays):
        """Inputs or outputs of layout 0, converted to this configuration's layout."""
        order = {"x": (1, 0, 2), "Y": (2, 0, 1, 3), "lengths": (0,)}
        if not self.layout:
            return arrays
        return {name: np.ascontiguousarray(array.transpose(order.get(name, (1, 0, 2))))
                for name, array in arrays.items()}

    # values

    def functions(self):
        """For each direction its activations as functions of x. Alphas and betas go, in order, to those that take one."""
        names = self.activations or DEFAULTS[self.op] * self.D
        alphas, betas = iter(self.alpha), iter(self.beta)
        bound = []
        for name in names:
            function, alpha, beta = FUNCTIONS[name]
            a = float(np.float32(next(alphas))) if alpha else 0
            b = float(np.float32(next(betas))) if beta else 0
            bound.append(lambda x, function=function, a=a, b=b: function(x, a, b))
        per_direction = ACTIVATIONS[self.op]
        return [bound[d * per_direction:(d + 1) * per_direction] for d in range(self.D)]

    def values(self, weights, feeds, seen=None):
        """Y, Y_h and (LSTM) Y_c of layout 0 in double precision. seen: Y as a module has it, from whose states each step
        starts, so that what a step does to its state is seen apart from what the steps before it did."""
        x = feeds["x"].astype(np.float64)
        T, B, _ = x.shape
        result = {"Y": np.zeros((T, self.D, B, self.H)), "Y_h": np.zeros((self.D, B, self.H)),
                  "Y_c": np.zeros((self.D, B, self.H))}
        lengths = feeds.get("lengths", np.full(B, T))
        for d in range(self.D):
            step = self.cell(weights, d)
            for b in range(B):
                h, c = (feeds[name][d, b].astype(np.float64) if name in feeds else np.zeros(self.H)
                        for name in ("h0", "c0"))
                steps = range(lengths[b])
                for t in reversed(steps) if d == 1 or self.direction == "reverse" else steps:
                    h, c = step(x[t, b], h, c)
                    result["Y"][t, d, b] = h
                    self.stepped(t, d, b)
                    h = h if seen is None else seen[t, d, b].astype(np.float64)
                if lengths[b]:
                    result["Y_h"][d, b], result["Y_c"][d, b] = h, c
        return {name: result[name] for name in OUTPUTS[self.op]}

    def stepped(self, t, d, b):
        """After each step."""

    def product(self, matrix, vector, of):
        """of: "x", "h", or "rh", the reset gate's product with h, which no output shows."""
        return matrix @ vector

    def cell(self, weights, d):
        """step(x[I], h[H], c[H]) -> the new h and c, in direction d."""
        gates, H = GATES[self.op], self.H
        W, R = (weights[name][d].astype(np.float64).reshape(gates, H, -1) for name in "WR")
        Wb, Rb = weights["B"][d].astype(np.float64).reshape(2, gates, H) if self.bias else np.zeros((2, gates, H))
        Pi, Po, Pf = weights["P"][d].astype(np.float64).reshape(3, H) if self.peepholes else np.zeros((3, H))
        f, g, h_function = (self.functions()[d] + [None, None])[:3]
        times = self.product

        def clipped(gate_sum):
            return np.clip(gate_sum, -np.float64(np.float32(self.clip)), np.float64(np.float32(self.clip))) \
                if self.clip else gate_sum

        def rnn(x, h, c):
            return f(clipped(times(W[0], x, "x") + times(R[0], h, "h") + Wb[0] + Rb[0])), c

        def gru(x, h, c):
            z = f(clipped(times(W[0], x, "x") + times(R[0], h, "h") + Wb[0] + Rb[0]))
            r = f(clipped(times(W[1], x, "x") + times(R[1], h, "h") + Wb[1] + Rb[1]))
            hidden = r * (times(R[2], h, "h") + Rb[2]) if self.linear_before_reset else times(R[2], r * h, "rh") + Rb[2]
            n = g(clipped(times(W[2], x, "x") + Wb[2] + hidden))
            return (1 - z) * n + z * h, c

        def lstm(x, h, c):
            i, o, forget, n = (times(W[gate], x, "x") + times(R[gate], h, "h") + Wb[gate] + Rb[gate] for gate in range(gates))
            i = f(clipped(i + Pi * c))
            forget = 1 - i if self.input_forget else f(clipped(forget + Pf * c))
            c = forget * c + i * g(clipped(n))
            o = f(clipped(o + Po * c))
            return o * h_function(c), c

        return {"RNN": rnn, "GRU": gru, "LSTM": lstm}[self.op]


def without_trailing_gaps(names):
    return names[:max(index for index, name in enumerate(names) if name) + 1]


def model_of(configurations, weights=Configuration.random_weights, T=None, B=None, **how):
    """One model of many independent nodes. `weights` returns those of a configuration. T, B: fixed at compile time, so
    that kernels have fewer heights of blocks; else any up to MAX_T and MAX_B."""
    model = Model("net")
    model.dim("T", *((T, T, T) if T else (1, 10, MAX_T)))
    model.dim("B", *((B, B, B) if B else (1, 2, MAX_B)))
    for configuration in configurations:
        configuration.add_to(model, weights(configuration), **how)
    return model


# Sizes around vector widths and their multiples, and anything else.
EDGES = [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 127, 128, 129, 130]
SHARING = 5  # consecutive configurations with the same cell, which share its compiled kernels
SAME_OP = 2 * SHARING


def sometimes(rng, p=0.5):
    return bool(rng.random() < p)


def random_activations(rng, op):
    """(names, alphas, betas) of one direction. Gates keep to functions into [0, 1], so that steps contract."""
    names, alphas, betas = [], [], []
    for i in range(ACTIVATIONS[op]):
        gate = op != "RNN" and i == 0
        name = str(rng.choice(["HardSigmoid", "Sigmoid"] if gate else SMOOTH if op == "RNN" else BOUNDED))
        _, alpha, beta = FUNCTIONS[name]
        names.append(name)
        alphas += [round(float(rng.uniform(*alpha)), 3)] if alpha else []
        betas += [round(float(rng.uniform(*beta)), 3)] if beta else []
    return names, alphas, betas


def random_cell(rng, op, D):
    """The fields that determine a kernel's code."""
    cell = {"clip": round(float(rng.uniform(0.1, 3)), 2) if sometimes(rng, 0.3) else None,
            "linear_before_reset": int(sometimes(rng) and op == "GRU"),
            "input_forget": int(sometimes(rng, 0.25) and op == "LSTM"),
            "peepholes": sometimes(rng, 0.4) and op == "LSTM", "lengths": sometimes(rng, 0.4)}
    if sometimes(rng, 0.4):
        directions = [random_activations(rng, op) for _ in range(D)]
        cell["activations"], cell["alpha"], cell["beta"] = (sum(parts, []) for parts in zip(*directions))
    return cell


def random_configuration(seed):
    rng = np.random.default_rng([2026, seed])

    def size():
        return int(rng.choice(EDGES)) if sometimes(rng) else int(rng.integers(1, 131))

    op, direction = list(GATES)[seed // SAME_OP % 3], ("forward", "reverse", "bidirectional")[seed % 3]
    cell = random_cell(np.random.default_rng([2027, seed // SHARING]), op, 2 if direction == "bidirectional" else 1)
    wanted = [name for name in OUTPUTS[op] if sometimes(rng, 0.7)]
    return Configuration(op=op, I=size(), H=size(), seed=seed, direction=direction, layout=int(sometimes(rng, 0.3)),
                         bias=sometimes(rng, 0.7), h0=sometimes(rng), c0=sometimes(rng) and op == "LSTM",
                         outputs=tuple(wanted or ["Y"]), **cell)
