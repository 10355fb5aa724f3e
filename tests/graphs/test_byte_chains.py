# SPDX-License-Identifier: MIT
"""Element-wise arithmetic between tensors of u8 and i8 is one kernel, which has no tensor of floats in memory: quantised,
dequantised, requantised and added numbers are the reference's, bit for bit, row-major and blocked, on every instruction set."""
import numpy
import pytest

from graphs.test_chains import kernels
from support.emitted import TARGETS, assert_same, run_module
from support.model_builder import TYPES, Model

EDGES = numpy.array([numpy.nan, numpy.inf, -numpy.inf, 3e38, -3e38, -0.0, 0.5, 1.5, 2.5, -0.5, 126.5, 127.5, 254.5, 255.5, 1e-30],
                    numpy.float32)


def scalar(model, value, dtype):
    return model.constant(numpy.asarray(value, TYPES[dtype][0]))


class Numbers:
    """Quantises and dequantises in a model."""

    def __init__(self, rng, shape):
        self.rng, self.model, self.shape, self.feeds = rng, Model(), shape, {}

    def scale(self):
        return float(self.rng.choice([0.25, 0.37, 1, 1.9, 3]))

    def zero(self, dtype):
        limits = numpy.iinfo(TYPES[dtype][0])
        return int(self.rng.integers(limits.min, limits.max + 1))

    def floats(self, name):
        x = (self.rng.integers(-900, 900, self.shape) / 4).astype(numpy.float32)
        x.flat[:len(EDGES)] = EDGES[:x.size]
        self.feeds[name] = x
        return self.model.input(name, "f32", self.shape)

    def bytes(self, name, dtype):
        limits = numpy.iinfo(TYPES[dtype][0])
        self.feeds[name] = self.rng.integers(limits.min, limits.max + 1, self.shape).astype(TYPES[dtype][0])
        return self.model.input(name, dtype, self.shape)

    def parameters(self, dtype, axis=None):
        if axis is None:
            return [scalar(self.model, self.scale(), "f32"), scalar(self.model, self.zero(dtype), dtype)]
        each = range(self.shape[axis])
        return [self.model.constant(numpy.array([self.scale() for _ in each], numpy.float32)),
                self.model.constant(numpy.array([self.zero(dtype) for _ in each], TYPES[dtype][0]))]

    def quantize(self, x, dtype, axis=None):
        return self.model.node("QuantizeLinear", [x, *self.parameters(dtype, axis)], axis=1 if axis is None else axis)

    def dequantize(self, x, dtype, axis=None):
        return self.model.node("DequantizeLinear", [x, *self.parameters(dtype, axis)], axis=1 if axis is None else axis)


def arithmetic(rng, shape):
    """To numbers, to others, added, multiplied, chosen and bounded, and back."""
    numbers = Numbers(rng, shape)
    model, a, b = numbers.model, numbers.bytes("a", "u8"), numbers.bytes("b", "i8")
    x = numbers.quantize(numbers.floats("x"), "i8", axis=1)
    y = numbers.quantize(model.node("Add", [numbers.dequantize(a, "u8"), numbers.dequantize(b, "i8", axis=1)]), "u8")
    z = numbers.quantize(model.node("Mul", [numbers.dequantize(y, "u8"), numbers.dequantize(x, "i8")]), "i8")
    bounded = model.node("Clip", [z, scalar(model, -100, "i8"), scalar(model, 90, "i8")])
    chosen = model.node("Where", [model.node("Less", [b, x]), bounded, x])
    requantised = numbers.quantize(numbers.dequantize(chosen, "i8"), "u8")
    model.output(y, bounded, requantised, numbers.dequantize(requantised, "u8"))
    return numbers


@pytest.mark.parametrize("shape", [(3, 37), (2, 5, 4, 7), (1, 16, 3, 3), (4, 2, 1100)], ids=str)
@pytest.mark.parametrize("target", TARGETS)
def test_numbers_are_the_reference_s(reference, compile, tmp_path, target, shape):
    numbers = arithmetic(numpy.random.default_rng([len(shape), 7]), shape)
    path = numbers.model.write(tmp_path)
    due = reference.run(numbers.model, path, numbers.feeds)
    assert_same(run_module(compile(path, f"--target={target}"), numbers.feeds, threads=(1, 2, 3)), due)


@pytest.mark.parametrize("target", ["aarch64-linux-gnu", "aarch64-linux-gnu+sve256", "riscv64-linux-gnu"])
def test_numbers_are_the_reference_s_on_other_machines(reference, run_for, tmp_path, target):
    numbers = arithmetic(numpy.random.default_rng([4, 8]), (2, 5, 4, 7))
    path = numbers.model.write(tmp_path)
    due = reference.run(numbers.model, path, numbers.feeds)
    assert_same(run_for(target, path, numbers.feeds, list(due)), due)


def blocked(rng, shape):
    """Behind a convolution of f32, which writes blocks. Its numbers are whole, so that it is exact."""
    numbers = Numbers(rng, shape)
    model, channels = numbers.model, shape[1]
    weights = rng.integers(-3, 4, (channels, channels, 3, 3)).astype(numpy.float32)
    numbers.feeds["x"] = rng.integers(-9, 9, shape).astype(numpy.float32)
    image = model.node("Conv", [model.input("x", "f32", shape), model.constant(weights)], pads=[1, 1, 1, 1])
    y = numbers.quantize(image, "u8")
    gate = numbers.dequantize(model.node("ReduceMax", [y, model.constant(numpy.array([2, 3]))], keepdims=1), "u8")
    z = numbers.quantize(model.node("Mul", [numbers.dequantize(y, "u8", axis=1), gate]), "i8")
    back = model.node("Conv", [numbers.dequantize(z, "i8"), model.constant(weights)], pads=[1, 1, 1, 1])
    model.output(z, back)
    return numbers


@pytest.mark.parametrize("channels", [5, 16, 40])
@pytest.mark.parametrize("target", TARGETS)
def test_blocked_numbers_are_the_reference_s(reference, compile, tmp_path, target, channels):
    numbers = blocked(numpy.random.default_rng([channels, 9]), (2, channels, 6, 7))
    path = numbers.model.write(tmp_path)
    due = reference.run(numbers.model, path, numbers.feeds)
    z, back = run_module(compile(path, f"--target={target}"), numbers.feeds, threads=(1, 2)).values()
    numpy.testing.assert_array_equal(z, due[numbers.model.outputs[0]])
    wide = due[numbers.model.outputs[1]]
    numpy.testing.assert_allclose(back, wide, rtol=0, atol=2.0**-20 * channels * abs(wide).max())


def test_no_float_is_in_memory_between_bytes(rnncc, tmp_path):
    numbers = arithmetic(numpy.random.default_rng(3), (3, 37))
    assert set(kernels(rnncc, tmp_path, numbers.model)) <= {"elementwise_chain", "map_bytes"}


# ---- functions ----

FUNCTIONS = {"Sigmoid": lambda x: 1 / (1 + numpy.exp(-x)), "Tanh": numpy.tanh, "Exp": numpy.exp, "Sqrt": lambda x: numpy.sqrt(numpy.maximum(x, 0)),
             "Elu": lambda x: numpy.where(x < 0, numpy.expm1(x), x), "Swish": lambda x: x / (1 + numpy.exp(-x))}
TYPE_PAIRS = [("u8", "u8"), ("u8", "i8"), ("i8", "u8"), ("i8", "i8")]


def function_of(numbers, x, op, pair, wanted=None):
    """Quantised numbers of type pair[0], their function, quantised again. wanted: gets the result in double precision."""
    zero, steps = {"u8": 131, "i8": -3}, numbers.model
    scales, zeros = [scalar(steps, step, "f32") for step in (2.0**-5, 2.0**-6)], [scalar(steps, zero[dtype], dtype) for dtype in pair]
    y = steps.node("DequantizeLinear", [x, scales[0], zeros[0]])
    if op == "Sqrt":
        y = steps.node("Relu", [y])
    y = steps.node("QuantizeLinear", [steps.node(op, [y]), scales[1], zeros[1]])
    if wanted is not None:
        limits, x = numpy.iinfo(TYPES[pair[1]][0]), numbers.feeds[x].astype(numpy.float64) - zero[pair[0]]
        wanted[y] = numpy.clip(FUNCTIONS[op](x * 2.0**-5) * 2.0**6 + zero[pair[1]], limits.min, limits.max)
    return y


@pytest.mark.parametrize("target", TARGETS)
def test_functions_of_bytes_are_looked_up(rnncc, reference, compile, tmp_path, target):
    """The reference's results, which are within a step of those in double precision: of all bytes, and of a number of them
    that is no multiple of anything."""
    numbers, wanted = Numbers(numpy.random.default_rng(5), (3, 259)), {}
    for k, op in enumerate(FUNCTIONS):
        pair = TYPE_PAIRS[k % 4]
        x = numbers.bytes(f"x{k}", pair[0])
        numbers.feeds[x].view(numpy.uint8).flat[:256] = range(256)
        numbers.model.output(function_of(numbers, x, op, pair, wanted))
    path = numbers.model.write(tmp_path)
    found = run_module(compile(path, f"--target={target}"), numbers.feeds, threads=(1, 2, 5))
    assert_same(found, reference.run(numbers.model, path, numbers.feeds))
    for name, exact in wanted.items():
        assert abs(found[name] - exact).max() <= 0.501, name
    assert set(kernels(rnncc, tmp_path, numbers.model, f"--target={target}")) == {"map_bytes"}


@pytest.mark.parametrize("channels", [5, 16, 40])
@pytest.mark.parametrize("target", TARGETS)
def test_functions_of_blocked_bytes_are_looked_up(rnncc, reference, compile, tmp_path, target, channels):
    """Behind a convolution whose numbers are whole; two of them are parts of a Concat, which has them in place."""
    shape = (2, channels, 6, 7)
    rng = numpy.random.default_rng(channels)
    numbers = Numbers(rng, shape)
    model, weights = numbers.model, rng.integers(-3, 4, (channels, channels, 3, 3)).astype(numpy.float32)
    numbers.feeds["x"] = rng.integers(-9, 9, shape).astype(numpy.float32)
    image = model.node("Conv", [model.input("x", "f32", shape), model.constant(weights)], pads=[1, 1, 1, 1])
    y = model.node("QuantizeLinear", [image, scalar(model, 2.0, "f32"), scalar(model, 128, "u8")])
    parts = [function_of(numbers, y, op, ("u8", "i8")) for op in ("Tanh", "Swish")]
    joined = model.node("DequantizeLinear", [model.node("Concat", parts, axis=1), scalar(model, 1.0, "f32"), scalar(model, 0, "i8")])
    back = model.node("Conv", [joined, model.constant(numpy.concatenate([weights, weights], axis=1))], pads=[1, 1, 1, 1])
    model.output(back)
    path = model.write(tmp_path)
    found = run_module(compile(path, f"--target={target}"), numbers.feeds, threads=(1, 2))
    due = reference.run(model, path, numbers.feeds)[back]
    numpy.testing.assert_allclose(found[back], due, rtol=0, atol=2.0**-20 * channels * abs(due).max())
    assert "map_bytes" in kernels(rnncc, tmp_path, model, f"--target={target}")


def test_few_steps_are_computed_where_vectors_are_wide(rnncc, tmp_path):
    found = {}
    for target in ("x86-64-v4", "x86-64-v3"):
        numbers = Numbers(numpy.random.default_rng(6), (3, 37))
        x = numbers.dequantize(numbers.bytes("x", "u8"), "u8")
        numbers.model.output(numbers.quantize(numbers.model.node("LeakyRelu", [x]), "u8"))
        found[target] = kernels(rnncc, tmp_path, numbers.model, f"--target={target}")
    assert found == {"x86-64-v4": ["elementwise_chain"], "x86-64-v3": ["map_bytes"]}


def test_what_may_leave_the_type_is_cut_as_before(reference, compile, tmp_path):
    """A Cast whose operand is not known to be a number of the type wraps around: a chain's store would saturate."""
    model = Model()
    x = model.input("x", "f32", [64])
    model.output(model.node("Cast", [model.node("Mul", [x, scalar(model, 2.5, "f32")])], to="u8"),
                 model.node("Cast", [model.node("Clip", [x, scalar(model, 0.5, "f32"), scalar(model, 200, "f32")])], to="u8"))
    whole = model.node("Round", [x])
    model.output(*[model.node("Cast", [model.node("Clip", [whole, scalar(model, low, "f32"), scalar(model, high, "f32")])], to=to)
                   for low, high, to in [(-300, 200, "u8"), (10, 300, "u8"), (-300, 100, "i8"), (-100, 300, "i8")]])
    halves = model.node("Cast", [model.node("Cast", [x], to="f16")], to="f32")  # no whole numbers, though they were cast
    model.output(model.node("Cast", [model.node("Clip", [halves, scalar(model, 10, "f32"), scalar(model, 200, "f32")])], to="u8"))
    feeds = {"x": numpy.linspace(-700, 700, 64).astype(numpy.float32)}
    path = model.write(tmp_path)
    assert_same(run_module(compile(path), feeds), reference.run(model, path, feeds))
