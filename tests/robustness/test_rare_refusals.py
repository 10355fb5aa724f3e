# SPDX-License-Identifier: MIT
"""Refusals that only an unusual model or option leads to: each with its code and its words."""
import json
import math
import os

import numpy
import pytest
from onnx import helper

from support.onnx_files import F32, model_of, write
from support.refusal import refused, small_model


def gradient_of_cross_entropy(scores, kept, *, constant):
    """Of scores of this shape, and all else of another."""
    shapes = {"x": scores, "targets": kept, "maxima": kept, "sums": kept, "d": kept}
    types = {name: "i64" if name == "targets" else "f32" for name in shapes}
    given = {"inputs": [{"name": name, "dtype": types[name], "shape": shape} for name, shape in shapes.items()]}
    if constant:
        given = {"inputs": [{"name": "unread", "dtype": "f32", "shape": [1]}],
                 "constants": {name: {"dtype": types[name], "shape": shape, "data": [1] * math.prod(shape)}
                               for name, shape in shapes.items()}}
    return small_model() | {"dims": {}, "constants": {}, "nodes": [
        {"name": "n", "op": "CrossEntropyGradient", "inputs": list(shapes), "outputs": ["y"]}]} | given


@pytest.mark.parametrize("scores, kept", [([5, 37], [1]), ([2, 3, 0], [1]), ([5], [5])], ids=str)
def test_what_a_gradient_reads_is_of_its_scores_places(rnncc, tmp_path, scores, kept):
    """JSON names the operator that only training makes: nothing beside its operands is read, in the module or in rnncc."""
    path = tmp_path / "model.json"
    for constant in (False, True):
        path.write_text(json.dumps(gradient_of_cross_entropy(scores, kept, constant=constant)))
        refused(rnncc, tmp_path, path, 2, "model.json", "CrossEntropyGradient")


def lstm_with_weights_as_inputs(tmp_path):
    node = helper.make_node("LSTM", ["x", "w", "r"], ["", "y"], "cell", hidden_size=2)
    return write(tmp_path, model_of([node], {"x": (F32, [3, 1, 4]), "w": (F32, [1, 8, 4]), "r": (F32, [1, 8, 2])},
                                    {"y": (F32, None)}))


@pytest.mark.parametrize("precision, words", [("int8", "precision int8 needs a constant W and R"),
                                              ("int8-dynamic", "precision int8-dynamic needs a constant W")])
def test_a_precision_that_a_named_layer_cannot_have_is_refused(rnncc, tmp_path, precision, words):
    model = lstm_with_weights_as_inputs(tmp_path)
    done = rnncc(model, "-o", tmp_path / "out.so", f"--precision=cell={precision}")
    assert done.returncode == 3 and words in done.stderr, done.stderr


def test_samples_that_are_no_multiple_of_a_dim_are_refused(rnncc, tmp_path):
    model = small_model()
    model["dims"]["T"] = {"min": 2, "opt": 4, "max": 8, "multiple": 2}
    model["constants"]["c"] = {"dtype": "f32", "shape": [3, 2], "data": [1, 2, 3, 4, 5, 6]}
    model["nodes"][0]["op"] = "MatMul"
    (tmp_path / "model.json").write_text(json.dumps(model))
    numpy.save(tmp_path / "x.npy", numpy.ones((3, 3), numpy.float32))
    done = rnncc("quantize", tmp_path / "model.json", f"--data={tmp_path}/x.npy", "-o", tmp_path / "out.json")
    assert done.returncode == 2 and "input x has T = 3, which is no multiple of 2" in done.stderr, done.stderr


def test_a_layer_that_is_trained_has_a_known_input_size(rnncc, tmp_path):
    node = helper.make_node("LSTM", ["x", "w", "r"], ["", "last"], "cell", hidden_size=2)
    loss = helper.make_node("ReduceMean", ["last"], ["y"], keepdims=0)
    model = write(tmp_path, model_of([node, loss], {"x": (F32, [3, 1, "I"]), "w": (F32, [1, 8, "I"])}, {"y": (F32, None)},
                                     {"r": numpy.zeros((1, 8, 2), numpy.float32)}))
    done = rnncc(model, "--train", "-o", tmp_path / "out.so")
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("cell: error: the input size, axis 2 of W (`w`), must be known at compile time") == 1, done.stderr


OPTIONS = {
    "a frozen value of ragged lists": (["--freeze=x=[[1,2,3],[1,2]]"], 2, "a list of 2 where others of its depth have 3"),
    "a state that takes the only output": (["--state=x=y"], 2, "--state: no output is left; a module needs one"),
    "training of what has no loss": (["--train"], 2, "--train: expected an output that is one f32 number, the loss; found none"),
    "more threads than can be measured": (["tune", "--threads=1024"], 2, "--threads=1024: only"),
    "a loss that is no output": (["--train", "--loss=z"], 2, "--loss: the model has no output `z`"),
    "tuning of what has nothing to tune": (["tune"], 2, "the model has neither a convolution nor a recurrent layer to tune"),
    "tuning of convolutions where there is none": (["tune", "--only=conv"], 2, "the model has no convolution to tune"),
    "a target that this machine does not run": (["tune", "--target=aarch64-linux-gnu"], 3,
                                                "this machine cannot run aarch64"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_rare_option_is_refused(rnncc, tmp_path, name):
    options, code, words = OPTIONS[name]
    model = small_model() | {"dims": {}}
    model["inputs"][0]["shape"] = [2, 3]
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    verb = options[:1] if not options[0].startswith("-") else []
    done = rnncc(*verb, path, "-o", tmp_path / "out", *options[len(verb):])
    assert done.returncode == code and words in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("output, words", [("text", "it holds something else"), ("/dev/null", "expected a regular file")])
def test_records_are_appended_to_records_alone(rnncc, tmp_path, output, words):
    (tmp_path / "text").write_text("text")
    (tmp_path / "model.json").write_text(json.dumps(small_model()))
    done = rnncc("tune", tmp_path / "model.json", "-o", tmp_path / output)
    assert done.returncode == 2 and f"cannot append records: {words}" in done.stderr, done.stderr
    assert (tmp_path / "text").read_text() == "text"


@pytest.mark.unsanitized  # the checksum of the file comes first: 20 s, not optimised
def test_a_header_of_weights_past_its_limit_is_refused(rnncc, tmp_path):
    """A file with a hole: 100 MB that take no room."""
    model = small_model()
    del model["constants"]
    model["weights"] = [{"file": "w.safetensors"}]
    length = 100_000_001
    with open(tmp_path / "w.safetensors", "wb") as file:
        file.write(length.to_bytes(8, "little"))
        file.truncate(8 + length)
    refused(rnncc, tmp_path, model, 4, f"the header has {length} bytes; at most 100000000 are read")


def test_calibrate_asks_where_to_write_if_there_is_no_home(rnncc):
    kept = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    done = rnncc("targets", "--calibrate", "--budget=0.01", env=kept)
    assert done.returncode == 5 and "there is neither XDG_CACHE_HOME nor HOME: -o says where to write" in done.stderr
