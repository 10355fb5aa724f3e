# SPDX-License-Identifier: MIT
"""A case's weights, input, model files, and its outputs in double precision. Shapes as in ONNX:

x[T,B,I], h0 and c0[D,B,H]; W[D,G*H,I], R[D,G*H,H], B[D,2*G*H] with G gates, in the order z r h (GRU) and i o f c
(LSTM). Y[T,D,B,H]; streaming: Y_h and Y_c[D,B,H].
"""
import math

import numpy as np

from benchmarks.cases import GATES

EPS = float(np.finfo(np.float32).eps)


def layers(case):
    """Weights of each layer: (W, R, B). Scaled so that a step contracts: rounding errors do not grow over steps."""
    rng = np.random.default_rng(1)
    rows = GATES[case.op] * case.H

    def uniform(scale, *shape):
        return (rng.uniform(-1, 1, shape) * scale).astype(np.float32)

    scale = 1 / math.sqrt(case.H)
    return [(uniform(scale, case.D, rows, case.H), uniform(0.5 * scale, case.D, rows, case.H),
             uniform(0.5, case.D, 2 * rows)) for _ in range(case.layers)]


def state_names(case):
    return [] if not case.streaming else ["h0", "c0"] if case.op == "LSTM" else ["h0"]


def output_names(case):
    return ["Y"] if not case.streaming else ["Y_h", "Y_c"] if case.op == "LSTM" else ["Y_h"]


def feeds(case):
    rng = np.random.default_rng(2)
    shapes = {"x": (case.T, case.B, case.H), **{name: (case.D, case.B, case.H) for name in state_names(case)}}
    return {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}


def output_shape(case):
    return (case.D, case.B, case.H) if case.streaming else (case.T, case.D, case.B, case.H)


def model(case):
    """All sizes are known when it is compiled: to rnncc, and to the peers that read the ONNX file."""
    from support.model_builder import Model
    net = Model(case.name)
    net.dim("T", case.T, case.T, case.T)
    net.dim("B", case.B, case.B, case.B)
    attributes = {"hidden_size": case.H, "direction": "bidirectional" if case.bidirectional else None,
                  "linear_before_reset": 1 if case.op == "GRU" else None}
    value = net.input("x", "f32", [case.T, case.B, case.H])
    states = [net.input(name, "f32", [case.D, case.B, case.H]) for name in state_names(case)]
    for number, weights in enumerate(layers(case), 1):
        constants = [net.constant(array) for array in weights]
        last = number == case.layers
        outputs = (["", *output_names(case)] if case.streaming else ["Y"]) if last else [f"steps{number}"]
        value = net.node(case.op, [value, *constants, *(["", *states] if states else [])], outputs, **attributes)
        if not last:
            value = net.node("Squeeze", [value, net.constant(np.array([1]))])  # its one direction
    net.output(*output_names(case))
    return net


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(op, x, h, c, R, Rb):
    """x[B,G*H]: W x with both biases, but without the recurrent bias of GRU's last gate, which r scales."""
    gates = np.split(x, GATES[op], axis=1)
    if op == "RNN":
        return np.tanh(x + h @ R.T), c
    if op == "GRU":
        recurrent = np.split(h @ R.T, 3, axis=1)
        z, r = (sigmoid(gates[k] + recurrent[k]) for k in range(2))
        n = np.tanh(gates[2] + r * (recurrent[2] + Rb))
        return (1 - z) * n + z * h, c
    i, o, f, n = np.split(x + h @ R.T, 4, axis=1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(n)
    return sigmoid(o) * np.tanh(c), c


def direction_reference(case, x, W, R, bias, h, c, backwards):
    """(h of all steps [T,B,H], last h, last c), in double."""
    W, R, bias = (array.astype(np.float64) for array in (W, R, bias))
    Wb, Rb = np.split(bias, 2)
    hidden_bias = Rb[2 * case.H:].copy() if case.op == "GRU" else None
    if case.op == "GRU":
        Rb[2 * case.H:] = 0
    inputs = x @ W.T + Wb + Rb
    steps = np.empty((case.T, case.B, case.H))
    for t in reversed(range(case.T)) if backwards else range(case.T):
        h, c = step(case.op, inputs[t], h, c, R, hidden_bias)
        steps[t] = h
    return steps, h, c


def reference(case):
    """Name -> output, in double."""
    given = {name: array.astype(np.float64) for name, array in feeds(case).items()}
    zero = np.zeros((case.D, case.B, case.H))
    x = given["x"]
    for W, R, bias in layers(case):
        h0, c0 = (given.get(name, zero) for name in ("h0", "c0"))
        ends = [direction_reference(case, x, W[d], R[d], bias[d], h0[d], c0[d], d == 1) for d in range(case.D)]
        Y, Y_h, Y_c = (np.stack([end[k] for end in ends], axis=1 if k == 0 else 0) for k in range(3))
        x = Y[:, 0]
    return {name: {"Y": Y, "Y_h": Y_h, "Y_c": Y_c}[name] for name in output_names(case)}


def tolerance(case):
    """4 ceil(log2(K T)) eps for each layer, K = I + H: the bound that rnncc states, relative to the largest value."""
    return case.layers * 4 * math.ceil(math.log2(2 * case.H * case.T)) * EPS


PEER_COARSENESS = 1e-5  # peers' tanh and sigmoid have errors of some 1e-6; a misplaced gate is off by 0.1


def error(outputs, expected):
    """The largest difference, relative to the largest value where that is over 1. NaN is an infinite error."""
    worst = 0.0
    for name, values in expected.items():
        difference = np.abs(outputs[name].astype(np.float64) - values).max() / max(1.0, np.abs(values).max())
        worst = max(worst, float(difference)) if np.isfinite(difference) else math.inf
    return worst
