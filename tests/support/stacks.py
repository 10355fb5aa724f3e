# SPDX-License-Identifier: MIT
"""Stacked recurrent layers, as exporters write them, and layers that only look like a stack.

Shapes as in support/recurrent.py; between two layers the axis of directions is dropped.
"""
from dataclasses import dataclass

import numpy as np

from support.model_builder import Model
from support.recurrent import GATES, OUTPUTS, Configuration, random_cell, sometimes, without_trailing_gaps

MAX_T, MAX_B, INPUTS = 40, 3, 7


def layers_of(*sizes, **fields):
    """Layers of (op, H), each reading the one before."""
    widths = [INPUTS, *(H for _, H in sizes)]
    return [Configuration(op, I, H, seed=2 * i, **fields) for i, ((op, H), I) in enumerate(zip(sizes, widths))]


@dataclass
class Stack:
    name: str
    layers: list  # of Configuration
    link: str = "Squeeze"  # the node between two layers
    batch_first: bool = False
    lengths: bool = False
    # Initial states: none; together: those of all layers in one tensor, as PyTorch has them, and so are the final ones;
    # each: an input for each layer; before: the final state of the layer before; carried: by the context.
    states: str = "none"
    taps: bool = False  # every layer's Y is read elsewhere, too
    given: bool = False  # the weights are inputs, packed in each run
    wavefront: bool = True  # whether the compiler can make it one

    # the model

    def add_to(self, model, layouts=True):
        """layouts=False: all in layout 0, the only one that ONNX Runtime can run."""
        layout = int(layouts and self.batch_first)
        x = model.input(f"{self.name}_x", "f32", ["B", "T", INPUTS] if layout else ["T", "B", INPUTS])
        lengths = model.input(f"{self.name}_lengths", "i32", ["B"]) if self.lengths else None
        together = [model.input(f"{self.name}_{s}", "f32", [len(self.layers), "B", self.layers[0].H])
                    for s in ("h0", "c0") if self.states == "together"]
        finals = []
        for i, layer in enumerate(self.layers):
            states = self.initial_states(model, i, layout, together, finals)
            y, *final = self.add_layer(model, i, [x, lengths], states, layout)
            finals.append(final)
            if i + 1 < len(self.layers):
                x = self.add_link(model, y, layer.H, layout)
        self.add_final_states(model, finals)

    def named(self, i, what):
        return f"{self.name}_{what}{i}"

    def initial_states(self, model, i, layout, together, finals):
        layer, bounds = self.layers[i], [np.array([v]) for v in (i, i + 1, 0)]
        shape = ["B", 1, layer.H] if layout else [1, "B", layer.H]
        names = ("h", "c") if layer.op == "LSTM" else ("h",)
        if self.states == "together":
            return [model.node("Slice", [state, *map(model.constant, bounds)]) for state in together]
        if self.states == "each":
            return [model.input(self.named(i, f"{s}0_"), "f32", shape) for s in names]
        if self.states == "carried":
            return [model.state(self.named(i, f"{s}0_"), self.named(i, f"Y_{s}"), "f32", shape, batch_axis=1 - layout)
                    for s in names]
        return finals[-1][:1] if self.states == "before" and i else []

    def add_layer(self, model, i, x_and_lengths, states, layout):
        layer, (x, lengths) = self.layers[i], x_and_lengths
        arrays = layer.random_weights()

        def weights(letter):
            if letter not in arrays:
                return None
            array = arrays[letter]
            return model.input(self.named(i, letter), "f32", array.shape) if self.given else model.constant(array)

        states = states + [None] * (2 - len(states))
        inputs = [x, *map(weights, "WRB"), lengths, states[0]]
        inputs += [states[1], weights("P")] if layer.op == "LSTM" else []
        names = [self.named(i, what) for what in OUTPUTS[layer.op]]
        model.node(layer.op, without_trailing_gaps(inputs), names, **layer.attributes(layout))
        if self.taps:
            model.output(model.node("Neg", [names[0]], [self.named(i, "tap")]) if i % 2 else names[0])
        elif i + 1 == len(self.layers):
            model.output(names[0])
        return names

    def add_link(self, model, y, H, layout):
        if self.link == "Reshape":
            return model.node("Reshape", [y, model.constant(np.array([0, -1, H]))])
        x = model.node("Squeeze", [y, model.constant(np.array([2 if layout else 1]))])
        return model.node("Add", [x, x]) if self.link == "Add" else x

    def add_final_states(self, model, finals):
        if self.states == "together":
            model.output(*(model.node("Concat", states, axis=0) for states in zip(*finals)))
        elif self.states != "carried":
            model.output(*finals[-1])

    # data, of the layout that the module has

    def feeds(self, T, B, layouts=True):
        rng = np.random.default_rng([len(self.name), T, B])
        feeds = {"x": rng.uniform(-1, 1, (T, B, INPUTS))}
        if self.states == "together":
            feeds |= {s: rng.uniform(-1, 1, (len(self.layers), B, self.layers[0].H)) for s in ("h0", "c0")}
        for i, layer in enumerate(self.layers):
            if self.states == "each":
                names = ("h0", "c0") if layer.op == "LSTM" else ("h0",)
                feeds |= {f"{s}_{i}": rng.uniform(-1, 1, (1, B, layer.H)) for s in names}
        if layouts and self.batch_first:
            feeds = {name: np.ascontiguousarray(array.swapaxes(0, 1)) for name, array in feeds.items()}
        if self.lengths:
            feeds["lengths"] = rng.integers(0, T + 1, B).astype(np.int32)
        for i, layer in enumerate(self.layers if self.given else []):
            feeds |= {f"{letter}{i}": array for letter, array in layer.random_weights().items()}
        return {f"{self.name}_{name}": array if name == "lengths" else array.astype(np.float32)
                for name, array in feeds.items()}


STACKS = [
    Stack("plain", layers_of(("LSTM", 5), ("LSTM", 16))),
    Stack("pytorch", layers_of(*[("LSTM", 40)] * 3), states="together", taps=True),
    Stack("four", layers_of(("GRU", 16), ("GRU", 5), ("GRU", 40), ("GRU", 16), linear_before_reset=1), link="Reshape"),
    Stack("mixed", layers_of(("LSTM", 16), ("GRU", 5), ("RNN", 40)), lengths=True, states="each"),
    Stack("batches", layers_of(("RNN", 16), ("LSTM", 16), ("GRU", 5)), batch_first=True, taps=True),
    Stack("given", layers_of(("RNN", 5), ("GRU", 16)), given=True),
    Stack("streaming", layers_of(("GRU", 16), ("RNN", 16)), states="carried"),
    Stack("tied", layers_of(("RNN", 16), ("RNN", 16)), states="before", wavefront=False),
    Stack("backward", [*layers_of(("RNN", 5)), Configuration("RNN", 5, 16, "reverse")], wavefront=False),
    Stack("doubled", layers_of(("RNN", 5), ("RNN", 5)), link="Add", wavefront=False),
]


def random_stack(seed):
    """A stack of any cells with any attributes."""
    rng = np.random.default_rng([2029, seed])
    layers, width = [], INPUTS
    for i in range(int(rng.integers(2, 4))):
        op, H = str(rng.choice(list(GATES))), int(rng.integers(1, 50))
        cell = random_cell(rng, op, 1)
        layers.append(Configuration(op, width, H, seed=10 * seed + i, bias=sometimes(rng, 0.7), **cell))
        width = H
    return Stack(f"random{seed}", layers, lengths=any(layer.lengths for layer in layers),
                 batch_first=sometimes(rng, 0.3), states="each" if sometimes(rng) else "none", taps=sometimes(rng))


def model_of(stacks, T=None, B=None, layouts=True):
    """One model of many independent stacks. T, B: fixed at compile time; else any up to MAX_T and MAX_B."""
    model = Model("stacks")
    model.dim("T", *((T, T, T) if T else (1, 20, MAX_T)))
    model.dim("B", *((B, B, B) if B else (1, 1, MAX_B)))
    for stack in stacks:
        stack.add_to(model, layouts)
    return model


def feeds_of(stacks, T, B, layouts=True):
    return {name: array for stack in stacks for name, array in stack.feeds(T, B, layouts).items()}
