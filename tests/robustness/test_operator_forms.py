# SPDX-License-Identifier: MIT
"""Every operator of ops.def with inputs and attributes that its row forbids, and with all kinds that the row allows."""
import re
from types import SimpleNamespace

import pytest

from support import op_rows
from support.amount import half, some
from support.refusal import refused, write

OPSET, OPSETS = 21, [21, 9, 1, 6, 12]
PARTS = 16
SHOWN = 25  # a node may have several mistakes, and rnncc shows a hundred
EXTENTS = [[], [2], [2, 2], [1, 2, 3], [1, 2, 4, 4], [1, 2, 2, 2, 2]]
SUFFIXES = [f"_{rank}" for rank in range(len(EXTENTS))]


@pytest.fixture(scope="module")
def rows(root):
    found = op_rows.op_rows(root)
    assert len(found) > 140
    return found


def tensors(suffix=""):
    return {f"{dtype}_{rank}{suffix}": (dtype, shape) for dtype in op_rows.TYPES for rank, shape in enumerate(EXTENTS)}


def model_of(style, forms, opset=OPSET):
    """forms: (form, suffix of its inputs' names)."""
    inputs, constants = tensors(), tensors("c")
    if style == "json":
        return op_rows.json_model(forms, inputs, constants)
    return op_rows.onnx_model(forms, inputs, constants, opset).SerializeToString()


def written(style, folder, model):
    return write(folder, model, f"model.{style}")


def place(style, number):
    return f"nodes[{number}]" if style == "json" else f"node{number}: "


@pytest.mark.parametrize("style", ["json", "onnx"])
def test_each_node_that_its_row_forbids_is_named(rnncc, rows, tmp_path, style):
    unread = [] if style == "json" else ["Constant", "Dropout"]  # ONNX's Constant is no node; of Dropout little is read
    forms = [form for row in rows.values() if row.name not in unread for form in op_rows.invalid_forms(row)]
    assert len(forms) > 1000
    for first in range(0, len(forms), SHOWN):
        some_forms = forms[first:first + SHOWN]
        said = refused(rnncc, tmp_path, written(style, tmp_path, model_of(style, [(form, "_1") for form in some_forms])), 2)
        unnamed = [form for k, form in enumerate(some_forms) if place(style, k) not in said]
        assert [(form.row.name, form.inputs, form.attributes) for form in unnamed] == []


def refused_numbers(said):
    return {int(json or onnx) for json, onnx in re.findall(r"nodes\[(\d+)\]|node(\d+)\b", said)}


def settle(run, forms):
    """Leaves out what is refused, which must be said with its node, until all that is left is taken."""
    while forms:
        done = run(forms)
        assert done.returncode in (0, 2, 3, 4), done.stderr[-2000:]
        if done.returncode == 0:
            return forms
        refused_now = refused_numbers(done.stderr)
        assert refused_now, done.stderr[-2000:]
        forms = [form for k, form in enumerate(forms) if k not in refused_now]
    return forms


def allowed(rows, suffixes):
    """All that rows allow, but for control flow, whose bodies are tested elsewhere."""
    return [(form, suffix) for row in rows if "GRAPH" not in row.kinds.values() for form in op_rows.doubtful_forms(row)
            for suffix in suffixes]


@pytest.mark.parametrize("part", range(PARTS))
def test_a_node_that_its_row_allows_is_refused_or_compiled(rnncc, rows, tmp_path, part):
    """Of JSON, up to the kernels; every other part of run-time tensors, the others of constants."""
    for suffix in some(["", "c"] if part % 2 else ["c", ""], 1):
        forms = allowed(list(rows.values())[part::PARTS], [name + suffix for name in half(SUFFIXES, part // 2)])
        left = settle(lambda forms: rnncc("inspect", written("json", tmp_path, model_of("json", forms))), forms)
        assert left


@pytest.mark.parametrize("part", range(2))
def test_absent_inputs_are_absent_where_nodes_are_fused(rnncc, rows, tmp_path, part):
    """Behind a convolution, and before a product: each set of optional inputs, of each operator that has any."""
    some_rows = [row for row in rows.values() if any(row.optional) and "GRAPH" not in row.kinds.values()][part::2]
    forms = [form for row in some_rows for form in op_rows.forms_of_inputs(row)]

    def run(forms):
        model = op_rows.fused(model_of("json", [(form, "_4") for form in forms]), "f32_4", "f32_0c")
        done = rnncc("inspect", written("json", tmp_path, model))
        places = refused_numbers(done.stderr)
        done.stderr = " ".join(f"nodes[{place % len(forms)}]" for place in places) if places else done.stderr
        return done

    left = settle(run, forms)
    assert len({form.row.name for form in left}) >= 10


def with_older_names(rows):
    names = {"Upsample": "Resize", "Scatter": "ScatterElements"}
    return [*rows.values(), *(SimpleNamespace(**{**vars(rows[row]), "name": name}) for name, row in names.items())]


@pytest.mark.parametrize("opset", some(OPSETS, 3))
def test_a_node_of_any_opset_is_refused_or_read(rnncc, rows, tmp_path, opset):
    """What older opsets say otherwise is rewritten before the row is looked at."""
    output = tmp_path / "out.json"
    forms = allowed([row for row in with_older_names(rows) if row.name != "Constant"], some(["_2", "_4", "_3"], 1))
    model = lambda forms: written("onnx", tmp_path, model_of("onnx", forms, opset))  # noqa: E731
    assert len(settle(lambda forms: rnncc(model(forms), "--emit=graph", "-o", output), forms)) > len(forms) // 2
    bad = [(form, "_2") for row in with_older_names(rows) for form in op_rows.invalid_forms(row)]
    assert rnncc(model(bad), "--emit=graph", "-o", output).returncode == 2
