# SPDX-License-Identifier: MIT
"""Every element type is moved bit for bit: numbers, NaN of any payload, and the greatest integers."""
import numpy
import pytest

from support.emitted import TARGETS, run_module
from support.dtypes import BY_NAME, bits_of, limits
from support.model_builder import TYPES, Model

SHAPE = (3, 37)


def any_bits(rng, dtype):
    size = numpy.dtype(TYPES[dtype][0]).itemsize
    if dtype == "bool":
        return rng.integers(0, 2, SHAPE).astype(numpy.bool_)
    return rng.integers(0, 256, (SHAPE[0], SHAPE[1] * size)).astype(numpy.uint8).view(TYPES[dtype][0])




def without_bits_above(array, dtype):
    """ml_dtypes writes them as 0, and has no number for others."""
    bits = BY_NAME[dtype].bits
    return (array.view(numpy.uint8) & (2**bits - 1)).view(array.dtype) if bits < 8 else array


def pad(array):
    padded = numpy.zeros((SHAPE[0] + 2, SHAPE[1] + 3), array.dtype)
    padded[1:-1, 2:-1] = array
    return padded


# op: its effect on an array, and its node
MOVES = {
    "Transpose": (lambda x: x.T, lambda model, x, _: model.node("Transpose", [x])),
    "Slice": (lambda x: x[::-1, 1:36:3], lambda model, x, ints: model.node(
        "Slice", [x, ints([-1, 1]), ints([-9, 36]), ints([0, 1]), ints([-1, 3])])),
    "Concat": (lambda x: numpy.concatenate([x, x], 1), lambda model, x, _: model.node("Concat", [x, x], axis=1)),
    "Split": (lambda x: x[:, 20:], lambda model, x, ints: model.node("Split", [x, ints([20, 17])], 2, axis=1)[1]),
    "Gather": (lambda x: x[:, [5, 36, 0]], lambda model, x, ints: model.node("Gather", [x, ints([5, -1, 0])], axis=1)),
    "Pad": (pad, lambda model, x, ints: model.node("Pad", [x, ints([1, 2, 1, 1])])),
    "Pad wrap": (lambda x: numpy.pad(x, ((0, 2), (1, 3)), "wrap"),
                 lambda model, x, ints: model.node("Pad", [x, ints([0, 1, 2, 3])], mode="wrap")),
    "Expand": (lambda x: numpy.stack([x] * 4), lambda model, x, ints: model.node("Expand", [x, ints([4, 3, 37])])),
    "Reshape": (lambda x: x.reshape(37, 3), lambda model, x, ints: model.node("Reshape", [x, ints([37, -1])])),
    "Identity": (lambda x: x, lambda model, x, _: model.node("Identity", [x])),
    "Where": (lambda x: numpy.where(numpy.arange(37) % 2 == 0, x, x[:1]), lambda model, x, ints: model.node(
        "Where", [model.constant(numpy.arange(37) % 2 == 0), x, model.node("Slice", [x, ints([0]), ints([1])])])),
}


@pytest.mark.parametrize("target", TARGETS)
def test_every_type_is_moved_bit_for_bit(compile, tmp_path, target):
    model, feeds, expected = Model(), {}, {}
    rng = numpy.random.default_rng(17)
    for dtype in TYPES:
        x = feeds[dtype] = any_bits(rng, dtype)
        model.input(dtype, dtype, SHAPE)
        for move, build in MOVES.values():
            output = build(model, dtype, lambda values: model.constant(numpy.array(values, numpy.int64)))
            model.output(output)
            expected[output] = move(x)
    got = run_module(compile(model.write(tmp_path), f"--target={target}"), feeds, threads=(1, 2))
    for name, array in expected.items():
        assert got[name].dtype == array.dtype and got[name].shape == array.shape
        assert bits_of(got[name]) == bits_of(array), f"{name} of {array.dtype}"


@pytest.mark.optimised_here
def test_constants_of_every_type_are_read_inline_and_from_safetensors(compile, tmp_path):
    """Small constants are in the JSON, others in the file of weights: both keep their bits."""
    rng = numpy.random.default_rng(18)
    model, expected = Model(), {}
    model.output(model.node("Identity", [model.input("x", "f32", [1])]))
    for dtype, (kind, _) in TYPES.items():
        ends = [limits(dtype).min, limits(dtype).max] if dtype != "bool" else []
        small = numpy.array(ends + [1, 1 if dtype == "f8e8m0" else 0], kind)
        for array in (small, without_bits_above(any_bits(rng, dtype), dtype)):
            output = model.node("Identity", [model.constant(array)])
            model.output(output)
            expected[output] = array
    got = run_module(compile(model.write(tmp_path)), {"x": numpy.zeros(1, numpy.float32)}, threads=(1,))
    for name, array in expected.items():
        assert bits_of(got[name]) == bits_of(array), f"{name} of {array.dtype}"


@pytest.mark.parametrize("data, wrong", [(("u64", 2**64), "expected"), (("u64", -1), "expected"), (("i8", 128), "127"),
                                         (("u16", -1), "65535"), (("f16", 65520.0), "past the range of f16"),
                                         (("bf16", 3.4e38), "past the range of bf16"), (("i4", 8), "7"), (("u2", 4), "3"),
                                         (("f8e4m3fn", 465), "past the range of f8e4m3fn"), (("f4e2m1", 7), "past"),
                                         (("f8e5m2fnuz", '"inf"'), "past"), (("f4e2m1", '"nan"'), "past"),
                                         (("f8e8m0", 0), "past"), (("f8e8m0", -1), "past")], ids=str)
def test_a_constant_that_its_type_does_not_hold_is_refused(rnncc, tmp_path, data, wrong):
    dtype, value = data
    path = tmp_path / "model.json"
    path.write_text('{"format": "rnncc", "version": 1, "name": "m",'
                    ' "inputs": [{"name": "x", "dtype": "f32", "shape": [1]}],'
                    ' "outputs": ["y"], "constants": {"c": {"dtype": "%s", "shape": [1], "data": [%s]}},'
                    ' "nodes": [{"op": "Identity", "name": "n", "inputs": ["c"], "outputs": ["y"]}]}' % (dtype, value))
    done = rnncc(path, "-o", tmp_path / "m.so")
    assert done.returncode == 2 and "constants.c.data[0]" in done.stderr and wrong in done.stderr, done.stderr
