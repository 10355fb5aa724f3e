# SPDX-License-Identifier: MIT
"""Recurrent layers with products of integers, by NumPy: the numbers that templates/panel_int8.h makes of rows and of
weights, in the same f32 arithmetic, and exact products of them; all else in double precision.

A step starts from the state that the module has (Configuration.values, `seen`), because a state that is another by one
rounding error may become another integer. What GRU multiplies after its reset gate is not seen: there an element that is
so near to half a step adds what one step of it makes to `doubt`, by which a unit of Y may differ.
"""
from dataclasses import dataclass, replace

import numpy as np

from support.recurrent import MAX_B, MAX_T, Configuration, random_configuration

F = np.float32
NEAR = 4e-4  # of half a step: some roundings of numbers up to 255


def quantised(vector):
    """(the integers, what one of them is, how far each is from half a step) of a row of f32."""
    vector = vector.astype(F)
    least, most = min(F(0), vector.min()), max(F(0), vector.max())
    width = most - least
    if not width > F(2.0**-100):
        return np.zeros(len(vector), np.int64), F(0), np.ones(len(vector))
    inverse = F(255) / width
    zero, scaled = np.rint(-least * inverse), vector * inverse
    numbers = np.clip(np.rint(scaled) + zero, 0, 255) - zero
    from_half = np.abs(np.abs(scaled.astype(float) - np.rint(scaled)) - 0.5)
    return numbers.astype(np.int64), width / F(255), from_half


def quantised_by(ends, vector):
    """The same by a fixed range, whose ends elements beyond it are."""
    least, most = (F(end) for end in ends)
    inverse, bounded = F(255) / (most - least), np.clip(vector.astype(F), least, most)
    zero, scaled = np.rint(-least * inverse), bounded * inverse
    numbers = np.clip(np.rint(scaled) + zero, 0, 255) - zero
    inside = (least < vector) & (vector < most)
    from_half = np.where(inside, np.abs(np.abs(scaled.astype(float) - np.rint(scaled)) - 0.5), 1)
    return numbers.astype(np.int64), (most - least) / F(255), from_half


def step_of(row):
    """What one is in integers: those of a quantiser again, if the elements are its multiples; else the largest is 127."""
    largest = np.abs(row).max()
    if not largest:
        return largest
    steps = largest / np.arange(127 + (largest not in row), 0, -1)

    def multiples(elements, steps):
        numbers = elements / steps[:, None]
        return (np.abs(numbers - np.rint(numbers)) <= 1e-4).all(axis=1)

    few = steps[multiples(row[:4], steps)]  # most rows have none
    exact = few[multiples(row, few)]
    return exact[0] if len(exact) else largest / 127


def quantised_weights(matrix):
    """(the integers, the scale of each row)."""
    steps = np.array([step_of(row) for row in matrix])
    return np.rint(matrix / np.where(steps, steps, 1)[:, None]).astype(np.int64), steps.astype(F)


@dataclass
class Int8Configuration(Configuration):
    ranges: dict = None  # fixed ones, of "x" and "h"

    def attributes(self, layout):
        if not self.ranges:
            return super().attributes(layout) | {"precision": "int8-dynamic"}
        return super().attributes(layout) | {"precision": "int8-static", "input_range": self.ranges["x"],
                                             "hidden_range": self.ranges["h"]}

    def quantised(self, vector, of):
        return quantised_by(self.ranges[of[-1]], vector) if self.ranges else quantised(vector)

    def weights_of(self, matrix):
        """quantised_weights(), once for all steps."""
        place = matrix.__array_interface__["data"][0], matrix.shape
        if place not in self.known:
            self.known[place] = matrix, quantised_weights(matrix)
        return self.known[place][1]

    def product(self, matrix, vector, of):
        weights, scales = self.weights_of(matrix)
        numbers, scale, from_half = self.quantised(vector, of)
        steps = (scale * scales).astype(float)
        if of == "rh":
            near = np.abs(weights[:, from_half < NEAR]).sum(axis=1)
            self.step_doubt = self.step_doubt + near * steps
        return weights @ numbers * steps

    def stepped(self, t, d, b):
        self.doubt[t, d, b] = 2 * self.step_doubt  # activations may be as steep as 1.2
        self.step_doubt = 0

    def values(self, weights, feeds, seen=None):
        self.step_doubt, self.doubt, self.known = 0, np.zeros(seen.shape), {}
        return super().values(weights, feeds, seen)


def int8_configuration(seed, fixed=False):
    """Y is always an output: it has the states that the steps start from. fixed: ranges that some elements leave, as inputs
    are up to 1, and most states up to less."""
    made = random_configuration(seed)
    outputs = ("Y",) + tuple(name for name in made.outputs if name != "Y")
    ends = np.random.default_rng(seed).uniform(0.3, 1.1, 4).tolist()
    ranges = {"x": [-ends[0], ends[1]], "h": [-ends[2], ends[3]]} if fixed else None
    return Int8Configuration(**vars(replace(made, outputs=outputs)), ranges=ranges)
