# SPDX-License-Identifier: MIT
"""Recurrent layers in a row, run as a wavefront or one after the other: the same bits, and ONNX Runtime's values.

All stacks are independent parts of one model, which is compiled once a chunk size: compiling takes longer than all else.
"""
import math
from dataclasses import dataclass

import numpy as np
import pytest

from support.model_builder import Model
from support.module import Module

EPS = float(np.finfo(np.float32).eps)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
MAX_T, MAX_B, I = 40, 3, 7
SHAPES = [(1, 1), (7, 3), (33, 1), (33, 3)]
# Variants of a layer are free to add in other orders; these are compared with chunks of another number of steps.
VARIANT = "--rnn=input=ahead,sample_ways=1,hide=0,depth_block=0,chunk="
STEP_VARIANT = "--rnn=input=step,sample_ways=1,hide=0,depth_block=0,chunk="


@dataclass
class Stack:
    name: str
    layers: list  # of (op, H)
    link: str = "Squeeze"  # what stands between two layers
    batch_first: bool = False
    lengths: bool = False
    reset_after: bool = False  # GRU's linear_before_reset
    directions: tuple = ("forward",)  # of the layers in turn, the last one repeated
    states: bool = False  # initial and final ones of all layers in one tensor each, as PyTorch has them
    taps: bool = False  # every layer's Y is read elsewhere, too
    chained_state: bool = False  # a layer starts from the final state of the one before
    wavefront: bool = True  # what the compiler can make of it

    def add_to(self, model, batch_first):
        """ONNX Runtime knows no layout = 1: for it batch_first is False."""
        rng = np.random.default_rng(len(self.name))
        x = model.input(f"{self.name}_x", "f32", ["B", "T", I] if batch_first else ["T", "B", I])
        lengths = model.input(f"{self.name}_lengths", "i32", ["B"]) if self.lengths else None
        initial = [model.input(f"{self.name}_{name}", "f32", [len(self.layers), "B", self.layers[0][1]])
                   for name in ("h0", "c0")] if self.states else []
        h, finals, last = None, [], len(self.layers) - 1
        for i, (op, H) in enumerate(self.layers):
            width = I if i == 0 else self.layers[i - 1][1]
            gates = GATES[op]
            weights = [rng.uniform(-1, 1, (1, gates * H, width)) / math.sqrt(width),
                       rng.uniform(-0.5, 0.5, (1, gates * H, H)) / math.sqrt(H), rng.uniform(-0.5, 0.5, (1, 2 * gates * H))]
            inputs = [x, *(model.constant(w.astype(np.float32)) for w in weights), lengths]
            inputs += [model.node("Slice", [state, *(model.constant(np.array([v])) for v in (i, i + 1, 0))])
                       for state in initial] or ([h] if self.chained_state and i else [])
            attributes = {"hidden_size": H, "layout": int(batch_first) or None,
                          "direction": self.directions[min(i, len(self.directions) - 1)]}
            if op == "GRU":
                attributes["linear_before_reset"] = int(self.reset_after)
            y, h, *c = model.node(op, inputs, 3 if op == "LSTM" else 2, **attributes)
            finals.append([h, *c])
            if self.taps or i == last:
                model.output(model.node("Neg", [y], [f"{self.name}_tap{i}"]) if self.taps and i % 2 == 0 else y)
            if i < last:
                x = self.add_link(model, y, H, batch_first)
        for states in zip(*finals) if self.states else [finals[-1]]:
            model.output(model.node("Concat", states, axis=0) if self.states else states[0])

    def add_link(self, model, y, H, batch_first):
        if self.link == "Reshape":
            return model.node("Reshape", [y, model.constant(np.array([0, -1, H]))])
        x = model.node("Squeeze", [y, model.constant(np.array([2 if batch_first else 1]))])
        return model.node("Add", [x, x]) if self.link == "Add" else x

    def feeds(self, T, B):
        rng = np.random.default_rng([len(self.name), T, B])
        feeds = {"x": rng.uniform(-1, 1, (T, B, I))}
        if self.states:
            shape = (len(self.layers), B, self.layers[0][1])
            feeds |= {"h0": rng.uniform(-1, 1, shape), "c0": rng.uniform(-1, 1, shape)}
        feeds = {f"{self.name}_{name}": array.astype(np.float32) for name, array in feeds.items()}
        if self.lengths:
            feeds[f"{self.name}_lengths"] = rng.integers(0, T + 1, B).astype(np.int32)
        return feeds


STACKS = [
    Stack("plain", [("LSTM", 5), ("LSTM", 16)]),
    Stack("pytorch", [("LSTM", 40)] * 3, states=True, taps=True),
    Stack("four", [("GRU", 16), ("GRU", 5), ("GRU", 40), ("GRU", 16)], link="Reshape", reset_after=True),
    Stack("mixed", [("LSTM", 16), ("GRU", 5), ("RNN", 40)], lengths=True),
    Stack("batches", [("RNN", 16), ("LSTM", 16), ("GRU", 5)], batch_first=True, taps=True),
    Stack("tied", [("RNN", 16), ("RNN", 16)], chained_state=True, wavefront=False),
    Stack("backward", [("RNN", 5), ("RNN", 16)], directions=("forward", "reverse"), wavefront=False),
    Stack("doubled", [("RNN", 5), ("RNN", 5)], link="Add", wavefront=False),
]


def model_of(stacks, T=None, B=None, layouts=True):
    model = Model("stacks")
    model.dim("T", *((T, T, T) if T else (1, 20, MAX_T)))
    model.dim("B", *((B, B, B) if B else (1, 1, MAX_B)))
    for stack in stacks:
        stack.add_to(model, layouts and stack.batch_first)
    return model


def all_feeds(stacks, T, B, layouts=True):
    feeds = {}
    for stack in stacks:
        own = stack.feeds(T, B)
        if layouts and stack.batch_first:
            own = {name: np.ascontiguousarray(array.swapaxes(0, 1)) for name, array in own.items()}
        feeds |= own
    return feeds


def outputs_of(path, shapes, threads):
    with Module(path) as module, module.context(threads) as context:
        return [context.run(all_feeds(STACKS, T, B)) for T, B in shapes]


def assert_same_bits(got, expected):
    for shape, one, other in zip(SHAPES, got, expected):
        for name in other:
            assert np.array_equal(one[name].view(np.uint32), other[name].view(np.uint32)), (shape, name)


@pytest.fixture(scope="module")
def layer_by_layer(compile, tmp_path_factory):
    """Outputs of the runs of SHAPES without a wavefront."""
    path = compile(model_of(STACKS).write(tmp_path_factory.mktemp("stacks")), VARIANT + "0")
    return outputs_of(path, SHAPES, 1)


# Of SHAPES' T a divisor or none, T itself, and more than T.
@pytest.mark.parametrize("chunk", [1, 3, 7, 100])
def test_a_wavefront_has_the_bits_of_layer_by_layer_on_any_number_of_threads(chunk, compile, layer_by_layer, tmp_path):
    path = compile(model_of(STACKS).write(tmp_path), f"{VARIANT}{chunk}")
    for threads in (1, 2, 3, 5):
        assert_same_bits(outputs_of(path, SHAPES, threads), layer_by_layer)


@pytest.mark.parametrize("target, variant", [("x86-64-v3", VARIANT), ("x86-64", VARIANT), ("native", STEP_VARIANT)])
def test_a_wavefront_of_known_extents_has_the_bits_of_layer_by_layer(target, variant, compile, tmp_path):
    stacks = STACKS[:5]
    model = model_of(stacks, T=7, B=3).write(tmp_path)
    outputs = []
    for chunk, threads in ((3, 3), (0, 1)):
        path = compile(model, f"--target={target}", f"{variant}{chunk}")
        with Module(path) as module, module.context(threads) as context:
            outputs.append([context.run(all_feeds(stacks, 7, 3))])
    assert_same_bits(*outputs)


def test_layer_by_layer_is_onnx_runtimes_value(layer_by_layer):
    """Each layer adds the rounding errors of sums of K terms over T steps, and ONNX Runtime's own 1e-5, and at most
    doubles those of its input, for the sums of a gate's weights have random signs."""
    peer = model_of(STACKS, layouts=False)
    for (T, B), got in zip(SHAPES, layer_by_layer):
        expected = peer.onnx_run(all_feeds(STACKS, T, B, layouts=False))
        limit = 15 * (4 * math.ceil(math.log2(80 * T)) * EPS + 1e-5)
        for name, array in expected.items():
            same_layout = got[name].reshape(array.shape) if got[name].shape == array.shape else turned(got[name])
            assert np.abs(same_layout - array).max() <= limit, (T, B, name)


def turned(y):
    """Y or a final state of layout = 1 in layout 0."""
    return y.transpose(1, 2, 0, 3) if y.ndim == 4 else y.swapaxes(0, 1)


def test_only_layers_that_read_each_others_steps_become_a_wavefront(rnncc, tmp_path):
    for stack in STACKS:
        done = rnncc("inspect", model_of([stack]).write(tmp_path), "--rnn=chunk=5")
        assert done.returncode == 0, done.stderr
        schedules = [line for line in done.stdout.splitlines() if "_i" in line and "h" in line and "_r" in line]
        assert schedules and all(("_w5" in line) == stack.wavefront for line in schedules), stack.name
