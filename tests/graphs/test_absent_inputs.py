# SPDX-License-Identifier: MIT
"""Each operator whose kernel takes element-wise nodes as its epilogue runs with each of its optional inputs absent and
present, and so do the nodes of the epilogue; side by side in one module. That each is compiled is
robustness/test_operator_forms.py's; Clip alone in every place, test_absent_bounds.py's."""
import itertools
import re

import numpy
import pytest

from conftest import ROOT
from support.convolutional import signs, whole
from support.emitted import assert_same, run_module
from support.model_builder import Model
from support.op_rows import op_rows

OWN = {"ConvIntegerToFloat"}  # of no model: ConvInteger becomes it
BOUNDS = [(None, 5), (-5, None), (None, None), (-5, 5), ()]
ROWS, DEPTH, COLUMNS = 6, 32, 20


def bytes_of(rng, dtype, *shape):
    return rng.integers(0, 8, shape).astype(dtype)


def scale(power):
    return numpy.float32(2.0**power)


def inputs_of(op, rng):
    """The type of the first input, then the others, all as if they were there: numbers whose sums are exact."""
    product = "u8", bytes_of(rng, "i1", DEPTH, COLUMNS)
    zeros = [numpy.uint8(3), numpy.int8(2)]
    columns = whole(rng, COLUMNS)
    return {
        "Clip": ["rows", numpy.float32(-4), numpy.float32(3)],
        "Conv": ["image", signs(rng, 16, 16, 3, 3), whole(rng, 16)],
        "ConvTranspose": ["image", signs(rng, 16, 4, 2, 2), whole(rng, 4)],
        "Gemm": ["rows", signs(rng, DEPTH, COLUMNS), columns],
        "LayerNormalization": ["ones", whole(rng, DEPTH), whole(rng, DEPTH)],
        "MatMulInteger": [*product, *zeros],
        "MatMulIntegerToFloat": [*product, scale(-1), scale(-2), *zeros, columns],
        "QGemm": ["u8", scale(-1), zeros[0], product[1], scale(-2), zeros[1], columns.astype("i4"), scale(2), numpy.uint8(9)],
        "QLinearConv": ["u8 image", scale(-1), zeros[0], bytes_of(rng, "i1", 16, 16, 3, 3), scale(-1), zeros[1], scale(3),
                        numpy.uint8(9), columns[:16].astype("i4")],
    }[op]


ATTRIBUTES = {"ConvTranspose": {"strides": [2, 2]}, "LayerNormalization": {"epsilon": 0.0}, "Conv": {"pads": [1, 1, 1, 1]},
              "QLinearConv": {"pads": [1, 1, 1, 1]}}


def feeds_of(rng):
    half = numpy.repeat(numpy.float32([1, -1]), DEPTH // 2)  # of mean 0 and variance 1, in any order
    return {"rows": whole(rng, ROWS, DEPTH), "image": whole(rng, 2, 16, 9, 7), "u8": bytes_of(rng, "u1", ROWS, DEPTH),
            "u8 image": bytes_of(rng, "u1", 2, 16, 9, 7), "ones": numpy.stack([rng.permutation(half) for _ in range(ROWS)])}


def forms(row):
    """Which inputs are there, in all ways; of QGemm a zero of the result with its scale alone."""
    places = [[True, False] if optional else [True] for optional in row.optional]
    return [form for form in itertools.product(*places) if row.name != "QGemm" or form[7] or not form[8]]


def takers():
    """The families of kernels that take an epilogue."""
    found = set()
    for path in (ROOT / "compiler" / "kernels").rglob("family_*.c"):
        for name, fields in re.findall(r"KernelFamily family_(\w+) = \{(.*?)\};", path.read_text(), re.DOTALL):
            found |= {name} if ".takes_epilogue" in fields else set()
    return found


@pytest.fixture(scope="module")
def hosts():
    families = takers()
    assert len(families) > 6
    return [row for row in op_rows(ROOT).values() if row.family in families and any(row.optional) and row.name not in OWN]


def in_f32(model, row, form, y):
    """The result as what an epilogue may follow: integers become floats by a scale, and by no zero where there may be none."""
    if row.name == "MatMulInteger":
        return model.node("Mul", [model.node("Cast", [y], to="f32"), model.constant(scale(-3))])
    if row.name == "QLinearConv" or (row.name == "QGemm" and form[7]):
        zero = numpy.uint8(9) if row.name == "QLinearConv" or form[8] else None
        return model.node("DequantizeLinear", [y, model.constant(scale(1)), zero if zero is None else model.constant(zero)])
    return y


def add_host(model, row, form, inputs, bounds):
    given = [inputs[0], *(model.constant(array) for array in inputs[1:])]
    y = model.node(row.name, [name if there else None for name, there in zip(given, form, strict=True)],
                   **ATTRIBUTES.get(row.name, {}))
    steps = model.node("Neg", [in_f32(model, row, form, y)])
    model.output(model.node("Clip", [steps, *(bound and model.constant(numpy.float32(bound)) for bound in bounds)]))


def test_kernels_with_epilogues_run_without_optional_inputs(reference, compile, tmp_path, hosts):
    rng, model = numpy.random.default_rng(8), Model()
    feeds = feeds_of(rng)
    for name, array in feeds.items():
        model.input(name, {"f4": "f32", "u1": "u8"}[array.dtype.str[1:]], list(array.shape))
    cases = [(row, form) for row in hosts for form in forms(row)]
    for k, (row, form) in enumerate(cases):
        add_host(model, row, form, inputs_of(row.name, rng), BOUNDS[k % len(BOUNDS)])
    assert len(cases) > 25
    path = model.write(tmp_path)
    assert_same(run_module(compile(path, "--no-winograd"), feeds, threads=(1, 2)), reference.run(model, path, feeds))
