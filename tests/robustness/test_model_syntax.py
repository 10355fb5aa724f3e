# SPDX-License-Identifier: MIT
"""Model files that are not JSON, or JSON that is not in the format. The reader's grammar has its own unit test; here are
the messages for the user."""
import json

import pytest

from support.refusal import accepted, refused, small_model, write

TEXT = json.dumps(small_model())
SM = TEXT.index('sm')


def test_the_small_model_itself_is_accepted(rnncc, tmp_path):
    assert accepted(rnncc, tmp_path, small_model())["outputs"] == ["y"]


@pytest.mark.parametrize("text, place", [
    (b"", "byte 0"),
    (b"\xef\xbb\xbf" + TEXT.encode(), "byte 0"),
    (TEXT.encode() + b"x", f"byte {len(TEXT)}"),
    (TEXT.replace('"small"', '"sm\x00all"').encode(), f"byte {SM + 2}"),
    (TEXT.replace('"small"', '"sm\nall"').encode(), f"byte {SM + 2}"),
    (TEXT.encode().replace(b'"small"', b'"sm\xc0\x80all"'), f"byte {SM + 2}"),
    (TEXT.replace('"version": 1', '"version": 007').encode(), f"byte {TEXT.index('1')}"),
    (TEXT.replace('"version": 1', '"version": 1.').encode(), f"byte {TEXT.index('1') + 2}"),
    (TEXT.replace('"version": 1', '"version": ' + "9" * 10_000_000).encode(), "10000000 characters"),
    (TEXT.replace('"version": 1', '"x-deep": ' + "[" * 100 + "]" * 100).encode(), "deeper than 64"),
    (b"[" * 1_000_000, "deeper than 64"),
], ids=["empty", "byte order mark", "trailing garbage", "NUL", "raw newline", "overlong UTF-8", "007", "1.",
        "10 MB of digits", "100 brackets", "a million brackets"])
def test_text_that_is_not_json_is_refused_at_its_byte(rnncc, tmp_path, text, place):
    refused(rnncc, tmp_path, text, 2, "model.json: byte ", place)


@pytest.mark.parametrize("length", range(1, len(TEXT), 61))
def test_a_model_cut_short_is_refused(rnncc, tmp_path, length):
    """tests/unit/load_model_test.c cuts at every byte, without the cost of a process for each."""
    refused(rnncc, tmp_path, TEXT[:length], 2, f"model.json: byte {length}: error: expected ",
            "found the end of the text")


def changed(path, value):
    """The small model with the value at `path`, a list of keys, replaced; ... removes it."""
    model = small_model()
    place = model
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return model


@pytest.mark.parametrize("path, value, code, texts", [
    (["format"], "onnx", 2, ["format: ", 'expected the format "rnncc"']),
    (["version"], 2, 3, ["version: ", "version 2", "version 1"]),
    (["version"], 1.0, 2, ["version: ", "expected an integer (no fraction, no exponent), found 1.0"]),
    (["name"], ..., 2, ['"name" is missing']),
    (["nodes"], ..., 2, ['"nodes" is missing']),
    (["nodes"], {}, 2, ["nodes: ", "expected an array, found an object"]),
    (["nodes"], [], 2, ["nodes: ", "no nodes"]),
    (["inputs"], [], 2, ["inputs: ", "no inputs"]),
    (["outputs"], [], 2, ["outputs: ", "no outputs"]),
    (["outputs"], ["y", "y"], 2, ["outputs[1]", "listed twice"]),
    (["outputs"], [3], 2, ["outputs[0]", "expected a string, found a number"]),
    (["output"], ["y"], 2, ['unknown key "output"', 'did you mean "outputs"?']),
    (["comment"], "mine", 2, ['unknown key "comment"', "x-"]),
    (["nodes", 0, "input"], ["x"], 2, ["nodes[0].input:", 'did you mean "inputs"?']),
    (["nodes", 0, "op"], 7, 2, ["nodes[0].op", "expected a string, found a number"]),
    (["nodes", 0, "outputs"], "s", 2, ["nodes[0].outputs", "expected an array, found a string"]),
    (["inputs", 0, "dtype"], "float32", 3, ["inputs[0].dtype", '"float32"', "u8, bool"]),
    (["inputs", 0, "shape"], ["N", 3], 2, ["inputs[0].shape[0]", 'no "N"']),
    (["inputs", 0, "shape"], ["t", 3], 2, ["inputs[0].shape[0]", 'no "t"']),
    (["inputs", 0, "shape"], [2**63, 3], 2, ["inputs[0].shape[0]"]),
    (["inputs", 0, "shape"], [-1, 3], 2, ["inputs[0].shape[0]", "expected 0 to"]),
    (["inputs", 0, "shape"], [2.5, 3], 2, ["inputs[0].shape[0]", "expected an integer (no fraction, no exponent), found 2.5"]),
    (["inputs", 0, "shape"], [2**63, 3], 2, ["inputs[0].shape[0]", "found 9223372036854775808"]),
    (["inputs", 0, "shape"], [2**32, 2**32], 4, ["inputs[0].shape", "bytes"]),
    (["inputs", 0, "shape"], [2**31, 2**31], 4, ["inputs[0].shape", "bytes"]),
    (["inputs", 0, "shape"], [1] * 9, 3, ["inputs[0].shape", "rank 9; at most 8"]),
    (["inputs", 0, "shape"], [1] * 1_000_000, 3, ["inputs[0].shape", "rank 1000000; at most 8"]),
    (["dims", "T"], {"min": -1, "max": 4}, 2, ["dims.T.min", "expected 0 to", "found -1"]),
    (["dims", "T"], {"min": 5, "max": 4}, 2, ["dims.T", "min <= opt <= max"]),
    (["dims", "T"], {"min": 1, "opt": 9, "max": 4}, 2, ["dims.T", "min <= opt <= max"]),
    (["dims", "T"], {"max": 2**31}, 2, ["dims.T.max", "expected 0 to"]),
    (["dims", "T"], {}, 2, ["dims.T", '"max" is missing']),
    (["constants", "c", "data"], [1, 2], 2, ["constants.c.data", "2 elements where the shape has 3"]),
    (["constants", "c", "data"], [1, 2, "3"], 2, ["constants.c.data[2]", "expected a number, found a string"]),
    (["constants", "c", "shape"], [2**62, 2**62], 4, ["constants.c.shape", "more elements than memory"]),
    (["constants", "c", "dtype"], "c64", 3, ["constants.c.dtype", '"c64"']),
    (["constants", "c"], {"dtype": "i64", "shape": [1], "data": [2**63]}, 2, ["constants.c.data[0]", "found 9223372036854775808"]),
    (["constants", "c"], {"dtype": "i32", "shape": [1], "data": [2**31]}, 2, ["constants.c.data[0]", "2147483647"]),
    (["constants", "c"], {"dtype": "u8", "shape": [1], "data": [256]}, 2, ["constants.c.data[0]", "255"]),
    (["constants", "c"], {"dtype": "bool", "shape": [1], "data": [2]}, 2, ["constants.c.data[0]", "0 to 1"]),
    (["constants", "c"], {"dtype": "i64", "shape": [1], "data": [0.5]}, 2, ["constants.c.data[0]", "found 0.5"]),
])
def test_a_model_of_another_shape_is_refused_at_its_path(rnncc, tmp_path, path, value, code, texts):
    refused(rnncc, tmp_path, changed(path, value), code, "model.json: ", *texts)


def test_1e400_is_refused(rnncc, tmp_path):
    text = TEXT.replace("[1, 2, 3]", "[1, 1e400, 3]")
    refused(rnncc, tmp_path, text, 2, "constants.c.data[1]", "1e400 is past the range")


def test_a_duplicate_key_is_refused(rnncc, tmp_path):
    text = TEXT.replace('"op": "Relu"', '"op": "Relu", "op": "Tanh"')
    refused(rnncc, tmp_path, text, 2, "nodes[1].op", "given twice")


def test_keys_that_start_with_x_are_free_everywhere(rnncc, tmp_path):
    model = small_model()
    for place in (model, model["inputs"][0], model["dims"]["T"], model["nodes"][0], model["constants"]["c"]):
        place["x-note"] = {"any": ["thing", None, 1.5]}
    model["nodes"][0]["attributes"] = {"x-metadata": "1"}
    accepted(rnncc, tmp_path, model)


def test_every_problem_is_reported_at_once(rnncc, tmp_path):
    model = small_model()
    model["inputs"][0]["shape"] = ["T", -3]
    model["nodes"][0]["op"] = "Addd"
    model["nodes"][1]["inputs"] = ["nowhere"]
    said = refused(rnncc, tmp_path, model, 2, "inputs[0].shape[1]", '"Addd"', '"nowhere"')
    assert said.count("error:") == 3


def test_a_constant_of_1e5_elements_loads_in_linear_time(rnncc, tmp_path):
    model = small_model()
    model["inputs"][0]["shape"] = [100_000]
    model["constants"]["c"] = {"dtype": "f32", "shape": [100_000], "data": [0.5] * 100_000}
    path = write(tmp_path, model)
    done = rnncc(path, "--emit=graph", "-o", tmp_path / "out.json", timeout=20)
    assert done.returncode == 0, done.stderr


def test_int64_max_survives(rnncc, tmp_path):
    """In ONNX's Slice it means "to the end"."""
    model = small_model()
    model["constants"].update({name: {"dtype": "i64", "shape": [1], "data": [value]}
                               for name, value in (("starts", 0), ("ends", 2**63 - 1), ("axes", 0))})
    model["nodes"][1] = {"op": "Slice", "inputs": ["s", "starts", "ends", "axes"], "outputs": ["y"]}
    accepted(rnncc, tmp_path, model)
    assert (2**63 - 1).to_bytes(8, "little") in (tmp_path / "out.graph.safetensors").read_bytes()
