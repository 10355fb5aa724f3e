# SPDX-License-Identifier: MIT
"""Each call of the compiler to the system fails, one in each run: it does without, or ends with a reason. The output is
the old one or what it would have been, and nothing is left beside it."""
import itertools
import os

import numpy
import onnx
import pytest
from support.amount import long_tests
from support.preloaded import preloaded

EXIT_ENVIRONMENT = 5
STRIDE = 11  # of the calls that build a module, by default
OLD = b"old"
# The output is there before the summary on stdout, which is what fails; a temporary stays where it cannot be removed.
AFTERWARDS, REMOVALS = ["fflush"], ["remove", "unlink"]
CASES = [("digits_rnn.json", "--emit=h"), ("digits_rnn.json", "--emit=so"), ("digits_cnn.json", "--emit=so"), ("sum.onnx", "--emit=h")]


@pytest.fixture
def onnx_model(tmp_path):
    """Its weights are in a file of their own."""
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1024]) for name in "xy")
    weights = onnx.numpy_helper.from_array(numpy.arange(1024, dtype=numpy.float32), "w")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "w"], ["y"])], "sum", [x], [y], [weights])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "sum.onnx", save_as_external_data=True, location="sum.bin")
    return tmp_path / "sum.onnx"


def emptied(folder):
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    return folder


def failing_at(rnncc, command, number, library, tmp_path):
    """Of a run in which call `number` fails: how it ended, the name of the call (None: there are fewer), and the output."""
    output, failed = emptied(tmp_path / "out") / "output", tmp_path / "failed"
    output.write_bytes(OLD)
    failed.write_text("")
    faults = {"LD_PRELOAD": library, "FAIL_CALL": str(number), "FAILED_CALL": str(failed)}
    done = rnncc(*command, "-o", output, env={**os.environ, "TMPDIR": str(tmp_path / "temporary"), **faults})
    name = failed.read_text().split()
    return done, name[0] if name else None, output


def check(done, name, number, output, good, tmp_path):
    what = f"call {number}, {name}: exit {done.returncode}, {done.stderr}"
    if done.returncode == 0:
        assert output.read_bytes() == good, what
    else:
        assert done.returncode == EXIT_ENVIRONMENT and "error: " in done.stderr and "internal" not in done.stderr, what
        assert output.read_bytes() == OLD or name in AFTERWARDS, what
    if name not in REMOVALS:
        assert os.listdir(output.parent) == ["output"] and os.listdir(tmp_path / "temporary") == [], what


@pytest.mark.parametrize("model, emit", CASES, ids=[f"{model.split('.')[0]}-{emit[7:]}" for model, emit in CASES])
def test_any_call_may_fail(rnncc, root, onnx_model, tmp_path, model, emit):
    (tmp_path / "temporary").mkdir()
    library, command = preloaded("fail_call", tmp_path), (onnx_model if model == onnx_model.name else root / "models" / model, emit, "--target=x86-64-v3")
    assert rnncc(*command, "-o", tmp_path / "good").returncode == 0
    good, names = (tmp_path / "good").read_bytes(), set()
    stride = 1 if emit == "--emit=h" or long_tests() else STRIDE
    for number in itertools.count(1, stride):
        done, name, output = failing_at(rnncc, command, number, library, tmp_path)
        check(done, name, number, output, good, tmp_path)
        if name is None:
            break
        names.add(name)
    assert done.returncode == 0 and len(names) >= 5, names
