# SPDX-License-Identifier: MIT
"""rnnrun --weights: weights of a safetensors file, by their names, before the runs; and files that do not fit."""
import json
import random
import struct

import numpy
import pytest
import safetensors.numpy

from support import amount
from support.model_builder import Model
from support.refusal import safetensors_bytes


def layer(seed):
    rng = numpy.random.default_rng(seed)
    return {name: rng.standard_normal(shape).astype(numpy.float32) for name, shape in {"w": (5, 3), "b": (3,)}.items()}


@pytest.fixture
def module(compile, tmp_path):
    """tanh(x w + b), its weights, and what it was compiled with."""
    model = Model("layer")
    weights = layer(1)
    product = model.node("MatMul", [model.input("x", "f32", [2, 5]), model.constant(weights["w"], "w")])
    model.output(model.node("Tanh", [model.node("Add", [product, model.constant(weights["b"], "b")])], ["y"]))
    numpy.save(tmp_path / "x.npy", numpy.linspace(-1, 1, 10, dtype=numpy.float32).reshape(2, 5))
    return compile(model.write(tmp_path), "--weights=mutable")


def expected(folder, weights):
    return numpy.tanh(numpy.load(folder / "x.npy") @ weights["w"] + weights["b"])


def run(rnnrun, module, folder, file, verb="run", *words, **options):
    inputs = ["--input", f"x=@{folder / 'x.npy'}"]
    return rnnrun(verb, module, "--weights", file, *inputs, *words, **options)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "new.safetensors"
    safetensors.numpy.save_file(layer(2), path, {"made": "for \"this\" test"})
    return path


def test_runs_have_the_weights_of_the_file(rnnrun, module, tmp_path, file):
    done = run(rnnrun, module, tmp_path, file, "run", "--output", f"y=@{tmp_path / 'y.npy'}")
    assert done.returncode == 0, done.stderr
    assert numpy.allclose(numpy.load(tmp_path / "y.npy"), expected(tmp_path, layer(2)), atol=1e-6)
    numpy.save(tmp_path / "due.npy", expected(tmp_path, layer(2)))
    for verb, words in (("verify", ["--expect", f"y=@{tmp_path / 'due.npy'}"]), ("bench", ["--runs", "3"]), ("profile", ["--runs", "3"])):
        done = run(rnnrun, module, tmp_path, file, verb, *words)
        assert done.returncode == 0, done.stdout + done.stderr


def test_weights_that_the_file_lacks_stay(rnnrun, module, tmp_path):
    path = tmp_path / "some.safetensors"
    safetensors.numpy.save_file({"b": layer(2)["b"]}, path)
    done = run(rnnrun, module, tmp_path, path, "run", "--output", f"y=@{tmp_path / 'y.npy'}")
    assert done.returncode == 0, done.stderr
    assert numpy.allclose(numpy.load(tmp_path / "y.npy"), expected(tmp_path, {"w": layer(1)["w"], "b": layer(2)["b"]}), atol=1e-6)


@pytest.mark.every_case
@pytest.mark.parametrize("arrays, told", [
    ({"other": numpy.zeros(3, numpy.float32)}, "no weight `other`; expected one of: w, b"),
    ({"w": numpy.zeros((3, 5), numpy.float32)}, "`w`: expected the shape 5x3, found 3x5"),
    ({"w": numpy.zeros(15, numpy.float32)}, "`w`: expected the shape 5x3, found 15"),
    ({"b": numpy.zeros(3, numpy.float16)}, "`b`: expected f32, found f16"),
    ({"b": numpy.zeros(3, numpy.complex64)}, "dtype \"C64\" is none of rnncc's"),
])
def test_weights_that_do_not_fit_are_refused(rnnrun, module, tmp_path, arrays, told):
    path = tmp_path / "bad.safetensors"
    safetensors.numpy.save_file(arrays, path)
    done = run(rnnrun, module, tmp_path, path)
    assert done.returncode == 2 and told in done.stderr, done.stderr
    assert done.stdout == ""


B = {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}


@pytest.mark.every_case
@pytest.mark.parametrize("content, told", [
    (b"", "expected a header of 0 bytes, found 0"),
    (b"\0\0\0", "expected a header of 0 bytes, found 0"),
    (struct.pack("<Q", 2**40) + b"{}", "expected a header of 1099511627776 bytes, found 2"),
    (safetensors_bytes(b"[]"), "byte 0 of the header: expected `{`"),
    (safetensors_bytes(b'{"b'), "expected `\"`"),
    (safetensors_bytes(b'{"b": 3}'), "expected `{`"),
    (safetensors_bytes(b'{} 1'), "expected its end"),
    (safetensors_bytes({"b": B}, b"0" * 11), "its data are said to be bytes 0 to 12; the file has 11"),
    (safetensors_bytes({"b": {**B, "data_offsets": [12, 0]}}, b"0" * 12), "bytes 12 to 0"),
    (safetensors_bytes({"b": {**B, "shape": [4]}}, b"0" * 12), "its shape needs 16 bytes of data, it has 12"),
    (safetensors_bytes({"b": {**B, "shape": [1] * 9}}, b"0" * 12), "rank above 8"),
    (safetensors_bytes({"b": {**B, "shape": [-3]}}, b"0" * 12), "expected a number"),
    (safetensors_bytes({"b": {**B, "shape": [10**19]}}, b"0" * 12), "expected a smaller number"),
    (safetensors_bytes({"b": {"dtype": "F32", "shape": [3]}}, b"0" * 12), "dtype, shape and data_offsets, each once"),
    (safetensors_bytes({"b": {**B, "more": 1}}, b"0" * 12), "dtype, shape and data_offsets, each once"),
    (safetensors_bytes(b'{"\\x": 1}'), "an escaped character"),
    (safetensors_bytes('{{"b": {}, "b": {}}}'.format(json.dumps(B), json.dumps({**B, "data_offsets": [12, 24]})).encode(), b"0" * 24),
     "weight `b` is there twice"),
    (safetensors_bytes({"b": B, "w": {**B, "data_offsets": [8, 20]}}, b"0" * 20),
     "`w`: its data begins at byte 8, inside the data before it, which ends at 12"),
    (safetensors_bytes({"w": {**B, "data_offsets": [0, 12]}, "b": B}, b"0" * 12), "begins at byte 0, inside the data before it"),
    (safetensors_bytes({"b": {**B, "data_offsets": [4, 16]}}, b"0" * 16),
     "`b`: its data begins at byte 4, with a gap after the data before it, which ends at 0"),
    (safetensors_bytes({"b": B}, b"0" * 16), "4 bytes after the last tensor belong to none"),
])
def test_files_that_are_not_whole_are_refused(rnnrun, module, tmp_path, content, told):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    done = run(rnnrun, module, tmp_path, path)
    assert done.returncode == 2 and told in done.stderr, done.stderr


def test_no_file_and_no_weights_are_told(rnnrun, compile, module, tmp_path, file, root):
    done = run(rnnrun, module, tmp_path, tmp_path / "none")
    assert done.returncode == 2 and "No such file" in done.stderr
    done = run(rnnrun, module, tmp_path, tmp_path)
    assert done.returncode == 2 and "not a regular file" in done.stderr
    done = rnnrun("bench", compile(root / "models" / "digits_rnn.json"), "--weights", file, "--runs", "1")
    assert done.returncode == 3 and "compile it with --weights=mutable" in done.stderr


def test_damaged_files_end_in_words(rnnrun, module, tmp_path, file):
    whole, rng, path = file.read_bytes(), random.Random(7), tmp_path / "damaged.safetensors"
    for _ in range(400 if amount.long_tests() else 40):
        damaged = bytearray(whole[:rng.randrange(len(whole))] if rng.random() < 0.3 else whole)
        for _ in range(rng.randrange(1, 4)):
            if damaged:
                damaged[rng.randrange(min(len(damaged), 200))] = rng.randrange(256)
        path.write_bytes(damaged)
        done = run(rnnrun, module, tmp_path, path, text=False)
        assert done.returncode in (0, 2), (done.returncode, bytes(damaged))
        assert bool(done.stderr) == (done.returncode == 2)
