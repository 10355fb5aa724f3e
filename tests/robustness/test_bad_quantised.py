# SPDX-License-Identifier: MIT
"""Quantised models whose scales, zero points and axes are none are told with the node, the input and what was expected, in
JSON and in ONNX; all else that they say is compiled."""
import json

import numpy
import pytest

from support.model_builder import TYPES, Model

DENORMAL, TINY = numpy.float32(1e-40), numpy.float32(2.0**-126)
IMAGE, WEIGHTS = numpy.zeros((1, 2, 5, 5), numpy.uint8), numpy.ones((3, 2, 1, 1), numpy.int8)


def array(value, dtype="f32"):
    return numpy.asarray(value, TYPES[dtype][0])


def quantise(scale, zero=array(0, "u8"), **attributes):
    return "QuantizeLinear", [numpy.zeros((2, 3), numpy.float32), array(scale), zero], attributes


def dequantise(scale, zero=None, x="i8", **attributes):
    return "DequantizeLinear", [array(numpy.zeros((2, 3)), x), array(scale), zero], attributes


def convolve(x_scale=0.5, w_scale=0.25, y_scale=1.0, w_zero=array(0, "i8"), bias=None):
    return "QLinearConv", [IMAGE, array(x_scale), array(3, "u8"), WEIGHTS, array(w_scale), w_zero, array(y_scale),
                           array(3, "u8"), bias], {}


def multiply(a_scale=0.5, b_scale=0.25, y_scale=1.0):
    return "QLinearMatMul", [array(numpy.zeros((2, 3)), "u8"), array(a_scale), array(0, "u8"), array(numpy.ones((3, 4)), "i8"),
                             array(b_scale), array(0, "i8"), array(y_scale), array(0, "u8")], {}


POSITIVE = "expected a number above 0 that f32 holds without losing digits, from 1.17549e-38 on"
BAD = {
    "a scale of zero": (quantise(0), "input 1 has the scale 0 at position 0; " + POSITIVE),
    "a scale below zero": (quantise(-0.5), "input 1 has the scale -0.5 at position 0; " + POSITIVE),
    "a scale that is no number": (quantise(numpy.nan), "input 1 has the scale nan at position 0; " + POSITIVE),
    "a scale without end": (quantise(numpy.inf), "input 1 has the scale inf at position 0; " + POSITIVE),
    "a denormal scale": (quantise(DENORMAL), "at position 0; " + POSITIVE),
    "one of several": (quantise([1, 1, 0], array([0, 0, 0], "u8"), axis=1), "input 1 has the scale 0 at position 2; "),
    "of what is dequantised": (dequantise([1, -2, 1], axis=1), "input 1 has the scale -2 at position 1; "),
    "of a bias": (dequantise(-1, x="i32"), "input 1 has the scale -1 at position 0; "),
    "of blocks": (quantise(numpy.zeros((1, 3)), None, axis=0, block_size=2), "input 1 has the scale 0 at position 0; "),
    "of an image": (convolve(x_scale=0), "input 1 has the scale 0 at position 0; "),
    "of a channel": (convolve(w_scale=[1, numpy.nan, 1]), "input 4 has the scale nan at position 1; "),
    "of a result": (convolve(y_scale=-1), "input 6 has the scale -1 at position 0; "),
    "of rows": (multiply(a_scale=[1, 0]), "input 1 has the scale 0 at position 1; "),
    "of columns": (multiply(b_scale=[1, 1, 1, -1]), "input 4 has the scale -1 at position 3; "),
    "of a product": (multiply(y_scale=DENORMAL), "input 6 has the scale 9.99995e-41 at position 0; "),
    "more scales than channels": (convolve(w_scale=[1, 1, 1, 1]), "one for each of axis 0 of `x3` i8[3, 2, 1, 1], found"),
    "fewer zero points": (convolve(w_zero=array([0, 0], "i8")), "input 5 must be one number or one for each of axis 0"),
    "a scale for each of another axis": (quantise([1, 1], axis=1), "input 1 must be one number or one for each of axis 1"),
    "an axis that is not there": (quantise([1, 1], axis=2), "input 1 must be one number or one for each of axis 2"),
    "an axis far below": (dequantise([1, 1], axis=-4), "input 1 must be one number or one for each of axis -4"),
    "a zero point of another type": (dequantise(1, array(0, "u8")), "inputs 0 and 2 of DequantizeLinear must have one type"),
    "several scales of an image": (convolve(x_scale=[1, 2]), "input 1 must be a single number"),
    "a bias of another length": (convolve(bias=array([1, 2], "i32")), "input 8 must be the bias, [M]"),
    "a negative block": (quantise(1, block_size=-2), "`block_size` is -2; expected 0 or more"),
}
GOOD = {
    "the least scale": quantise(TINY), "the largest": quantise(3e38), "of a sum that is always zero": dequantise(0, x="i32"),
    "bounds that cross": ("Clip", [array(numpy.zeros((2, 3)), "u8"), array(9, "u8"), array(3, "u8")], {}),
}


def model_of(op, arrays, attributes):
    """The first array is the input, the others are constants."""
    model, names = Model(), []
    for k, value in enumerate(arrays):
        dtype = None if value is None else next(name for name, (kind, _) in TYPES.items() if value.dtype == kind)
        names.append("" if value is None else model.constant(value, f"x{k}") if k else model.input("x0", dtype, value.shape))
    while not names[-1]:
        names.pop()
    model.output(model.node(op, names, **attributes))
    return model


def written(folder, model, form):
    if form == "json":
        return model.write(folder)
    path = folder / "model.onnx"
    path.write_bytes(model.onnx().SerializeToString())
    return path


@pytest.mark.parametrize("form", ["json", "onnx"])
@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told(rnncc, tmp_path, name, form):
    node, said = BAD[name]
    path = written(tmp_path, model_of(*node), form)
    done = rnncc(path, "-o", tmp_path / "m.so")
    assert done.returncode in (2, 3) and "bug" not in done.stderr, done.stderr
    assert said in done.stderr and str(path) in done.stderr, done.stderr
    assert not (tmp_path / "m.so").exists()


@pytest.mark.parametrize("form", ["json", "onnx"])
@pytest.mark.parametrize("name", GOOD)
def test_what_is_possible_is_compiled(rnncc, tmp_path, name, form):
    done = rnncc(written(tmp_path, model_of(*GOOD[name]), form), "-o", tmp_path / "m.so")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("dtype", "number"), [("i8", 128), ("i8", -129), ("u8", 256), ("u8", -1)])
def test_a_zero_point_that_its_type_does_not_hold_is_told(rnncc, tmp_path, dtype, number):
    path = written(tmp_path, model_of(*quantise(1, array(7, dtype))), "json")
    model = json.loads(path.read_text())
    model["constants"]["x2"]["data"] = [number]
    path.write_text(json.dumps(model))
    done = rnncc(path, "-o", tmp_path / "m.so")
    assert done.returncode == 2, done.stderr
    assert "constants.x2.data[0]" in done.stderr and f"found {number}" in done.stderr, done.stderr
