# SPDX-License-Identifier: MIT
"""Each call of the compiler to the system and each allocation fails, one in each run: it does without, or ends with a
reason. The output is the old one or what it would have been, and nothing is left beside it."""
import itertools
import os
import shutil

import numpy
import onnx
import pytest
from support.amount import long_tests
from support.preloaded import preloaded

pytestmark = pytest.mark.unsanitized  # a sanitizer must be loaded before any library that takes calls
EXIT_INVALID, EXIT_LIMIT, EXIT_ENVIRONMENT = 2, 4, 5
STRIDES = {"--emit=h": 3, "--emit=so": 17}  # by default
OLD = b"old"
# The output is there before the summary on stdout, which is what fails; a temporary stays where it cannot be removed.
AFTERWARDS, REMOVALS = ["fflush"], ["remove", "unlink", "allocation_of_a_library"]
NO_MEMORY = ("out of memory", "Cannot allocate memory")
CASES = [("digits_rnn.json", "--emit=h"), ("digits_rnn.json", "--emit=so"), ("digits_cnn.json", "--emit=so"), ("sum.onnx", "--emit=h"),
         ("sum.onnx", "--emit=so")]


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


def failing_at(rnncc, command, number, library, tmp_path, **more):
    """Of a run in which call `number` fails: how it ended, the name of the call (None: there are fewer), and the output."""
    output, failed = emptied(tmp_path / "out") / "output", tmp_path / "failed"
    output.write_bytes(OLD)
    failed.write_text("")
    faults = {"LD_PRELOAD": library, "FAIL_CALL": str(number), "FAILED_CALL": str(failed), **more}
    done = rnncc(*command, "-o", output, env={**os.environ, "TMPDIR": str(tmp_path / "temporary"), **faults})
    name = failed.read_text().split()
    return done, name[0] if name else None, output


def check(done, name, number, output, good, tmp_path):
    what = f"call {number}, {name}: exit {done.returncode}, {done.stderr}"
    if done.returncode == 0:
        assert output.read_bytes() == good, what
    else:
        assert "error: " in done.stderr and "internal" not in done.stderr, what
        assert done.returncode == EXIT_ENVIRONMENT or (done.returncode == EXIT_LIMIT and name.startswith("allocation")), what
        assert not name.startswith("allocation") or any(words in done.stderr for words in NO_MEMORY), what
        assert output.read_bytes() == OLD or name in AFTERWARDS, what
    if name not in REMOVALS:
        assert os.listdir(output.parent) == ["output"] and os.listdir(tmp_path / "temporary") == [], what


@pytest.mark.parametrize("what, least", [("call", 5), ("allocation", 2)], ids=["call", "allocation"])
@pytest.mark.parametrize("model, emit", CASES, ids=[f"{model.split('.')[0]}-{emit[7:]}" for model, emit in CASES])
def test_any_of_them_may_fail(rnncc, root, onnx_model, tmp_path, model, emit, what, least):
    (tmp_path / "temporary").mkdir()
    library = preloaded(f"fail_{what}", tmp_path)
    command = (onnx_model if model == onnx_model.name else root / "models" / model, emit, "--target=x86-64-v3")
    assert rnncc(*command, "-o", tmp_path / "good").returncode == 0
    good, names = (tmp_path / "good").read_bytes(), set()
    stride = 1 if long_tests() else STRIDES[emit]
    for number in itertools.count(1, stride):
        done, name, output = failing_at(rnncc, command, number, library, tmp_path)
        check(done, name, number, output, good, tmp_path)
        if name is None:
            break
        names.add(name)
    assert done.returncode == 0 and len(names) >= least, names


@pytest.mark.parametrize("name, words", [("mmap64", "cannot be read again"), ("pwrite64", "cannot be written")])
def test_what_clang_wrote_may_not_be_read_or_written(rnncc, root, tmp_path, name, words):
    """The object of a network, into which rnncc writes what calls need of the stack."""
    (tmp_path / "temporary").mkdir()
    library, said = preloaded("fail_call", tmp_path), ""
    command = (root / "models" / "digits_rnn.json", "--target=x86-64-v3")
    assert rnncc(*command, "-o", tmp_path / "good").returncode == 0
    for number in itertools.count(1):
        done, failed, output = failing_at(rnncc, command, number, library, tmp_path, FAIL_NAME=name)
        if failed is None:
            break
        if done.returncode:
            check(done, failed, number, output, (tmp_path / "good").read_bytes(), tmp_path)
        said += done.stderr
    assert done.returncode == 0 and f"network.o: error: {words}" in said, said


@pytest.mark.parametrize("model, weights", [("digits_cnn.json", "digits_cnn.safetensors"), ("sum.onnx", "sum.bin")])
def test_weights_may_be_cut_short_at_any_moment(rnncc, root, onnx_model, tmp_path, model, weights):
    """Before any call of the compiler the file loses its second half, while it is open, or read, or later."""
    (tmp_path / "temporary").mkdir()
    for name in {model, weights} - set(os.listdir(tmp_path)):
        shutil.copy(root / "models" / name, tmp_path)
    library, whole, codes = preloaded("fail_call", tmp_path), (tmp_path / weights).read_bytes(), set()
    command = (tmp_path / model, "--emit=h", "--target=x86-64-v3")
    assert rnncc(*command, "-o", tmp_path / "good").returncode == 0
    for number in itertools.count(1, 1 if long_tests() else 3):
        (tmp_path / weights).write_bytes(whole)
        done, name, output = failing_at(rnncc, command, number, library, tmp_path, CUT_FILE=str(tmp_path / weights))
        if name is None:
            break
        codes.add(done.returncode)
        assert done.returncode in (0, EXIT_INVALID, EXIT_ENVIRONMENT), done
        if done.returncode == 0:
            assert output.read_bytes() == (tmp_path / "good").read_bytes()
        else:
            assert f"{weights}" in done.stderr and "internal" not in done.stderr and output.read_bytes() == OLD, done.stderr
    assert codes >= {0, EXIT_INVALID}
