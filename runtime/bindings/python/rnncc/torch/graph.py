# SPDX-License-Identifier: MIT
"""Recurrent layers of PyTorch as a model for rnncc: its weights have PyTorch's names, shapes and order of gates."""
from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import asdict, dataclass
from math import prod
from typing import Any, Dict, List, Tuple

# Where the gates of ONNX stand in PyTorch's order.
GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN_TANH": (0,), "RNN_RELU": (0,)}


@dataclass(frozen=True)
class Stack:
    """Consecutive layers, and what a call has besides x: all that a module is compiled for, but the bounds of T and B."""

    mode: str  # PyTorch's: a key of GATES
    inputs: int
    hidden: int
    first: int  # the number of the first layer in PyTorch's names
    layers: int
    directions: int
    bias: bool
    lengths: bool  # rows have lengths of their own
    states: bool  # a call has h0 and c0; else they are zero

    @property
    def cells(self) -> int:
        """States of a layer and direction: h, and of an LSTM c."""
        return 2 if self.mode == "LSTM" else 1

    def weights(self) -> Dict[str, Tuple[int, ...]]:
        """Names and shapes."""
        rows, found = len(GATES[self.mode]) * self.hidden, {}
        for layer in range(self.first, self.first + self.layers):
            width = self.inputs if layer == self.first else self.directions * self.hidden
            for direction in range(self.directions):
                for part, shape in {"weight_ih": (rows, width), "weight_hh": (rows, self.hidden),
                                    "bias_ih": (rows,), "bias_hh": (rows,)}.items():
                    if self.bias or part.startswith("weight"):
                        found[name_of(part, layer, direction)] = shape
        return found


def name_of(part: str, layer: int, direction: int) -> str:
    return f"{part}_l{layer}" + "_reverse" * direction


class _Builder:
    """The document's nodes."""

    def __init__(self, stack: Stack):
        self.stack, self.nodes, self.constants = stack, [], {}  # type: Tuple[Stack, List[Any], Dict[str, Any]]

    def node(self, op: str, inputs: List[str], outputs: List[str], **attributes: Any) -> None:
        self.nodes.append({"op": op, "name": next(filter(None, outputs)), "inputs": inputs, "outputs": outputs,
                           "attributes": attributes})

    def integers(self, *values: int) -> str:
        name = "_".join(["i", *map(str, values)]).replace("-", "m")
        self.constants[name] = {"dtype": "i64", "shape": [len(values)], "data": list(values)}
        return name

    def stacked(self, parts: Tuple[str, ...], layer: int, columns: List[int]) -> str:
        """ONNX's W, R or B of a layer: all directions and `parts`, each with its gates in ONNX's order."""
        gates = GATES[self.stack.mode]
        pieces: List[str] = []
        for direction in range(self.stack.directions):
            for name in (name_of(part, layer, direction) for part in parts):
                cut = [f"{name}.gate{g}" for g in range(len(gates))] if len(gates) > 1 else [name]
                if len(gates) > 1:
                    self.node("Split", [name], cut, axis=0, num_outputs=len(gates))
                pieces += [cut[g] for g in gates]
        rows = f"{parts[0]}_l{layer}.rows"
        self.node("Concat", pieces, [rows], axis=0)
        self.node("Reshape", [rows, self.integers(self.stack.directions, -1, *columns)], [f"{rows}.all"])
        return f"{rows}.all"

    def layer(self, layer: int, x: str, y: str, states: List[str], last: List[str]) -> None:
        """Y is [T, B, D*H]."""
        stack = self.stack
        width = stack.inputs if layer == stack.first else stack.directions * stack.hidden
        weights = [self.stacked(("weight_ih",), layer, [width]), self.stacked(("weight_hh",), layer, [stack.hidden]),
                   self.stacked(("bias_ih", "bias_hh"), layer, []) if stack.bias else ""]
        attributes: Dict[str, Any] = {"hidden_size": stack.hidden}
        if stack.directions == 2:
            attributes["direction"] = "bidirectional"
        if stack.mode == "GRU":
            attributes["linear_before_reset"] = 1
        if stack.mode == "RNN_RELU":
            attributes["activations"] = ["Relu"] * stack.directions
        self.node(stack.mode.split("_")[0], [x, *weights, "lengths" if stack.lengths else "", *states], [f"{y}.steps", *last],
                  **attributes)
        rows = f"{y}.steps"
        if stack.directions == 2:
            self.node("Transpose", [rows], [f"{y}.rows"], perm=[0, 2, 1, 3])
            self.node("Reshape", [f"{y}.rows", self.integers(0, 0, -1)], [y])
        else:
            self.node("Squeeze", [rows, self.integers(1)], [y])


def _states(stack: Stack, kind: str) -> List[str]:
    return [f"{cell}{kind}" for cell in ("h", "c")[:stack.cells]]


def document(stack: Stack, weights_file: str, sha256: str) -> str:
    """The model: x [T, B, I], lengths, h0 and c0 [L*D, B, H] -> y [T, B, D*H], hn and cn."""
    builder, layers = _Builder(stack), range(stack.first, stack.first + stack.layers)
    of_layer = {cell: [f"{cell}.{layer}" for layer in layers] for cell in _states(stack, "0") + _states(stack, "n")}
    if stack.layers == 1:
        of_layer = {cell: [cell] for cell in of_layer}
    elif stack.states:
        for cell in _states(stack, "0"):
            builder.node("Split", [cell], of_layer[cell], axis=0, num_outputs=stack.layers)
    x = "x"
    for k, layer in enumerate(layers):
        y = "y" if k == stack.layers - 1 else f"y.{layer}"
        entering = [of_layer[cell][k] for cell in _states(stack, "0")] if stack.states else []
        builder.layer(layer, x, y, entering, [of_layer[cell][k] for cell in _states(stack, "n")])
        x = y
    if stack.layers > 1:
        for cell in _states(stack, "n"):
            builder.node("Concat", of_layer[cell], [cell], axis=0)
    state_shape = [stack.layers * stack.directions, "B", stack.hidden]
    inputs = [{"name": "x", "dtype": "f32", "shape": ["T", "B", stack.inputs]}]
    if stack.lengths:
        inputs.append({"name": "lengths", "dtype": "i32", "shape": ["B"]})
    if stack.states:
        inputs += [{"name": cell, "dtype": "f32", "shape": state_shape} for cell in _states(stack, "0")]
    return json.dumps({
        "format": "rnncc", "version": 1, "name": stack.mode.lower(), "dims": {"T": {"min": 1, "opt": 1, "max": 1},
                                                                              "B": {"min": 1, "opt": 1, "max": 1}},
        "inputs": inputs, "outputs": ["y", *_states(stack, "n")],
        "weights": [{"file": weights_file, "sha256": sha256}], "constants": builder.constants, "nodes": builder.nodes})


def zeros(stack: Stack) -> bytes:
    """A safetensors file of its weights: each call sets those of the layer."""
    header: Dict[str, Any] = {}
    end = 0
    for name, shape in stack.weights().items():
        begin, end = end, end + 4 * prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(end)


def key(stack: Stack, *more: Any) -> str:
    """Equal for equal modules."""
    return hashlib.sha256(json.dumps([asdict(stack), *more], sort_keys=True).encode()).hexdigest()
