# SPDX-License-Identifier: MIT
"""Random graphs that are valid by construction: a Graph grows node by node, and knows of each value what any right
implementation may make of it.

A Value of a float type is a multiple of `step`, a power of two, and at most `most` in magnitude. Where all partial sums
of an operator are multiples of a step that the type holds exactly, its result is the same in whatever order it is
computed, and `error` is 0: results are compared bit for bit. With `step` 0 it is any real number, and two right results
are at most `error` apart: each operator adds to it what its own rounding does, and carries on what its inputs have.
"""
import itertools
import math
import re
from dataclasses import dataclass, field, replace

import numpy
import onnx

from conftest import ROOT
from support.bodies import Body
from support.dtypes import BY_NAME
from support.model_builder import TYPES, Model

INTEGERS = ("i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8")
# Multiples of the step up to which a type is exact. Products of two steps are made in f32, whatever is stored.
EXACT = {"f64": 2.0**24, "f32": 2.0**24, "f16": 2.0**11, "bf16": 2.0**8}
# Round tails: vector widths of all targets and one more or less, and the extents of small images.
EXTENTS = (1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33)
MOST_ELEMENTS = 3000
USUAL_MOST = 4.0


class Unsuitable(Exception):
    """The operator that was drawn has nothing to be applied to."""


@dataclass(frozen=True)
class Value:
    name: str
    dtype: str
    shape: tuple  # extents, or names of dims
    most: float = USUAL_MOST
    step: float = 1.0
    error: float = 0.0
    constant: bool = False  # of constants alone: its elements need no run

    @property
    def rank(self):
        return len(self.shape)

    @property
    def real(self):
        return self.dtype in EXACT

    @property
    def exact(self):
        return self.error == 0

    @property
    def fixed(self):
        """No extent is for the run alone to know."""
        return all(isinstance(extent, int) for extent in self.shape)


class GraphBody(Body):
    """A body whose inputs and outputs have shapes."""

    def __init__(self, model, values, prefix):
        super().__init__(model)
        self.prefix = prefix
        self.inputs, self.types = [f"{prefix}i{k}" for k in range(len(values))], [value.dtype for value in values]
        self.values = [replace(value, name=name) for value, name in zip(values, self.inputs)]
        self.results = []

    def close(self, values):
        """Each output is a value of its own."""
        self.results = [replace(value, name=self.node("Identity", [value.name])) for value in values]
        self.output(*(value.name for value in self.results))

    def onnx(self, onnx_attributes):
        graph = super().onnx(onnx_attributes)
        del graph.input[:]
        del graph.output[:]
        for described, values in (graph.input, self.values), (graph.output, self.results):
            described.extend(onnx.helper.make_tensor_value_info(v.name, TYPES[v.dtype][1], v.shape) for v in values)
        return graph


# Of ONNX Runtime's domain. It cannot run those of the second list without their optional inputs.
CONTRIBUTED = set(re.findall(r"^CONTRIB(?:_CHOICE)?\((\w+)", (ROOT / "compiler/ir/ops.def").read_text(), re.M))
WHOLE_ONLY = {"QLinearAdd", "QLinearMul", "QLinearAveragePool"}
# Operators of newer opsets than the models'. Not Attention: where a mask hides a key, ONNX Runtime hands out the lowest
# number in place of minus infinity.
NEWER = {"RotaryEmbedding": 24, "RMSNormalization": 24, "Swish": 24, "TensorScatter": 24}


class NamedModel(Model):
    """Names begin with a prefix, so that models can be laid side by side."""

    def __init__(self, prefix):
        super().__init__()
        self.prefix = prefix

    def onnx(self):
        self.opset = max([self.opset, *(NEWER[node["op"]] for node in self.nodes if node["op"] in NEWER)])
        model = super().onnx()
        for node in model.graph.node:
            if node.op_type in CONTRIBUTED - {"SimplifiedLayerNormalization"} and not (node.op_type in WHOLE_ONLY and "" in node.input):
                node.domain = "com.microsoft"
        model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
        return model

    def constant(self, array, name=None):
        return super().constant(array, name or f"{self.prefix}c{len(self.arrays)}")

    def node(self, op, inputs, outputs=1, **attributes):
        if isinstance(outputs, int):
            outputs = [f"{self.prefix}v{len(self.nodes)}_{k}" for k in range(outputs)]
        return super().node(op, inputs, outputs, **attributes)


@dataclass
class Feed:
    """How an input is filled: whole numbers of steps between bounds, or as a function says."""
    value: Value
    low: float
    high: float
    make: object = None


@dataclass
class Graph:
    rng: numpy.random.Generator
    prefix: str = ""
    peer: bool = True  # only what ONNX Runtime has kernels for
    bodies: bool = False  # control flow, else cases of other tests: of both together nobody may know what they compute
    model: Model = None
    values: list = field(default_factory=list)
    fed: dict = field(default_factory=dict)  # name -> Feed
    dims: dict = field(default_factory=dict)  # name -> (least, usual, most)
    dims_of: dict = field(default_factory=dict)  # extents that are computed of others: (least, most)
    used: set = field(default_factory=set)  # names of operators
    grafted: list = field(default_factory=list)  # names of cases of other tests
    extra: dict = field(default_factory=dict)  # their results -> how far they may be off, relative to the largest
    winograd: bool = False  # convolutions may run by Winograd's algorithm, whose results are rounded
    states: list = field(default_factory=list)
    depth: int = 0  # bodies around what grows

    def __post_init__(self):
        self.model = NamedModel(self.prefix)
        self.scope = self.model
        self.numbers = itertools.count()

    # drawing

    def chance(self, share):
        return self.rng.random() < share

    def draw(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def integer(self, least, most):
        return int(self.rng.integers(least, most + 1))

    def extent(self, most=33):
        return self.draw([extent for extent in EXTENTS if extent <= most])

    def shape(self, rank=None, most=33):
        rank = self.integer(0, 4) if rank is None else rank
        shape = [self.extent(most) for _ in range(rank)]
        while math.prod(shape) > MOST_ELEMENTS:
            k = int(numpy.argmax(shape))
            shape[k] = self.extent(max(1, shape[k] // 2))
        return tuple(shape)

    # dims

    def dim(self):
        """The name of a dim: mostly one that is there."""
        if self.dims and self.chance(0.7) or len(self.dims) > 1:
            return self.draw(list(self.dims))
        name = f"{self.prefix}D{len(self.dims)}"
        self.dims[name] = (self.draw((0, 1, 1, 1)) if not self.depth else 1, self.draw((2, 4, 8)), self.draw((9, 17)))
        return self.model.dim(name, *self.dims[name])

    def derived(self, formula, least, most):
        """An extent that is computed of others: the same formula is the same extent. A number where there is no choice."""
        if least == most:
            return least
        self.dims_of[f"{self.prefix}{formula}"] = (least, most)
        return f"{self.prefix}{formula}"

    def least(self, extent):
        return extent if isinstance(extent, int) else self.dims[extent][0] if extent in self.dims else self.dims_of[extent][0]

    def largest(self, extent):
        return extent if isinstance(extent, int) else self.dims[extent][2] if extent in self.dims else self.dims_of[extent][1]

    def elements(self, shape):
        return math.prod(self.largest(extent) for extent in shape)

    def never_empty(self, value):
        return all(self.least(extent) > 0 for extent in value.shape)

    # values

    def input(self, dtype, shape, most=USUAL_MOST, step=1.0, low=None, make=None):
        if any(isinstance(extent, str) and extent not in self.dims for extent in shape):
            raise Unsuitable  # no input is as long as a sum of others
        name = f"{self.prefix}x{len(self.fed)}"
        most = float(most)
        value = Value(self.model.input(name, dtype, shape), dtype, tuple(shape), most, step)
        units = most / (step or 1.0)
        self.fed[name] = Feed(value, low if low is not None else 0 if dtype[0] in "ub" else -units, units, make)
        if not self.depth:
            self.values.append(value)
        return value

    def carry(self):
        """A state: what it carries over is settled by close_state()."""
        value = Value(f"{self.prefix}s{len(self.states)}", "f32", self.shape(self.integer(1, 3), 9))
        self.states.append(value)
        self.values.append(value)

    def close_states(self):
        """Each state takes over a value of its shape, that was computed of others if there is one."""
        for state in self.states:
            made = [v for v in self.values if (v.dtype, v.shape) == ("f32", state.shape) and v.exact and v.step and v not in self.states
                    and v.name not in self.fed]
            source = self.draw(made) if made else self.add("Add", [state, self.scalar(1)], ("f32", state.shape, state.most + 1))
            self.model.state(state.name, self.within(source, state.most, state.step).name, "f32", state.shape)

    def constant(self, array, step=1.0):
        array = numpy.asarray(array)
        dtype = next(name for name, (kind, _) in TYPES.items() if array.dtype == kind)
        name = self.scope.constant(array)
        most = float(numpy.abs(array.astype(float)).max(initial=0)) if array.size else 0.0
        return Value(name, dtype, array.shape, most, step, constant=True)

    def whole(self, shape, most=USUAL_MOST, dtype="f32"):
        """A constant of integers."""
        low = 0 if dtype[0] == "u" else -int(most)
        if dtype == "bool":
            return self.constant(self.rng.integers(0, 2, shape).astype(numpy.bool_))
        return self.constant(self.rng.integers(low, int(most) + 1, shape).astype(TYPES[dtype][0]))

    def indices(self, *numbers, dtype=numpy.int64):
        return self.constant(numpy.array(numbers, dtype)).name

    def scalar(self, number, dtype="f32"):
        return self.constant(numpy.array(number).astype(TYPES[dtype][0])).name

    def add(self, op, inputs, *results, outputs=None, **attributes):
        """A node. inputs: Values, names or None. results: (dtype, shape, most, step, error) of each output, or None for one
        that is left out. Returns the Values, which others may read."""
        self.used.add(op)
        names = [it.name if isinstance(it, Value) else it for it in inputs]
        made = self.scope.node(op, names, len(results), **attributes)
        made = [made] if isinstance(made, str) else made
        values = [Value(name, *result) for name, result in zip(made, results)]
        self.values += values
        return values[0] if len(values) == 1 else values

    # what operators are applied to

    def pick(self, suits=lambda value: True, fallback=None, recent=0.6):
        """A value that suits; mostly one of the newest."""
        fitting = [value for value in self.values if suits(value)]
        if not fitting:
            made = fallback() if fallback else None
            if made and suits(made):
                return made
            raise Unsuitable
        if self.chance(recent):
            fitting = fitting[-3:]
        return self.draw(fitting)

    def number(self, suits=lambda value: True, rank=None, most=None, step=None):
        """One of f32, of at most `most` and a multiple of `step`; that rank, and fitting. Made if there is none."""
        def fits(value):
            return value.dtype == "f32" and (rank is None or value.rank == rank) and suits(value)

        return self.within(self.pick(fits, lambda: self.fresh("f32", rank)), most, step)

    def fresh(self, dtype, rank=None, most=USUAL_MOST):
        shape = list(self.shape(rank, 17))
        for axis in range(len(shape)):
            if self.chance(0.15):
                shape[axis] = self.dim()
        return self.input(dtype, shape, most)

    def within(self, value, most=None, step=None):
        """The value, or it after Round and Clip where it may be larger, or finer. step 1: integers."""
        if step and value.real and value.step < step:
            if not value.exact:
                raise Unsuitable  # it may be rounded up, and down
            value = self.add("Round", [value], (value.dtype, value.shape, value.most + 1, 1.0))
        if most is not None and value.most > most:
            if value.dtype == "bool":
                raise Unsuitable
            low = 0 if value.dtype[0] == "u" else -most
            bounds = [self.scalar(low, value.dtype), self.scalar(most, value.dtype)]
            value = self.add("Clip", [value, *bounds], (value.dtype, value.shape, float(most), value.step, value.error))
        return value

    def settle(self, op, inputs, shape, most, step, error, dtype="f32", **attributes):
        """Adds a node whose result is exact where most / step is within the type, and else real, with the rounding of
        results of that size."""
        if step and most / step <= EXACT[dtype] and not error:
            return self.add(op, inputs, (dtype, shape, most, step, 0.0), **attributes)
        return self.add(op, inputs, (dtype, shape, most, 0.0, error + most * 2.0**-22), **attributes)

    def nest(self, values):
        """A scope for a body with such inputs."""
        return _Nest(self, values)


class _Nest:
    """Within it, nodes go into the body, and values that it makes end with it."""

    def __init__(self, graph, values):
        self.graph, self.body = graph, GraphBody(graph.model, values, f"{graph.prefix}b{next(graph.numbers)}_")

    def __enter__(self):
        graph = self.graph
        self.outer = graph.scope, list(graph.values)
        graph.scope, graph.depth = self.body, graph.depth + 1
        graph.values += self.body.values
        return self.body

    def __exit__(self, *_):
        self.graph.scope, self.graph.values = self.outer
        self.graph.depth -= 1


def filled(graph, rng, extents):
    """Arrays for the inputs of a graph, of those extents of its dims."""
    feeds = {}
    for name, feed in graph.fed.items():
        shape = [extents.get(extent, extent) for extent in feed.value.shape]
        kind = BY_NAME[feed.value.dtype].numpy
        if feed.make:
            array = feed.make(rng, shape)
        elif feed.value.dtype == "bool":
            array = rng.integers(0, 2, shape)
        else:
            array = rng.integers(int(feed.low), int(feed.high), shape, endpoint=True) * feed.value.step
        feeds[name] = numpy.asarray(array).astype(kind)
    return feeds
