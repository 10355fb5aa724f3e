# SPDX-License-Identifier: MIT
"""The training cases: one recurrent layer whose input is scaled by trained numbers, so that the input's gradient is
computed, too, and the mean of squared differences to a target. For rnncc as a layer and as nodes written out, step by
step; for PyTorch as its layer and as a loop over its cell.
"""
import numpy as np

from benchmarks import networks
from benchmarks.cases import GATES


def feeds_of(case):
    rng = np.random.default_rng(2)
    shape = (case.T, case.B, case.H)
    return {name: rng.uniform(-1, 1, shape).astype(np.float32) for name in ("x", "target")}


def weights(case):
    """W [G*H, I], R [G*H, H], bias [2*G*H]."""
    (W, R, bias), = networks.layers(case)
    return W[0], R[0], bias[0]


# rnncc


def started(case, name):
    from support.model_builder import Model
    net = Model(name)
    shape = [case.T, case.B, case.H]
    x, target = net.input("x", "f32", shape), net.input("target", "f32", shape)
    return net, net.node("Mul", [x, net.constant(np.ones(case.H, np.float32), "scale")]), target


def ended(net, y, target):
    difference = net.node("Sub", [y, target])
    net.output(net.node("ReduceMean", [net.node("Mul", [difference, difference])], keepdims=0))
    return net


def layer_model(case):
    net, x, target = started(case, "layer")
    W, R, bias = weights(case)
    constants = [net.constant(array[None], name) for array, name in ((W, "W"), (R, "R"), (bias, "B"))]
    y = net.node(case.op, [x, *constants], 1, hidden_size=case.H, linear_before_reset=1 if case.op == "GRU" else None)
    return ended(net, net.node("Squeeze", [y, net.constant(np.array([1]))]), target)


def written_step(net, op, gates, product, h, c):
    """gates, product: the input's and the state's parts, with biases. Returns the states after the step."""
    def split(value, count):
        return net.node("Split", [value], count, axis=1, num_outputs=count)

    def of(name, *values):
        return net.node(name, list(values))

    if op == "RNN":
        return of("Tanh", of("Add", gates, product)), None
    if op == "LSTM":
        i, o, f, n = split(of("Add", gates, product), 4)
        c = of("Add", of("Mul", of("Sigmoid", f), c), of("Mul", of("Sigmoid", i), of("Tanh", n)))
        return of("Mul", of("Sigmoid", o), of("Tanh", c)), c
    (z, r, n), (hz, hr, hn) = split(gates, 3), split(product, 3)
    z, r = of("Sigmoid", of("Add", z, hz)), of("Sigmoid", of("Add", r, hr))
    n = of("Tanh", of("Add", n, of("Mul", r, hn)))
    return of("Add", n, of("Mul", z, of("Sub", h, n))), None


def written_model(case):
    net, x, target = started(case, "written")
    W, R, bias = weights(case)
    W, R = net.constant(W, "W"), net.constant(R, "R")
    Wb, Rb = (net.constant(part, name) for part, name in zip(np.split(bias, 2), ("Wb", "Rb")))
    h = c = net.constant(np.zeros((case.B, case.H), np.float32), "zeros")
    axis, states = net.constant(np.array([0])), []
    for step in range(case.T):
        now = net.node("Gather", [x, net.constant(np.array(step))], axis=0)
        gates = net.node("Gemm", [now, W, Wb], transB=1)
        h, c = written_step(net, case.op, gates, net.node("Gemm", [h, R, Rb], transB=1), h, c)
        states.append(net.node("Unsqueeze", [h, axis]))
    return ended(net, net.node("Concat", states, axis=0), target)


# PyTorch


def onnx_order(case, rows):
    """rows: [G*H, ...] in PyTorch's order."""
    from benchmarks.contestants import TORCH_GATES
    gates = np.split(rows, GATES[case.op])
    return np.concatenate([gates[TORCH_GATES[case.op].index(k)] for k in range(len(gates))])


def torch_network(case, of_cells):
    import torch
    from benchmarks.contestants import torch_weights

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(case.H))
            kind = getattr(torch.nn, case.op + ("Cell" if of_cells else ""))
            self.inner = kind(case.H, case.H)
            with torch.no_grad():
                for parameter, array in zip(self.inner.parameters(), torch_weights(case).values(), strict=True):
                    parameter.copy_(torch.from_numpy(array))

        @property
        def recurrent(self):
            return self.inner.weight_hh if of_cells else self.inner.weight_hh_l0

        def steps(self, x):
            if not of_cells:
                return self.inner(x)[0]
            state, states = None, []
            for now in x.unbind(0):
                state = self.inner(now, state)
                states.append(state[0] if case.op == "LSTM" else state)
            return torch.stack(states)

        def forward(self, x, target):
            return torch.nn.functional.mse_loss(self.steps(x * self.scale), target)

    return Layer()
