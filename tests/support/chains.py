# SPDX-License-Identifier: MIT
"""Random networks of element-wise ops on f32 and bool, of one shape, with operands that are broadcast, and reductions
whose results are broadcast again: nodes that may become one kernel, and others."""
import numpy

from support.model_builder import Model

EXACT_UNARY = ["Abs", "Neg", "Relu", "Sign", "Floor"]
EXACT_BINARY = ["Add", "Sub", "Max", "Min"]
ROUNDING_UNARY = ["Tanh", "Sigmoid", "Sin", "Erf", "Softplus", "Sqrt"]
ROUNDING_BINARY = ["Mul", "Div", "Add", "Sub", "Max"]
COMPARISONS = ["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"]


class ChainNetwork:
    """grow() adds nodes on values of the whole shape; integers stay small integers if `exact`."""

    def __init__(self, rng, shape, exact=True, limits=None):
        self.rng, self.exact, self.model, self.feeds = rng, exact, Model(), {}
        self.feed_rng = numpy.random.default_rng(0)  # its own: the network is the same whatever the extents
        self.shape, self.names = shape, list(shape)
        for axis, limit in (limits or {}).items():
            self.names[axis] = self.model.dim(f"D{axis}", 1, 2, limit)
        self.numbers = [self._fed(range(len(shape))) for _ in range(2)]
        self.truths = [self._fed(range(len(shape)), "bool")]

    def _fed(self, moving, dtype="f32"):
        moving, name = set(moving), f"x{len(self.feeds)}"
        extents = [extent if axis in moving else 1 for axis, extent in enumerate(self.shape)]
        values = self.feed_rng.integers(-4, 5, extents)
        self.feeds[name] = values.astype(numpy.bool_ if dtype == "bool" else numpy.float32)
        return self.model.input(name, dtype, [self.names[axis] if axis in moving else 1 for axis in range(len(extents))])

    def _number(self):
        """Mostly the newest; else an older one, one that is broadcast, a literal, or a vector of weights."""
        kind = self.rng.integers(0, 8)
        if kind < 4:
            return self.numbers[-1]
        if kind == 4:
            return self._fed(axis for axis in range(len(self.shape)) if self.rng.random() < 0.5)
        if kind == 5:
            return self.model.constant(numpy.float32(self.rng.integers(-3, 4)))
        if kind == 6 and isinstance(self.names[-1], int):
            return self.model.constant(self.rng.integers(-3, 4, self.shape[-1:]).astype("f"))
        return self.numbers[self.rng.integers(0, len(self.numbers))]

    def _truth(self):
        return self.truths[self.rng.integers(0, len(self.truths))]

    def _small(self, name):
        """Integers stay below 2^24 whatever follows."""
        bounds = [self.model.constant(numpy.float32(bound)) for bound in (-64, 64)]
        return self.model.node("Clip", [name, *bounds]) if self.exact else name

    def _step(self):
        node, rng = self.model.node, self.rng
        whole = self.numbers[rng.integers(0, len(self.numbers))]  # fixes the shape
        kind = rng.integers(0, 10)
        if kind < 4:
            op = str(rng.choice(EXACT_BINARY if self.exact else ROUNDING_BINARY))
            pair = [whole, self._number()]
            self.numbers.append(self._small(node(op, pair if rng.random() < 0.5 else pair[::-1])))
        elif kind < 6:
            self.numbers.append(node(str(rng.choice(EXACT_UNARY if self.exact else ROUNDING_UNARY)), [whole]))
        elif kind == 6:
            self.truths.append(node(str(rng.choice(COMPARISONS)), [whole, self._number()]))
        elif kind == 7:
            truth = node(str(rng.choice(["And", "Or", "Xor"])), [self._truth(), self._truth()])
            self.truths.append(node("Not", [truth]) if rng.random() < 0.3 else truth)
        elif kind == 8:
            self.numbers.append(node("Where", [self._truth(), whole, self._number()]))
            if rng.random() < 0.5:
                self.truths.append(node("Where", [self._truth(), self._truth(), self._truth()]))
        else:
            axes = self.model.constant(numpy.array([int(rng.integers(0, len(self.shape)))]))
            self.numbers.append(node("Sub", [whole, self._small(node("ReduceMax", [whole, axes]))]))
            self.numbers.append(node("Cast", [self._truth()], to="f32"))
            self.truths.append(node("Cast", [whole], to="bool"))

    def grow(self, steps):
        for _ in range(steps):
            self._step()
        made = [name for name in self.numbers[2:] + self.truths[1:]]
        wanted = [made[-1], *(name for name in made[:-1] if self.rng.random() < 0.15)]
        self.model.output(*dict.fromkeys(wanted))
        return self
