# SPDX-License-Identifier: MIT
"""Random layers that are trained, as a model of one LSTMTraining and one LSTMGradient (or of GRU's or RNN's) each, and
their gradients by central differences in double precision.

The loss is linear in the results, L = <gY, Y> + <gY_h, Y_h> + <gY_c, Y_c>, so that gY, gY_h and gY_c are what comes back.
"""
import dataclasses
import math

import numpy as np

from support.model_builder import Model
from support.recurrent import GATES, OUTPUTS, Configuration, random_configuration

EPS = float(np.finfo(np.float32).eps)
STEP = 1e-6  # of central differences

# A layer's input, and the name of its gradient.
OF_INPUTS = {"x": "dx", "W": "dW", "R": "dR", "B": "dB", "h0": "dh0", "c0": "dc0", "P": "dP"}


@dataclasses.dataclass
class Trained(Configuration):
    """outputs: those whose gradient comes back; the others have none."""

    @property
    def saved(self):
        """The gate of RNN is Y."""
        return () if self.op == "RNN" else ("S",)

    @property
    def gradients(self):
        """Of the inputs that are there."""
        given = {"x": True, "W": True, "R": True, "B": self.bias, "h0": self.h0, "c0": self.c0, "P": self.peepholes}
        return [name for name, there in given.items() if there]

    def all_feeds(self, T, B):
        """Of layout 0: what the layer reads, weights too, and what comes back to it."""
        rng = np.random.default_rng([self.seed, T, B, 5])
        shapes = {"Y": (T, self.D, B, self.H), "Y_h": (self.D, B, self.H), "Y_c": (self.D, B, self.H)}
        feeds = self.random_weights() | self.random_feeds(T, B, 0)
        if self.lengths and B > 1:
            feeds["lengths"][int(rng.integers(B))] = 0
        return feeds | {f"g{name}": rng.uniform(-1, 1, shapes[name]).astype(np.float32) for name in self.outputs}

    def layer(self, feeds):
        return {name: feeds[name] for name in feeds if name[0] != "g"}

    def loss(self, feeds, layer):
        """layer: the same feeds in double, or changed."""
        weights = {name: layer[name] for name in "WRBP" if name in layer}
        values = self.values(weights, {name: layer[name] for name in layer if name not in weights})
        return sum(float(np.sum(feeds[f"g{name}"].astype(np.float64) * values[name])) for name in self.outputs)

    def to_layout(self, arrays):
        order = {"x": (1, 0, 2), "Y": (2, 0, 1, 3), "h": (1, 0, 2), "c": (1, 0, 2)}
        kinds = {"x": "x", "dx": "x", "Y": "Y", "gY": "Y", "h0": "h", "dh0": "h", "c0": "c", "dc0": "c", "Y_h": "h",
                 "gY_h": "h", "Y_c": "c", "gY_c": "c"}
        if not self.layout:
            return arrays
        return {name: np.ascontiguousarray(array.transpose(order[kinds[name]])) if name in kinds else array
                for name, array in arrays.items()}

    def from_layout(self, arrays):
        back = {"dx": (1, 0, 2), "dh0": (1, 0, 2), "dc0": (1, 0, 2), "Y": (1, 2, 0, 3)}
        return {name: array.transpose(back[name]) if self.layout and name in back else array
                for name, array in arrays.items()}

    def add_training(self, model, constants=(), T="T", B="B"):
        """constants: arrays of weights that are not inputs."""
        D, H, I, gates = self.D, self.H, self.I, GATES[self.op]
        state = [B, D, H] if self.layout else [D, B, H]
        y = [B, T, D, H] if self.layout else [T, D, B, H]
        shapes = {"x": [B, T, I] if self.layout else [T, B, I], "W": [D, gates * H, I], "R": [D, gates * H, H],
                  "B": [D, 2 * gates * H], "P": [D, 3 * H], "h0": state, "c0": state, "lengths": [B], "gY": y,
                  "gY_h": state, "gY_c": state}

        def given(name, there=True):
            if not there:
                return ""
            if name in constants:
                return model.constant(constants[name], self.prefix + name)
            return model.input(self.prefix + name, "i32" if name == "lengths" else "f32", shapes[name])

        inputs = [given("x"), given("W"), given("R"), given("B", self.bias), given("lengths", self.lengths),
                  given("h0", self.h0)]
        inputs += [given("c0", self.c0), given("P", self.peepholes)] if self.op == "LSTM" else []
        coming = [given(f"g{name}", name in self.outputs) for name in OUTPUTS[self.op]]
        saved = [self.prefix + name for name in (*OUTPUTS[self.op], *self.saved)]
        attributes = self.attributes(self.layout)
        model.node(f"{self.op}Training", inputs, saved, **attributes)
        names = ["dx", "dW", "dR", "dB", "dh0"] + (["dc0", "dP"] if self.op == "LSTM" else [])
        wanted = {OF_INPUTS[name] for name in self.gradients}
        results = [self.prefix + name if name in wanted else "" for name in names]
        while not results[-1]:
            results.pop()
        model.node(f"{self.op}Gradient", [*inputs, saved[0], *saved[len(OUTPUTS[self.op]):], *coming], results, **attributes)
        model.output(*saved, *[name for name in results if name])


def model_of_training(configurations, T=None, B=None, constants=False):
    model = Model("train")
    model.dim("T", *((T, T, T) if T else (1, 4, 9)))
    model.dim("B", *((B, B, B) if B else (1, 2, 6)))
    for configuration in configurations:
        configuration.add_training(model, configuration.random_weights() if constants else {})
    return model


def differences(configuration, feeds, rng, seen):
    """(name of an input, direction, the loss's derivative along it). seen(name): how many single elements, besides a
    dense direction of random signs."""
    layer = {name: array.astype(np.float64) if array.dtype == np.float32 else array
             for name, array in configuration.layer(feeds).items()}
    for name in configuration.gradients:
        size = layer[name].size
        directions = [rng.choice([-1.0, 1.0], layer[name].shape)]
        for place in rng.integers(size, size=seen):
            directions.append(np.zeros(layer[name].shape))
            directions[-1].flat[place] = 1
        for direction in directions:
            ends = [configuration.loss(feeds, layer | {name: layer[name] + sign * STEP * direction}) for sign in (1, -1)]
            yield name, direction, (ends[0] - ends[1]) / (2 * STEP)


def check_gradients(configuration, feeds, got, seen=2):
    """got: in layout 0, gradients by name. What is summed is what a direction's magnitudes are of; each product and sum of
    K T terms is rounded, forward and backward, and so is each value that is saved. 1e-8: of the differences."""
    rng = np.random.default_rng([configuration.seed, 6])
    T, B, _ = feeds["x"].shape
    rounding = 8 * math.ceil(math.log2((configuration.I + GATES[configuration.op] * configuration.H) * T * B + 1)) * EPS
    for name, direction, expected in differences(configuration, feeds, rng, seen):
        gradient = got[OF_INPUTS[name]].astype(np.float64)
        assert gradient.shape == direction.shape, name
        along = float(np.sum(gradient * direction))
        limit = rounding * (float(np.sum(np.abs(gradient * direction))) + float(np.abs(gradient).max(initial=0))) + 1e-8
        assert abs(along - expected) <= limit, f"{name}: {along!r} along a direction, expected {expected!r}, limit {limit:.3g}"


def training_configuration(seed):
    """One of random_configuration() that has gradients: no clip. Its sizes are at most 66, so that differences of whole
    layers take little."""
    made = random_configuration(seed)
    fields = {field.name: getattr(made, field.name) for field in dataclasses.fields(made)}
    fields |= {"clip": None, "I": (made.I - 1) % 66 + 1, "H": (made.H - 1) % 66 + 1}
    return Trained(**fields)
