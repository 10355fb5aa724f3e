# SPDX-License-Identifier: MIT
"""Element-wise ops, softmax, batch normalisation and reductions: emitted kernels compared with the reference interpreter.

Bit for bit if the values make f32 exact; else within the bounds of templates/simd/math.h and of the op's roundings."""
import re

import numpy
import pytest

from graphs.op_models import CASES, INEXACT, one_op
from support.amount import some
from support.emitted import TARGETS, assert_same, run_module
from support.merge import merged
from support.model_builder import Model
from support.module import Module, ModuleError
from support.targets import SCALABLE

EPSILON = 2.0**-24  # the relative error of one rounding

INTEGERS = ("i32", "i64", "u8", "bool", "fmod")
OTHER_FAMILIES = {"MatMul", "Gemm", "Conv", "ConvTranspose", "MaxPool", "AveragePool", "Concat", "Split", "Slice",
                  "Transpose", "Pad", "Expand", "Gather", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity",
                  "Dropout", "Shape"}
EXACT = [name for name in CASES if name not in INEXACT and name.split()[0] not in OTHER_FAMILIES]
GROUPS = {
    "f32": [name for name in EXACT if not name.endswith(INTEGERS) and not name.startswith(("Reduce", "Arg"))],
    "integers": [name for name in EXACT if name.endswith(INTEGERS) and not name.startswith("Reduce")],
    "reductions": [name for name in EXACT if name.startswith(("Reduce", "Arg", "Global"))],
}

# Error of a result: (ULP of it, absolute error as a multiple of EPSILON * the largest magnitude in the output or 1).
# Functions have the bounds of simd/math.h. Elu and its relatives round twice more. Celu's x / alpha is off by one
# rounding, which its exponential multiplies by |x / alpha| <= 4; the sigmoid of Swish does so by |alpha * x| <= 7.5. If
# terms cancel, the error is that of the terms.
BOUNDS = {
    "Exp": (2, 0), "Log": (4, 0), "Erf": (2, 0), "Sigmoid": (4, 0), "Tanh": (4, 0), "Softplus": (4, 0), "Mish": (5, 0),
    "Pow": (1, 0), "Reciprocal": (1, 0), "Softsign": (2, 0), "Elu": (4, 0), "Selu": (5, 0), "Celu": (12, 0),
    "HardSigmoid": (0, 2), "HardSwish": (0, 4), "Gelu": (0, 6), "Gelu tanh": (0, 8), "BatchNormalization": (0, 16),
    "Softmax": (0, 32), "LogSoftmax": (0, 32), "GlobalAveragePool": (0, 32), "ReduceMean f32": (1, 0),
    "ReduceL2 f32": (1, 0), "Swish": (9, 0), "ReduceLogSum f32": (4, 0), "ReduceLogSumExp f32": (0, 32),
} | {op: (1, 0) for op in ("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh")}


def random_cases(names, repeats, seed):
    rng = numpy.random.default_rng(seed)
    return merged([CASES[name](rng) for name in names for _ in range(repeats)])


GROUPS_OF_TARGETS = [(group, target) for group in GROUPS for target in TARGETS] + \
                    some([(group, target) for group in GROUPS for target in SCALABLE[::-1]], 1)


@pytest.mark.parametrize("group, target", GROUPS_OF_TARGETS)
def test_exact_ops_equal_the_reference(reference, run_for, tmp_path, group, target):
    model, feeds = random_cases(GROUPS[group], 2, 11)
    path = model.write(tmp_path)
    assert_same(run_for(target, path, feeds, model.outputs), reference.run(model, path, feeds))


def assert_within(name, got, want):
    ulps, scaled = BOUNDS[name]
    allowed = ulps * numpy.spacing(numpy.abs(want)) + scaled * EPSILON * max(1, numpy.abs(want).max(initial=0))
    assert (numpy.abs(got.astype(float) - want) <= allowed).all(), f"{name}: {got} for {want}"


@pytest.mark.parametrize("target", [*TARGETS, *some(SCALABLE, 0)])
def test_inexact_ops_keep_their_bounds(reference, run_for, tmp_path, target):
    model, feeds = random_cases(BOUNDS, 3, 12)
    path = model.write(tmp_path)
    expected = reference.run(model, path, feeds)
    got = run_for(target, path, feeds, model.outputs)
    for k, name in enumerate(name for name in BOUNDS for _ in range(3)):
        for output in (output for output in expected if output.startswith(f"p{k}_")):
            assert_within(name, got[output], expected[output])


def test_long_planes_are_normalised_in_pieces(reference, compile, tmp_path):
    """Of 1,024 elements, and a rest."""
    rng, name = numpy.random.default_rng(13), "BatchNormalization"
    statistics = [rng.uniform(0.1, 2, 3).astype(numpy.float32) for _ in range(4)]
    model, feeds = one_op(name, [rng.standard_normal((2, 3, 2500)).astype(numpy.float32), *statistics])
    path = model.write(tmp_path)
    got, expected = run_module(compile(path), feeds), reference.run(model, path, feeds)
    for output in expected:
        assert_within(name, got[output], expected[output])


def test_every_inexact_case_has_a_bound():
    assert {name for name in INEXACT if name.split()[0] not in OTHER_FAMILIES} == set(BOUNDS)


# Special values, in every position of a vector and of its tail

SPECIAL = numpy.array([0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 1e30, -1e30, numpy.inf, -numpy.inf, numpy.nan],
                      numpy.float32)
PROPAGATING = ["Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Relu", "LeakyRelu", "Elu", "Selu", "Celu", "Sigmoid",
               "Tanh", "Exp", "Log", "Erf", "Sqrt", "Reciprocal", "HardSigmoid", "HardSwish", "Softplus", "Softsign",
               "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "IsNaN", "IsInf"]


def unary_on_specials():
    model = Model()
    x = model.input("x", "f32", [37])
    for op in PROPAGATING:
        model.output(model.node(op, [x]))
    return model


@pytest.mark.parametrize("target", TARGETS)
def test_special_values_are_the_same_in_body_and_tail(reference, compile, tmp_path, target):
    """With each rotation every value visits every lane. The reference says which results are NaN, infinite and zero."""
    model = unary_on_specials()
    path = model.write(tmp_path)
    module = compile(path, f"--target={target}")
    for turn in range(len(SPECIAL)):
        feeds = {"x": numpy.resize(numpy.roll(SPECIAL, turn), 37)}
        got, expected = run_module(module, feeds, threads=(1, 2)), reference.run(model, path, feeds)
        for name, want in expected.items():
            assert (numpy.isnan(got[name]) == numpy.isnan(want)).all(), name
            assert (numpy.isinf(got[name]) == numpy.isinf(want)).all(), name
            numpy.testing.assert_allclose(got[name], want, rtol=12 * 2.0**-23, atol=2.0**-125, err_msg=name)


@pytest.mark.parametrize("op", ["Max", "Min"])
def test_maxima_propagate_nan_from_both_sides(compile, tmp_path, op):
    model = Model()
    a, b = model.input("a", "f32", [14, 14]), model.input("b", "f32", [14, 14])
    model.output(model.node(op, [a, b]))
    x, y = numpy.meshgrid(SPECIAL, SPECIAL)
    expected = {"Max": numpy.maximum, "Min": numpy.minimum}[op](x, y)
    assert_same(run_module(compile(model.write(tmp_path)), {"a": x, "b": y}), {model.outputs[0]: expected})


def reduced(model, op, x, axes, **attributes):
    return model.node(op, [x, model.constant(numpy.array(axes))], **attributes)


ROWS = {"ReduceSum": numpy.sum, "ReduceProd": numpy.prod, "ReduceMax": numpy.max, "ReduceMin": numpy.min}


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_any_length_are_reduced(compile, tmp_path, target):
    """Of powers of two, of which sums and products are exact: a 0 would hide what is left out of a product."""
    rng, model, feeds, expected = numpy.random.default_rng(14), Model(), {}, {}
    for n in (1, 2, 3, 5, 8, 9, 16, 17, 33, 64, 70, 130):
        x = model.input(f"x{n}", "f32", [3, n])
        feeds[x] = rng.choice([-1, 1, 2, 0.5], (3, n)).astype(numpy.float32)
        for op, of in ROWS.items():
            y = reduced(model, op, x, [1], keepdims=0)
            model.output(y)
            expected[y] = of(feeds[x], axis=1)
    assert_same(run_module(compile(model.write(tmp_path), f"--target={target}"), feeds), expected)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin", "ReduceSum", "Softmax"])
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_propagate_nan_wherever_it_stands(compile, tmp_path, op, axis):
    model = Model()
    x = model.input("x", "f32", [18, 37])
    model.output(model.node(op, [x], axis=axis) if op == "Softmax" else reduced(model, op, x, [axis]))
    module = compile(model.write(tmp_path))
    for row, column in ((0, 0), (17, 36), (9, 31), (15, 33)):
        values = numpy.random.default_rng(1).uniform(-1, 1, (18, 37)).astype(numpy.float32)
        values[row, column] = numpy.nan
        result = next(iter(run_module(module, {"x": values}, threads=(1,)).values()))
        groups = numpy.isnan(result).any(axis=axis)
        assert groups.sum() == 1 and groups[column if axis == 0 else row]


# Integers

def test_division_by_zero_is_an_error_of_the_run_not_a_signal(compile, tmp_path):
    model = Model()
    a, b = model.input("a", "i32", [40]), model.input("b", "i32", [40])
    model.output(model.node("Div", [a, b]), model.node("Mod", [a, b]))
    with Module(compile(model.write(tmp_path))) as module:
        with module.context(2) as context:
            values = numpy.full(40, -(2**31), numpy.int32)
            divisors = numpy.full(40, -1, numpy.int32)
            quotient, remainder = context.run({"a": values, "b": divisors}).values()
            assert (quotient == -(2**31)).all() and (remainder == 0).all()
            divisors[37] = 0
            with pytest.raises(ModuleError) as refused:
                context.run({"a": values, "b": divisors})
            assert refused.value.status == "value"


def test_casts_of_what_does_not_fit_are_defined(compile, reference, tmp_path):
    x = numpy.array([0.0, -0.0, 0.9, -0.9, 255.5, 256, -1, 2**31, -(2**31), 2**63, -(2**63), 1e30, numpy.nan, numpy.inf,
                     -numpy.inf, 2**31 - 128, 16777217], numpy.float32)
    model, feeds = merged([one_op("Cast", [x], to=to) for to in ("i32", "i64", "u8", "bool", "f32")])
    path = model.write(tmp_path)
    assert_same(run_module(compile(path), feeds), reference.run(model, path, feeds))


# Shapes that are known only at run time, and work that is shared

def normalising_network():
    model = Model()
    for name, largest in (("B", 9), ("T", 4000), ("C", 70)):
        model.dim(name, 1, 4, largest)
    x, scale = model.input("x", "f32", ["B", "T", "C"]), model.input("scale", "f32", ["T", 1])
    shift = model.input("shift", "f32", ["B", 1, "C"])
    scaled = model.node("Add", [model.node("Mul", [x, scale]), shift])
    total = reduced(model, "ReduceSum", scaled, [1], keepdims=1)
    largest = reduced(model, "ReduceMax", model.node("Sub", [scaled, total]), [0, 2])
    chosen = model.node("Where", [model.node("Greater", [x, scale]), x, shift])
    counted = reduced(model, "ReduceSum", model.node("Cast", [model.node("Less", [x, shift])], to="i64"), [0, 1])
    model.output(scaled, total, largest, chosen, counted, model.node("ArgMax", [x], axis=1))
    return model


@pytest.mark.optimised_here
@pytest.mark.parametrize("extents", [(1, 1, 1), (2, 17, 3), (9, 4000, 1), (1, 2500, 70), (3, 5, 33)], ids=str)
def test_extents_known_at_run_time(compile, tmp_path, extents):
    """Integers: sums are exact in any order."""
    model, rng = normalising_network(), numpy.random.default_rng(7)
    B, T, C = extents
    feeds = {name: rng.integers(-3, 4, shape).astype(numpy.float32)
             for name, shape in (("x", (B, T, C)), ("scale", (T, 1)), ("shift", (B, 1, C)))}
    assert_same(run_module(compile(model.write(tmp_path)), feeds), model.onnx_run(feeds))


def test_activations_move_into_the_kernel_before(rnncc, compile, reference, tmp_path):
    model = Model()
    x = model.input("x", "f32", [3, 50])
    y = model.node("Tanh", [model.node("Add", [x, model.input("b", "f32", [50])])])
    y = model.node("Clip", [y, model.constant(numpy.float32(-0.5)), model.constant(numpy.float32(0.25))])
    model.output(model.node("LeakyRelu", [y], alpha=0.5))
    path = model.write(tmp_path)
    folder = tmp_path / "c"
    assert rnncc(path, "--emit=c", "-o", folder).returncode == 0
    calls = re.findall(r"^  k\d+_\w+\(", (folder / "network.c").read_text(), re.MULTILINE)
    assert calls == ["  k0_elementwise("]
    rng = numpy.random.default_rng(3)
    feeds = {"x": rng.uniform(-2, 2, (3, 50)).astype(numpy.float32), "b": rng.uniform(-1, 1, 50).astype(numpy.float32)}
    expected = reference.run(model, path, feeds)[model.outputs[0]]
    numpy.testing.assert_array_max_ulp(run_module(compile(path), feeds)[model.outputs[0]], expected, 4)
