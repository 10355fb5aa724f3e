# SPDX-License-Identifier: MIT
"""Small networks whose weights are trained: at least one for each row of compiler/differentiate/gradients.def.

GRADIENTS has a function for each case, of a Builder, which returns the value that the loss is of. Weights are away from
corners (0 of Relu), so that differences on both sides of a weight tell its gradient.
"""
import numpy

from support.bodies import body_of
from support.model_builder import Model


class Builder:
    """Adds one case to a model, whose names begin with the case's."""

    def __init__(self, model, name, seed=1):
        self.model, self.name = model, name
        self.rng = numpy.random.default_rng([seed, *name.encode()])
        self.weights, self.feeds = {}, {}

    def weight(self, *shape, low=-2, high=2, apart=0.0):
        """A trained weight; its numbers are at least `apart` from 0."""
        array = self.rng.uniform(low, high, shape).astype(numpy.float32)
        array += numpy.sign(array) * numpy.float32(apart)
        name = self.model.constant(array, f"{self.name}.w{len(self.weights)}")
        self.weights[name] = array
        return name

    def input(self, array, dtype="f32"):
        name = f"{self.name}.x{len(self.feeds)}"
        self.feeds[name] = array
        return self.model.input(name, dtype, array.shape)

    def data(self, *shape):
        return self.input(self.rng.uniform(-2, 2, shape).astype(numpy.float32))

    def integers(self, array):
        return self.model.constant(numpy.array(array, numpy.int64))

    def number(self, value):
        return self.model.constant(numpy.float32(value))

    def node(self, op, *inputs, outputs=1, **attributes):
        return self.model.node(op, list(inputs), outputs, **attributes)

    def body(self, build, **inputs):
        return body_of(self.model, build, **inputs)

    def loss(self, y, shape):
        """The sum of y's elements, each times a number of its own."""
        return self.node("ReduceSum", self.node("Mul", y, self.data(*shape)), keepdims=0)


GRADIENTS = {}


def case(shape, name=None):
    """Registers a function that builds a value of that shape."""

    def register(build):
        GRADIENTS[name or build.__name__] = (build, shape)
        return build

    return register


# ---- element-wise ----

UNARY = {
    "Abs": (0.2, {}), "Neg": (0, {}), "Reciprocal": (0.5, {}), "Erf": (0, {}), "Sigmoid": (0, {}), "Tanh": (0, {}),
    "Exp": (0, {}), "Mish": (0, {}), "Softplus": (0, {}), "Softsign": (0.1, {}), "Swish": (0, {"alpha": 1.5}),
    "Sin": (0, {}), "Cos": (0, {}), "Atan": (0, {}), "Sinh": (0, {}), "Cosh": (0, {}), "Asinh": (0, {}), "Relu": (0.1, {}),
    "LeakyRelu": (0.1, {"alpha": 0.3}), "Elu": (0.1, {"alpha": 0.7}), "Selu": (0.1, {}), "Celu": (0.1, {"alpha": 0.6}),
    "HardSwish": (0.1, {}), "ThresholdedRelu": (0.1, {"alpha": 0.05}), "Shrink": (0.1, {"lambd": 0.05, "bias": 0.1}),
    "HardSigmoid": (0.1, {"alpha": 0.21, "beta": 0.5}),
}
POSITIVE = {"Sqrt": (0.3, 3), "Log": (0.3, 3), "Tan": (-1, 1), "Asin": (-0.8, 0.8), "Acos": (-0.8, 0.8), "Acosh": (1.3, 3),
            "Atanh": (-0.8, 0.8)}

for op, (apart, attributes) in UNARY.items():
    case((3, 5), op)(lambda b, op=op, apart=apart, more=attributes: b.node(op, b.weight(3, 5, apart=apart), **more))
for op, (low, high) in POSITIVE.items():
    case((3, 5), op)(lambda b, op=op, low=low, high=high: b.node(op, b.weight(3, 5, low=low, high=high)))
for form in ("none", "tanh"):
    case((3, 5), f"Gelu_{form}")(lambda b, form=form: b.node("Gelu", b.weight(3, 5), approximate=form))


def one_of(b, low, high):
    """A trained number, which an operator takes as one of no axes."""
    return b.node("Squeeze", b.weight(1, low=low, high=high))


case((3, 5), "clip_by_weights")(lambda b: b.node("Clip", b.weight(3, 5), one_of(b, -1, -0.5), one_of(b, 0.5, 1)))
case((3, 5), "clip_by_crossing_weights")(lambda b: b.node("Clip", b.weight(3, 5), one_of(b, 0.5, 1), one_of(b, -1, -0.5)))
case((3, 5), "clip_from_below")(lambda b: b.node("Clip", b.weight(3, 5), one_of(b, -1, 1)))
case((5, 8), "pad_by_a_weight")(lambda b: b.node("Pad", b.weight(3, 5), b.integers([2, 1, 0, 2]), one_of(b, -1, 1)))
for axis, shape in ((-1, (2, 3, 4)), (0, (4, 2, 3))):
    case(shape, f"one_hot_{axis}")(lambda b, axis=axis: b.node(
        "OneHot", b.integers([[0, 3, -1], [2, 9, 1]]), b.integers(4), b.weight(2), axis=axis))


@case((3, 5))
def clip(b):
    return b.node("Clip", b.weight(3, 5), b.number(-1), b.number(1))


@case((4, 3, 5))
def add_and_subtract(b):
    """Broadcast along a new axis, and along one of 1."""
    return b.node("Sub", b.node("Add", b.weight(3, 5), b.weight(4, 1, 5)), b.weight(1))


@case((4, 3, 5))
def multiply_and_divide(b):
    return b.node("Div", b.node("Mul", b.weight(3, 5), b.weight(4, 1, 5)), b.weight(3, 1, apart=0.5))


@case((3, 5))
def power(b):
    return b.node("Pow", b.weight(3, 5, low=0.3, high=2), b.weight(5, low=0.5, high=3))


@case((3, 5))
def square(b):
    return b.node("Pow", b.weight(3, 5), b.number(2))


@case((3, 5))
def prelu(b):
    return b.node("PRelu", b.weight(3, 5, apart=0.1), b.weight(5))


@case((3, 5))
def extremes(b):
    return b.node("Min", b.node("Max", b.weight(3, 5), b.weight(5), b.weight(3, 1)), b.weight(3, 5))


@case((3, 5))
def choice(b):
    return b.node("Where", b.input(b.rng.integers(0, 2, (3, 5)).astype(bool), "bool"), b.weight(3, 5), b.weight(5))


@case((3, 5))
def sums(b):
    return b.node("Mean", b.node("Sum", b.weight(3, 5), b.weight(5), b.weight(3, 5)), b.weight(1))


@case((3, 5))
def read_twice(b):
    w = b.weight(3, 5)
    return b.node("Add", b.node("Mul", w, w), b.node("Tanh", w))


# ---- batch normalisation ----

def batch_norm(b, shape, **attributes):
    C = shape[1] if len(shape) > 1 else 1
    mean, variance = (b.rng.uniform(low, 2, C).astype(numpy.float32) for low in (-2, 0.5))
    statistics = [b.model.constant(array, f"{b.name}.{name}") for name, array in (("mean", mean), ("variance", variance))]
    return b.node("BatchNormalization", b.weight(*shape), b.weight(C), b.weight(C), *statistics, **attributes)


case((7,), "batch_norm_1")(lambda b: batch_norm(b, (7,), epsilon=1e-3))
for shape in ((7, 3), (2, 3, 4), (2, 3, 2, 3), (2, 2, 2, 3, 2)):
    case(shape, f"batch_norm_{len(shape)}")(lambda b, shape=shape: batch_norm(b, shape, epsilon=1e-3))
    case(shape, f"batch_norm_trained_{len(shape)}")(
        lambda b, shape=shape: batch_norm(b, shape, epsilon=1e-3, momentum=0.7, training_mode=1))


# ---- some of each row, as losses pick them ----

PICKED = [[0, 2, 2], [4, 4, 4], [1, 0, 3], [2, 3, 1]]

case((4, 3), "picked_of_rows")(lambda b: b.node(
    "GatherElements", b.node("LogSoftmax", b.weight(4, 5), axis=1), b.integers(PICKED), axis=1))
case((4, 3), "picked_along_another_axis")(lambda b: b.node(
    "GatherElements", b.node("LogSoftmax", b.weight(5, 3), axis=1), b.integers(PICKED), axis=0))


# ---- products ----

for turn_a in (0, 1):
    for turn_b in (0, 1):
        @case((4, 3), f"gemm_{turn_a}{turn_b}")
        def gemm(b, turn_a=turn_a, turn_b=turn_b):
            a, c = b.weight(*((5, 4) if turn_a else (4, 5))), b.weight(*((3, 5) if turn_b else (5, 3)))
            return b.node("Gemm", a, c, b.weight(3), transA=turn_a, transB=turn_b, alpha=0.5, beta=2.0)

for name, a, c, y in (("matrices", (4, 5), (5, 3), (4, 3)), ("one_matrix", (2, 4, 5), (5, 3), (2, 4, 3)),
                      ("batches", (2, 4, 5), (2, 5, 3), (2, 4, 3)), ("spread", (2, 1, 4, 5), (3, 5, 2), (2, 3, 4, 2)),
                      ("row", (5,), (2, 5, 3), (2, 3)), ("column", (2, 4, 5), (5,), (2, 4))):
    case(y, f"matmul_{name}")(lambda b, a=a, c=c: b.node("MatMul", b.weight(*a), b.weight(*c)))


# ---- reductions and normalisation ----

for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSumExp"):
    case((2, 4), op)(lambda b, op=op: b.node(op, b.weight(2, 3, 4, apart=0.1), b.integers([1]), keepdims=0))
case((2, 1, 4), "ReduceLogSum")(lambda b: b.node("ReduceLogSum", b.weight(2, 3, 4, low=0.5), b.integers([1])))
case((), "all_summed")(lambda b: b.node("ReduceMean", b.weight(2, 3), keepdims=0))
for op in ("GlobalAveragePool", "GlobalMaxPool"):
    case((2, 3, 1, 1), op)(lambda b, op=op: b.node(op, b.weight(2, 3, 3, 2)))
for exclusive in (0, 1):
    case((2, 5), f"cumsum_{exclusive}")(
        lambda b, exclusive=exclusive: b.node("CumSum", b.weight(2, 5), b.integers(1), exclusive=exclusive))
for op in ("Softmax", "LogSoftmax"):
    for axis in (1, 2):
        case((2, 3, 4), f"{op}_{axis}")(lambda b, op=op, axis=axis: b.node(op, b.weight(2, 3, 4), axis=axis))


@case((3, 8))
def layer_norm(b):
    return b.node("LayerNormalization", b.weight(3, 8), b.weight(8), b.weight(8), epsilon=0.01)


@case((2, 3, 4))
def layer_norm_of_planes(b):
    return b.node("LayerNormalization", b.weight(2, 3, 4), b.weight(3, 4), axis=1, epsilon=0.01)


for shape in ((2, 6, 4), (3, 6, 2, 3), (2, 4, 2, 1, 3)):
    case(shape, f"instance_norm_{len(shape)}")(lambda b, shape=shape: b.node(
        "InstanceNormalization", b.weight(*shape), b.weight(shape[1]), b.weight(shape[1]), epsilon=0.01))
    for parameters in (2, shape[1]):
        case(shape, f"group_norm_{len(shape)}_by_{parameters}")(lambda b, shape=shape, n=parameters: b.node(
            "GroupNormalization", b.weight(*shape), b.weight(n), b.weight(n), num_groups=2, epsilon=0.01))


# ---- movement ----

@case((4, 6))
def views(b):
    w = b.node("Reshape", b.weight(2, 3, 4), b.integers([4, 1, 6]))
    return b.node("Flatten", b.node("Unsqueeze", b.node("Squeeze", w, b.integers([1])), b.integers([2])), axis=1)


@case((2, 3, 4))
def expand(b):
    return b.node("Expand", b.weight(3, 1), b.integers([2, 1, 4]))


@case((4, 3))
def tile(b):
    return b.node("Tile", b.weight(2, 3), b.integers([2, 1]))


@case((4, 2, 3))
def transpose(b):
    return b.node("Transpose", b.weight(2, 3, 4), perm=[2, 0, 1])


@case((2, 6))
def concat(b):
    return b.node("Concat", b.weight(2, 1), b.weight(2, 3), b.data(2, 2), axis=1)


@case((2, 2))
def split(b):
    first, _second, third = b.node("Split", b.weight(2, 6), b.integers([2, 2, 2]), outputs=3, axis=1)
    return b.node("Mul", first, third)


for name, starts, ends, steps, extent in (("inner", 1, 4, 1, 3), ("every_second", 0, 6, 2, 3), ("backwards", 5, 0, -1, 5),
                                          ("every_second_back", -1, -7, -2, 3), ("every_third", 1, 6, 3, 2)):
    case((2, extent), f"slice_{name}")(
        lambda b, s=starts, e=ends, t=steps: b.node("Slice", b.weight(2, 6), b.integers([s]), b.integers([e]),
                                                    b.integers([1]), b.integers([t])))


@case((3, 6))
def pad(b):
    return b.node("Pad", b.weight(2, 3), b.integers([1, 2, 0, 1]), b.number(0.5))


@case((2, 3, 4))
def embedding(b):
    return b.node("Gather", b.weight(5, 4), b.input(numpy.array([[0, 4, 0], [2, -1, 2]]), "i64"))


@case((2, 3, 2))
def gather_columns(b):
    return b.node("Gather", b.weight(2, 4, 2), b.input(numpy.array([1, 3, 1]), "i64"), axis=1)


@case((2, 3))
def gather_elements(b):
    return b.node("GatherElements", b.weight(2, 4), b.input(numpy.array([[0, 0, 3], [1, 2, 1]]), "i64"), axis=1)


@case((3, 4))
def gather_tuples(b):
    return b.node("GatherND", b.weight(2, 3, 4), b.input(numpy.array([[0, 1], [1, 2], [0, 1]]), "i64"))


@case((3, 4))
def triangle(b):
    return b.node("Trilu", b.weight(3, 4), upper=0)


@case((4, 3))
def reverse_sequence(b):
    return b.node("ReverseSequence", b.weight(4, 3), b.input(numpy.array([2, 4, 1]), "i64"))


@case((1, 4, 2, 2))
def blocks(b):
    return b.node("SpaceToDepth", b.node("DepthToSpace", b.weight(1, 4, 2, 2), blocksize=2), blocksize=2)


# ---- control flow: of which nothing is known before the run ----

def condition(b, truth):
    return b.input(numpy.array(truth), "bool")


def count(b, number, most=7):
    """A trip count, and a condition: ONNX's reference runs no turn without one."""
    given = b.input(numpy.array(number), "i64")
    return b.node("Min", given, b.model.constant(numpy.array(most))), b.model.constant(numpy.array(True))


for truth in (False, True):
    @case((3, 5), f"branch_{truth}")
    def branch(b, truth=truth):
        """Weights that both branches read, that one does, and that it returns as it is."""
        x, y, z = b.weight(3, 5), b.weight(5), b.weight(3, 5)
        both = {"then_branch": b.body(lambda e: [e.node("Mul", [e.node("Tanh", [x]), y]), x]),
                "else_branch": b.body(lambda e: [z, e.node("Mul", [x, x])])}
        first, second = b.node("If", condition(b, truth), outputs=2, **both)
        return b.node("Add", first, second)


for truth in (False, True):
    @case((5,), f"branch_of_its_own_length_{truth}")
    def branch_of_its_own_length(b, truth=truth):
        x = b.weight(4, 5)
        both = {"then_branch": b.body(lambda e: e.node("Tanh", [x])),
                "else_branch": b.body(lambda e: e.node("Concat", [x, e.node("Sin", [x])], axis=0))}
        return b.node("ReduceMean", b.node("If", condition(b, truth), **both), b.integers([0]), keepdims=0)


for turns in (1, 5):
    @case((3,), f"loop_{turns}")
    def loop(b, turns=turns):
        """What is carried and what is collected, also by the turn's number; one that stays, and one that is overwritten.
        ONNX's reference collects vectors, but joins matrices."""
        w, k, numbers = b.weight(3, 3, low=-0.7, high=0.7), b.weight(3), b.weight(7)

        def turn(e, i, c, s, t, u):
            bent = e.node("Tanh", [e.node("Add", [e.node("MatMul", [s, w]), t])])
            scaled = e.node("Mul", [bent, e.node("Gather", [numbers, i])])
            return [c, bent, t, e.node("Mul", [bent, k]), e.node("Mul", [scaled, u])]

        carried = [b.weight(3), b.weight(3), b.weight(3)]
        body = b.body(turn, i="i64", c="bool", s="f32", t="f32", u="f32")
        s, t, u, all_turns = b.node("Loop", *count(b, turns), *carried, outputs=4, body=body)
        collected = b.node("ReduceSum", all_turns, b.integers([0]), keepdims=0)
        return b.node("Sum", s, t, u, collected)


@case((3,))
def loop_that_ends_early(b):
    """The limit is 9 turns; the condition, of a number that the turns count, allows 4."""
    w, three = b.weight(3, low=0.3, high=0.9), b.model.constant(numpy.array(3))
    one = b.model.constant(numpy.array(1))

    def turn(e, i, c, n, s):
        more = e.node("Add", [n, one])
        return [e.node("LessOrEqual", [more, three]), more, e.node("Sin", [e.node("Mul", [s, w])]), s]

    body = b.body(turn, i="i64", c="bool", n="i64", s="f32")
    limit, first = b.model.constant(numpy.array(9)), b.model.constant(numpy.array(0))
    _, s, before = b.node("Loop", limit, condition(b, True), first, b.weight(3), outputs=3, body=body)
    return b.node("Add", s, b.node("ReduceSumSquare", before, b.integers([0]), keepdims=0))


@case((2, 3))
def scan(b):
    """A cell of two states."""
    w, r = b.weight(4, 3, low=-0.7, high=0.7), b.weight(3, 3, low=-0.7, high=0.7)

    def turn(e, h, c, x, g):
        new = e.node("Tanh", [e.node("Add", [e.node("MatMul", [x, w]), e.node("MatMul", [h, r])])])
        cell = e.node("Add", [e.node("Mul", [c, g]), new])
        return [e.node("Sigmoid", [cell]), cell, e.node("Mul", [cell, h])]

    body = b.body(turn, h="f32", c="f32", x="f32", g="f32")
    inputs = [b.weight(2, 3), b.weight(2, 3), b.weight(5, 2, 4), b.weight(5, 2, 3)]
    h, c, steps = b.node("Scan", *inputs, outputs=3, body=body, num_scan_inputs=2)
    collected = b.node("ReduceSum", b.node("Mul", steps, b.data(5, 1, 1)), b.integers([0]), keepdims=0)
    return b.node("Sum", h, c, collected)


@case((3,))
def loops_within_loops(b):
    """A loop whose turns are counted by the outer one's, with a branch in it; each reads weights of all graphs around."""
    w, k, one, two = b.weight(3), b.weight(3), b.model.constant(numpy.array(1)), b.model.constant(numpy.array(2))
    zero, (turns, yes) = b.model.constant(numpy.array(0)), count(b, 3)
    shared = b.node("Sin", w)

    def outer(e, i, c, s):
        scaled = e.node("Mul", [s, k])

        def inner(d, j, c, t):
            even = d.node("Equal", [d.node("Mod", [d.node("Add", [i, j]), two]), zero])
            both = {"then_branch": b.body(lambda f: f.node("Mul", [t, shared])),
                    "else_branch": b.body(lambda f: f.node("Tanh", [f.node("Add", [t, scaled])]))}
            return [c, d.node("If", [even], **both), t]

        t, all_turns = e.node("Loop", [e.node("Add", [i, one]), yes, s], 2, body=b.body(inner, j="i64", c="bool", t="f32"))
        total = e.node("ReduceSum", [all_turns, b.integers([0])], keepdims=0)
        return [c, e.node("Sin", [e.node("Add", [t, w])]), total]

    body = b.body(outer, i="i64", c="bool", s="f32")
    s, totals = b.node("Loop", turns, yes, b.weight(3), outputs=2, body=body)
    return b.node("Add", s, b.node("ReduceMean", totals, b.integers([0]), keepdims=0))


@case((2, 3))
def loop_over_rows(b):
    """Each turn reads a row of a weight, by the turn's number, and as many elements as it finds."""
    rows = b.weight(4, 2, 3)

    def turn(e, i, c, s):
        row = e.node("Gather", [rows, i])
        flat = e.node("Reshape", [row, b.integers([-1])])
        places = e.node("Squeeze", [e.node("NonZero", [e.node("Greater", [flat, b.number(0)])]), b.integers([0])])
        positive = e.node("ReduceMean", [e.node("Gather", [flat, places])], keepdims=0)
        return [c, e.node("Add", [e.node("Sin", [e.node("Mul", [s, row])]), positive])]

    return b.node("Loop", *count(b, 4, most=4), b.weight(2, 3), body=b.body(turn, i="i64", c="bool", s="f32"))


# ---- places that data names ----

for largest, axis, shape in ((1, -1, (3, 2)), (0, 0, (2, 5))):
    case(shape, f"top_k_{axis}")(lambda b, largest=largest, axis=axis: b.node(
        "TopK", b.weight(3, 5), b.integers([2]), outputs=2, axis=axis, largest=largest)[0])
for reduction in ("none", "add"):
    case((4, 5), f"scatter_elements_{reduction}")(lambda b, reduction=reduction: b.node(
        "ScatterElements", b.weight(4, 5), b.integers([[0, -1], [3, 1]]), b.weight(2, 2), axis=1, reduction=reduction))
    case((4, 3, 2), f"scatter_nd_{reduction}")(lambda b, reduction=reduction: b.node(
        "ScatterND", b.weight(4, 3, 2), b.integers([[3, 1], [0, 0], [-2, 2]]), b.weight(3, 2), reduction=reduction))
case((4, 3), "scatter_elements_twice")(lambda b: b.node(
    "ScatterElements", b.weight(4, 3), b.integers([[1, 0, 1], [1, 0, 2]]), b.weight(2, 3), reduction="add"))

RESIZES = {
    "doubled": ((2, 3, 3, 4), {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, (1, 1, 2, 2)),
    "smaller": ((1, 2, 7, 5), {"mode": "nearest"}, (1, 1, 0.5, 0.6)),
    "linear": ((2, 2, 3, 5), {"mode": "linear"}, (1, 1, 2, 1.7)),
    "aligned": ((2, 2, 3, 5), {"mode": "linear", "coordinate_transformation_mode": "align_corners"}, (1, 1, 2, 2)),
    "cubic": ((1, 2, 6, 4), {"mode": "cubic", "exclude_outside": 1}, (1, 1, 1.5, 2)),
    "line": ((2, 3, 6), {"mode": "linear"}, (1, 1, 0.5)),
    "volume": ((1, 2, 2, 3, 4), {"mode": "linear"}, (1, 1, 2, 2, 1.5)),
    "channels": ((2, 3, 4), {"mode": "nearest"}, (2, 3, 1)),
}
for name, (x, attributes, scales) in RESIZES.items():
    case(tuple(int(size * scale) for size, scale in zip(x, scales)), f"resize_{name}")(
        lambda b, x=x, scales=scales, more=attributes: b.node(
            "Resize", b.weight(*x), "", b.model.constant(numpy.array(scales, "f"), f"{b.name}.scales"), **more))


@case((1, 2, 5, 4))
def resize_of_a_region(b):
    """Which reaches beyond x: what lies there is a number."""
    region = b.model.constant(numpy.array([0, 0, -0.4, 0.3, 1, 1, 0.8, 1.6], "f"), f"{b.name}.region")
    return b.node("Resize", b.weight(1, 2, 4, 6), region, "", b.integers([1, 2, 5, 4]), mode="linear",
                  coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=3.0)


# ---- windows ----

CONVOLUTIONS = {
    "plain": ((2, 3, 5, 6), (4, 3, 3, 3), {}, (2, 4, 3, 4)),
    "padded": ((2, 2, 5, 4), (3, 2, 3, 3), {"pads": [1, 1, 1, 1]}, (2, 3, 5, 4)),
    "strided": ((1, 2, 6, 5), (3, 2, 3, 2), {"strides": [2, 2], "pads": [1, 0, 1, 1]}, (1, 3, 3, 3)),
    "dilated": ((1, 2, 7, 6), (2, 2, 3, 2), {"dilations": [2, 3]}, (1, 2, 3, 3)),
    "groups": ((2, 4, 4, 4), (6, 2, 2, 2), {"group": 2}, (2, 6, 3, 3)),
    "depthwise": ((2, 3, 4, 4), (3, 1, 3, 3), {"group": 3, "pads": [1, 1, 1, 1]}, (2, 3, 4, 4)),
    "line": ((2, 3, 7), (4, 3, 3), {"strides": [2]}, (2, 4, 3)),
    "pointwise": ((2, 3, 2, 3), (4, 3, 1, 1), {}, (2, 4, 2, 3)),
}
for name, (x, w, attributes, y) in CONVOLUTIONS.items():
    case(y, f"conv_{name}")(lambda b, x=x, w=w, more=attributes: b.node("Conv", b.weight(*x), b.weight(*w), b.weight(w[0]),
                                                                      kernel_shape=list(w[2:]), **more))

TRANSPOSED = {
    "plain": ((2, 3, 4, 5), (3, 4, 3, 2), {}, (2, 4, 6, 6)),
    "doubling": ((2, 3, 3, 4), (3, 2, 2, 2), {"strides": [2, 2]}, (2, 2, 6, 8)),
    "cut": ((1, 2, 4, 3), (2, 3, 3, 4), {"strides": [2, 3], "pads": [1, 0, 1, 2]}, (1, 3, 7, 8)),
    "longer": ((1, 2, 3, 3), (2, 3, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 0]}, (1, 3, 6, 5)),
    "as_long_as_a_dilation": ((1, 2, 3, 3), (2, 1, 2, 2), {"dilations": [3, 1], "output_padding": [2, 0]}, (1, 1, 8, 4)),
    "dilated": ((2, 2, 3, 4), (2, 3, 3, 2), {"dilations": [2, 3]}, (2, 3, 7, 7)),
    "groups": ((2, 4, 3, 3), (4, 3, 2, 2), {"group": 2, "strides": [2, 1]}, (2, 6, 6, 4)),
    "depthwise": ((2, 3, 3, 3), (3, 1, 3, 3), {"group": 3, "strides": [2, 2], "pads": [1, 1, 0, 0]}, (2, 3, 6, 6)),
    "of_a_shape": ((1, 2, 3, 3), (2, 2, 3, 3), {"strides": [2, 2], "output_shape": [8, 5]}, (1, 2, 8, 5)),
    "same": ((1, 2, 3, 4), (2, 2, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}, (1, 2, 6, 8)),
    "line": ((2, 3, 4), (3, 4, 3), {"strides": [2]}, (2, 4, 9)),
    "volume": ((1, 2, 2, 3, 2), (2, 3, 2, 2, 3), {"strides": [1, 2, 2]}, (1, 3, 3, 6, 5)),
}
for name, (x, w, attributes, y) in TRANSPOSED.items():
    case(y, f"conv_transpose_{name}")(lambda b, x=x, w=w, m=y[1], more=attributes: b.node(
        "ConvTranspose", b.weight(*x), b.weight(*w), b.weight(m), **more))

POOLS = {
    "whole": ({"kernel_shape": [2, 2], "strides": [2, 2]}, (2, 3, 2, 3)),
    "overlapping": ({"kernel_shape": [3, 2], "strides": [1, 2]}, (2, 3, 2, 3)),
    "padded": ({"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, (2, 3, 2, 3)),
}
for name, (attributes, y) in POOLS.items():
    case(y, f"max_pool_{name}")(lambda b, more=attributes: b.node("MaxPool", b.weight(2, 3, 4, 6), **more))
    case(y, f"average_pool_{name}")(lambda b, more=attributes: b.node("AveragePool", b.weight(2, 3, 4, 6), **more))
    case(y, f"average_pool_with_pads_{name}")(
        lambda b, more=attributes: b.node("AveragePool", b.weight(2, 3, 4, 6), count_include_pad=1, **more))


# ---- losses: numbers, of which the loss is a multiple ----

def targets(b, *shape, classes=4):
    return b.input(b.rng.integers(0, classes, shape), "i64")


for reduction in ("mean", "sum"):
    @case((), f"cross_entropy_{reduction}")
    def cross_entropy(b, reduction=reduction):
        return b.node("SoftmaxCrossEntropyLoss", b.weight(3, 4), targets(b, 3), reduction=reduction)


@case((3,))
def cross_entropy_each(b):
    return b.node("SoftmaxCrossEntropyLoss", b.weight(3, 4), targets(b, 3), reduction="none")


@case(())
def cross_entropy_of_places(b):
    """With weights of classes, and a class to ignore."""
    weights = b.input(b.rng.uniform(0.5, 2, 4).astype(numpy.float32))
    return b.node("SoftmaxCrossEntropyLoss", b.weight(2, 4, 3), targets(b, 2, 3), weights, ignore_index=1)


@case(())
def likelihood(b):
    return b.node("NegativeLogLikelihoodLoss", b.node("LogSoftmax", b.weight(3, 4), axis=1), targets(b, 3))


@case(())
def squared_error(b):
    error = b.node("Sub", b.weight(3, 4), b.data(3, 4))
    return b.node("ReduceMean", b.node("Mul", error, error), keepdims=0)


@case((2, 3))
def product_of_as_many_rows_as_a_run_finds(b):
    """The mask chooses 4 of 5, as the product expects."""
    places = b.node("NonZero", b.input(numpy.array([True, False, True, True, True]), "bool"))
    return b.node("MatMul", b.weight(2, 4), b.node("Gather", b.weight(5, 3), b.node("Squeeze", places, b.integers([0]))))


@case((2, 3))
def highway(b):
    return b.node("Highway", b.weight(2, 3), b.weight(3, 3), b.weight(3), b.weight(3, 3, low=0.5), b.weight(3), activation="Tanh")


@case((2, 2, 3))
def additive_attention(b):
    return b.node("AdditiveAttention", b.weight(2, 2, 4), b.weight(2, 3, 4), b.weight(2, 3, 3), b.weight(4))


@case((1, 3, 8))
def attention_flow(b):
    return b.node("AttentionFlow", b.weight(1, 3, 2), b.weight(1, 4, 2), b.weight(6))


@case((2, 2))
def attention_sum(b):
    words = b.integers([[1, 2, 1], [0, 0, 3]]), b.integers([[1, 2], [0, 4]])
    return b.node("AttentionSum", b.weight(2, 3), *words)


def built(names, seed=1):
    """One model of these cases, whose loss is the sum of theirs; and their builders."""
    model, losses, builders = Model("gradients"), [], []
    for name in names:
        build, shape = GRADIENTS[name]
        builder = Builder(model, name, seed)
        losses.append(builder.loss(build(builder), shape))
        builders.append(builder)
    model.output(model.node("Sum", losses) if len(losses) > 1 else losses[0])
    return model, builders
