# SPDX-License-Identifier: MIT
"""Recurrent layers of equal weights run once, or as one batch, and give what they give alone: the same bits, but for a single
sample, whose sums are added in another order."""
import math
import re

import numpy
import pytest

from support.model_builder import Model
from support.module import Module

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
I, H = 24, 160  # weights larger than what is copied to join two batches


def weights(op, directions, rng):
    rows = GATES[op] * H
    return [rng.uniform(-0.1, 0.1, shape).astype(numpy.float32)
            for shape in ((directions, rows, I), (directions, rows, H), (directions, 2 * rows))]


class Layers:
    """A model of layers of the same weights, each given as constants of its own, or once."""

    def __init__(self, op="GRU", apart=False, direction="forward", layout=0):
        self.model, self.op, self.apart, self.layout = Model(), op, apart, layout
        self.directions = 2 if direction == "bidirectional" else 1
        self.arrays = weights(op, self.directions, numpy.random.default_rng(list(op.encode())))
        self.names = None
        self.attributes = {"hidden_size": H, "direction": direction, "layout": layout}

    def constants(self):
        if self.apart or not self.names:
            self.names = [self.model.constant(array) for array in self.arrays]
        return self.names

    def shape(self, *extents):
        """[T,B,...] or [D,B,...] as the layout has it."""
        first, second, *rest = extents
        return [second, first, *rest] if self.layout else list(extents)

    def input(self, name, T, B):
        return self.model.input(name, "f32", self.shape(T, B, I))

    def call(self, x, lengths=None, hidden=None, outputs=2):
        return self.model.node(self.op, [x, *self.constants(), lengths, hidden], outputs, **self.attributes)


def dump(rnncc, path, *options):
    done = rnncc(path, "-o", path.with_suffix(".so"), "--dump-after=join_layers", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def count(text, op):
    return len(re.findall(rf" = {op}\(", text))


def results(compile, path, feeds, *options):
    with Module(compile(path, *options)) as module, module.context(2) as context:
        return context.run(feeds)


def assert_as_alone(compile, rnncc, tmp_path, build, feeds, op, bound=0, options=()):
    """build(layers, values) adds the layers of these inputs; they are one in the module of all."""
    both = build(Layers(**feeds["layers"]), feeds["values"])
    (tmp_path / "both").mkdir()
    path = both.write(tmp_path / "both")
    assert count(dump(rnncc, path, *options), op) == 1
    got = results(compile, path, feeds["values"], *options)
    for name in ("a", "b"):
        one = {key: value for key, value in feeds["values"].items() if key.startswith(name)}
        (tmp_path / name).mkdir()
        alone = build(Layers(**feeds["layers"]), one).write(tmp_path / name)
        for output, due in results(compile, alone, one, *options).items():
            numpy.testing.assert_allclose(got[output], due, rtol=0, atol=bound, err_msg=output)


CASES = {
    "plain": {},
    "weights of their own": {"apart": True},
    "both directions": {"direction": "bidirectional"},
    "backwards": {"direction": "reverse"},
    "batches first": {"layout": 1},
    "LSTM": {"op": "LSTM", "direction": "bidirectional", "layout": 1},
    "RNN": {"op": "RNN"},
}


def values(layers, batches, T=5, lengths=False, states=False):
    rng, made = numpy.random.default_rng(1), {}
    for name, B in batches.items():
        made[name] = rng.uniform(-1, 1, layers.shape(T, B, I)).astype(numpy.float32)
        if lengths:
            made[f"{name}_lengths"] = rng.integers(0, T + 1, B).astype(numpy.int32)
        if states:
            made[f"{name}_state"] = rng.uniform(-1, 1, layers.shape(layers.directions, B, H)).astype(numpy.float32)
    return made


def encoders(layers, feeds, symbolic=()):
    """Each reads an input; all it gives is an output, named by the input."""
    for name in [name for name in feeds if "_" not in name]:
        B = layers.model.dim("B", 1, 3, 9) if name in symbolic else feeds[name].shape[1 - layers.layout]
        T = feeds[name].shape[layers.layout]
        x, more = layers.input(name, T, B), {}
        if f"{name}_lengths" in feeds:
            more["lengths"] = layers.model.input(f"{name}_lengths", "i32", [B])
        if f"{name}_state" in feeds:
            more["hidden"] = layers.model.input(f"{name}_state", "f32", layers.shape(layers.directions, B, H))
        layers.model.output(*layers.call(x, **more, outputs=[f"{name}_y", f"{name}_h"]))
    return layers.model


@pytest.mark.every_case
@pytest.mark.parametrize("name", CASES)
def test_layers_of_equal_weights_run_as_one_batch(compile, rnncc, tmp_path, name):
    feeds = {"layers": CASES[name], "values": values(Layers(**CASES[name]), {"a": 2, "b": 3})}
    assert_as_alone(compile, rnncc, tmp_path, encoders, feeds, CASES[name].get("op", "GRU"))


@pytest.mark.parametrize("precision", ["bf16", "int8:32", "f16,*.R=int8"])
def test_weights_of_fewer_bits_are_joined(compile, rnncc, tmp_path, precision):
    feeds = {"layers": {}, "values": values(Layers(), {"a": 2, "b": 3})}
    assert_as_alone(compile, rnncc, tmp_path, encoders, feeds, "GRU", options=[f"--precision={precision}"])


@pytest.mark.parametrize("options", [["--precision=bf16,n0=f16"],
                                     ["--precision=bf16,n0=bf16-dynamic", "--target=aarch64-linux-gnu+bf16"]])
def test_weights_of_other_types_stay_apart(options, rnncc, tmp_path):
    """Numbers that have 8 bits are the same in bf16 and in f16, but not kept so, and in bf16 not always multiplied so."""
    layers = Layers()
    layers.arrays = [numpy.round(array * 8) / 8 for array in layers.arrays]
    both(layers, layers.input("a", 5, 2), layers.input("b", 5, 2))
    layers.model.output("ya", "yb")
    assert count(dump(rnncc, layers.model.write(tmp_path), *options), "GRU") == 2


def test_a_single_sample_is_joined(compile, rnncc, tmp_path):
    """Its gates are sums of I + H products and smaller than 4; each of T steps adds its rounding to that of the one before."""
    T, terms = 5, I + H
    feeds = {"layers": {}, "values": values(Layers(), {"a": 1, "b": 3}, T)}
    bound = 4 * math.ceil(math.log2(terms * T)) * numpy.finfo(numpy.float32).eps
    assert_as_alone(compile, rnncc, tmp_path, encoders, feeds, "GRU", bound)


def test_lengths_and_initial_states_are_joined(compile, rnncc, tmp_path):
    feeds = {"layers": {}, "values": values(Layers(), {"a": 2, "b": 3}, lengths=True, states=True)}
    assert_as_alone(compile, rnncc, tmp_path, encoders, feeds, "GRU")


@pytest.mark.parametrize("symbolic", ["a", "b"])
def test_one_batch_may_be_known_at_run_time_only(compile, rnncc, tmp_path, symbolic):
    feeds = {"layers": {}, "values": values(Layers(), {"a": 2, "b": 2})}
    assert_as_alone(compile, rnncc, tmp_path, lambda *given: encoders(*given, symbolic=symbolic), feeds, "GRU")


@pytest.mark.optimised_here
def test_layers_that_read_the_same_run_once(compile, rnncc, tmp_path):
    layers = Layers("LSTM", apart=True)
    x = layers.input("x", 5, 2)
    halves = [layers.model.node("Mul", [x, layers.model.constant(numpy.float32(0.5))]) for _ in range(2)]
    first = layers.call(halves[0], outputs=["y", "", "c"])
    second = layers.call(halves[1], outputs=["again", "h"])
    layers.model.output("y", "c", *second)
    path = layers.model.write(tmp_path)
    assert first and count(dump(rnncc, path), "LSTM") == 1
    got = results(compile, path, {"x": numpy.random.default_rng(2).uniform(-1, 1, (5, 2, I)).astype(numpy.float32)})
    assert got["again"].tobytes() == got["y"].tobytes()
    assert got["h"].tobytes() == got["y"][-1].tobytes()


def other_weights(layers, a, b):
    layers.call(a, outputs=["ya"])
    layers.arrays = [array + numpy.float32(1e-3) for array in layers.arrays]
    layers.names = None
    layers.call(b, outputs=["yb"])


def one_after_the_other(layers, a, b):
    _, last = layers.call(a, outputs=["ya", "h"])
    ends = layers.model.node("Slice", [last, *(layers.model.constant(numpy.array([i])) for i in (0, I, 2))])
    layers.call(layers.model.node("Add", [b, ends]), outputs=["yb"])


def one_from_a_state(layers, a, b):
    layers.call(a, hidden=layers.model.input("state", "f32", [1, 2, H]), outputs=["ya"])
    layers.call(b, outputs=["yb"])


def of_other_attributes(layers, a, b):
    layers.call(a, outputs=["ya"])
    layers.attributes["direction"] = "reverse"
    layers.call(b, outputs=["yb"])


def both(layers, a, b):
    layers.call(a, outputs=["ya"])
    layers.call(b, outputs=["yb"])


def test_parts_of_one_input_stay_apart(rnncc, tmp_path):
    """Of Splits that say no sizes, into two parts and into three."""
    layers = Layers()
    a = layers.input("a", 6, 2)
    for parts, name in (2, "ya"), (3, "yb"):
        layers.call(layers.model.node("Split", [a], parts, axis=0)[0], outputs=[name])
    layers.model.output("ya", "yb")
    assert count(dump(rnncc, layers.model.write(tmp_path)), "GRU") == 2


@pytest.mark.parametrize("build", [other_weights, one_after_the_other, one_from_a_state, of_other_attributes])
def test_other_layers_stay_apart(rnncc, tmp_path, build):
    layers = Layers()
    build(layers, layers.input("a", 5, 2), layers.input("b", 5, 2))
    layers.model.output("ya", "yb")
    assert count(dump(rnncc, layers.model.write(tmp_path)), "GRU") == 2


@pytest.mark.parametrize("T, batches", [((5, 6), (2, 2)), ((5, 5), (512, 512))])
def test_batches_of_other_steps_or_with_much_to_copy_stay_apart(rnncc, tmp_path, T, batches):
    layers = Layers()
    both(layers, *(layers.input(name, *extents) for name, *extents in zip("ab", T, batches)))
    layers.model.output("ya", "yb")
    assert count(dump(rnncc, layers.model.write(tmp_path), "--target=x86-64-v4"), "GRU") == 2
