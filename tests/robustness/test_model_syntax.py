# SPDX-License-Identifier: MIT
"""Model files that are not JSON, or JSON that is not in the format. The reader's grammar has its own unit test; here are
the messages for the user."""
import json

import pytest

from support.refusal import accepted, refused, small_model, write

TEXT = json.dumps(small_model())


def test_the_small_model_itself_is_accepted(rnncc, tmp_path):
    assert accepted(rnncc, tmp_path, small_model())["outputs"] == ["y"]


@pytest.mark.parametrize("length", range(1, len(TEXT), 61))
def test_a_model_cut_short_is_refused(rnncc, tmp_path, length):
    """tests/unit/load_model_test.c cuts at every byte, without the cost of a process for each."""
    refused(rnncc, tmp_path, TEXT[:length], 2, f"model.json: byte {length}: error: expected ",
            "found the end of the text")


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
