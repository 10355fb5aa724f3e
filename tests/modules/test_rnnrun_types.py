# SPDX-License-Identifier: MIT
"""rnnrun reads and writes every element type: as .npy, raw, printed, filled and verified."""
import numpy
import pytest

from support.dtypes import ML_DTYPES, is_float, limits
from support.model_builder import TYPES, Model

VALUES = {"bool": [0, 1, 1], "f16": [6e-8, -65504, 0.5]}


def values_of(dtype):
    kind = TYPES[dtype][0]
    if dtype in VALUES:
        return numpy.array(VALUES[dtype], kind)
    return numpy.array([limits(dtype).min, limits(dtype).max, 1], kind)


@pytest.fixture(scope="module")
def module(compile, tmp_path_factory):
    """An output y_<type> for each input x_<type>, a copy."""
    model = Model()
    for dtype in TYPES:
        model.output(*[model.node("Identity", [model.input(f"x_{dtype}", dtype, [3])], [f"y_{dtype}"])])
    return compile(model.write(tmp_path_factory.mktemp("types")))


def inputs(folder, raw=False):
    for dtype in TYPES:
        values = values_of(dtype)
        if raw:
            values.tofile(folder / f"{dtype}.bin")
            yield from ("--input", f"x_{dtype}=3x{dtype}=@{folder}/{dtype}.bin")
        else:
            numpy.save(folder / f"{dtype}.npy", values)
            yield from ("--input", f"x_{dtype}=@{folder}/{dtype}.npy")


@pytest.mark.parametrize("raw", [False, True], ids=["npy", "raw"])
def test_every_type_goes_in_and_out(rnnrun, module, tmp_path, raw):
    outputs = [word for dtype in TYPES for word in ("--output", f"y_{dtype}=@{tmp_path}/y_{dtype}.npy")]
    done = rnnrun("run", module, *inputs(tmp_path, raw), *outputs)
    assert (done.returncode, done.stderr) == (0, "")
    for dtype in TYPES:
        result = numpy.load(tmp_path / f"y_{dtype}.npy")
        kind = numpy.dtype(TYPES[dtype][0])
        assert result.dtype == (numpy.dtype(f"V{kind.itemsize}") if dtype in ML_DTYPES else kind), dtype
        assert result.tobytes() == values_of(dtype).tobytes(), dtype


def test_numbers_are_printed_as_what_they_are(rnnrun, module, tmp_path):
    lines = rnnrun("run", module, *inputs(tmp_path)).stdout.splitlines()
    for line, dtype in zip(lines, TYPES, strict=True):
        name, shown = line.split(": ")
        assert name == f"y_{dtype} {dtype} 3"
        expected = [f"{float(v):.6g}" if is_float(dtype) else str(int(v)) for v in values_of(dtype)]
        assert shown.split() == expected


def test_verify_sees_one_wrong_element_of_any_type(rnnrun, module, tmp_path):
    given = list(inputs(tmp_path))
    for dtype in TYPES:
        numpy.save(tmp_path / "expected.npy", values_of(dtype))
        good = rnnrun("verify", module, *given, "--expect", f"y_{dtype}=@{tmp_path}/expected.npy")
        wrong = values_of(dtype)
        wrong[2] = 0
        numpy.save(tmp_path / "expected.npy", wrong)
        bad = rnnrun("verify", module, *given, "--expect", f"y_{dtype}=@{tmp_path}/expected.npy")
        assert (good.returncode, bad.returncode) == (0, 1), (dtype, good.stderr, bad.stdout)


def test_random_inputs_of_every_type(rnnrun, module):
    lines = rnnrun("run", module, *[word for dtype in TYPES for word in ("--input", f"x_{dtype}=random:3")]).stdout
    for line in lines.splitlines():
        numbers = [float(word) for word in line.split(": ")[1].split()]
        assert all(-1 <= number <= 1 for number in numbers) and any(numbers), line
