# SPDX-License-Identifier: MIT
"""The training cases, what they must reach, and what they take at least. One recurrent layer from a zero state, I = H."""
from benchmarks.cases import F32, GATES, Case

SIZES = ((50, 32, 800), (300, 20, 800), (50, 32, 128), (50, 32, 256), (50, 32, 512))  # T, B, H; the second is MXNet's
CASES = {case.name: case for case in (Case(op, H, T=T, B=B) for T, B, H in SIZES for op in ("LSTM", "GRU", "RNN"))}
OF_TORCH = {"LSTM": 0.6, "GRU": 0.35, "RNN": 0.5}  # maximum of our time over that of PyTorch's layer, at WIDTH
UNFUSED = 0.35  # the same over that of a step's nodes one by one
PEAK, WIDTH = 0.7, 512  # minimum part of the peak of multiply-adds, and from which H on
WORKSPACE = 1.1  # maximum of a context's bytes over those of what is saved


def flops(case):
    """Of forward and backward: dX and dW are products of the forward one's size. The state before the first step is
    zero."""
    rows, recurrent_rows = case.T * case.B, (case.T - 1) * case.B
    return 3 * 2 * GATES[case.op] * case.H * case.H * (rows + recurrent_rows)


def rows_bytes(case, of_unit):
    return F32 * case.T * case.B * case.H * of_unit


def saved_bytes(case):
    """What the layer's backward pass reads of its forward one: input and output, each gate as activated, LSTM's cell
    states, and the candidate's recurrent product in GRU. RNN's gate is its output."""
    return rows_bytes(case, 1 + {"RNN": 1, "GRU": 1 + 3 + 1, "LSTM": 1 + 4 + 1}[case.op])


def loss_bytes(case):
    """What the loss's gradient reads: the differences."""
    return rows_bytes(case, 1)
