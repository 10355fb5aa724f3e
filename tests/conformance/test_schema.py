# SPDX-License-Identifier: MIT
"""models/schema.json and rnncc agree on what a model is."""
import copy
import json

import jsonschema
import pytest

from conftest import ROOT, SHIPPED
from support.amount import half
from support.dtypes import DTYPES
from support.refusal import accepted, refused, small_model

SCHEMA = json.loads((ROOT / "models" / "schema.json").read_text())
conforms = jsonschema.Draft202012Validator(SCHEMA).is_valid


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_models_conform(path):
    jsonschema.validate(json.loads(path.read_text()), SCHEMA)


def test_the_schema_has_every_element_type():
    assert SCHEMA["$defs"]["dtype"]["enum"] == [dtype.name for dtype in DTYPES]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_models_that_rnncc_writes_conform(rnncc, tmp_path, path):
    done = rnncc(path, "--emit=graph", "-o", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    jsonschema.validate(json.loads((tmp_path / "out.json").read_text()), SCHEMA)


def rich_model():
    """The small model with every optional part of the format."""
    model = small_model()
    model.update({
        "model_version": "1", "description": "", "x-note": {"any": [None]},
        "states": [{"input": "h", "output": "s", "dtype": "f32", "shape": ["T", 3], "batch_axis": 0}],
        "outputs": ["y", {"name": "e", "description": ""}],
    })
    model["nodes"][1]["attributes"] = {"x-note": 1}
    model["nodes"].append({"op": "Constant", "outputs": ["e"],
                           "attributes": {"value": {"dtype": "f32", "shape": [2], "data": ["inf", 0.5]}}})
    return model


def places(value, path=()):
    yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def changed(path, replacement):
    model = copy.deepcopy(rich_model())
    parent = model
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = replacement
    return model


def test_the_rich_model_is_accepted_by_both(rnncc, tmp_path):
    assert conforms(rich_model())
    accepted(rnncc, tmp_path, rich_model())


REPLACEMENTS = [None, True, -1, 1.5, [], {}, [None], {"unknown": 1}]


@pytest.mark.parametrize("replacement", REPLACEMENTS, ids=json.dumps)
def test_what_the_schema_refuses_rnncc_refuses(rnncc, tmp_path, replacement):
    """A value of another kind in every second place, in long tests in every place. rnncc refuses more than the schema, so
    the reverse is not tested."""
    tried = 0
    for path in half(list(places(rich_model())), REPLACEMENTS.index(replacement)):
        if not path or any(str(key).startswith("x-") for key in path) or conforms(changed(path, replacement)):
            continue
        model = tmp_path / "model.json"
        model.write_text(json.dumps(changed(path, replacement)))
        done = rnncc(model, "--emit=graph", "-o", tmp_path / "out.json")
        assert done.returncode in (2, 3, 4), f"{path} = {replacement}: exit {done.returncode}\n{done.stderr}"
        tried += 1
    assert tried > 20


def test_an_unknown_key_is_refused_by_both(rnncc, tmp_path):
    for path in places(rich_model()):
        model = rich_model()
        place = model
        for key in path:
            place = place[key]
        # Free keys: those in x-, and the names of dims and constants, whose values must then be valid.
        if not isinstance(place, dict) or any(str(key).startswith("x-") for key in path):
            continue
        place["unknown"] = 1
        expected = 3 if path and path[-1] == "attributes" else 2
        assert path and path[-1] == "attributes" or not conforms(model)
        refused(rnncc, tmp_path, model, expected, "unknown")
