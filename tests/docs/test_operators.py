# SPDX-License-Identifier: MIT
"""The page of operators is what the operator table says, and has a word for each operator of ONNX."""
import re

import onnx
import pytest
from onnx import TensorProto, helper

from conftest import build_directory
from support import pages

PAGE = pages.text("operators")
BEFORE = PAGE.partition("<!-- operators -->")[0]
REFUSED = BEFORE[BEFORE.index("Not supported are"):]
NAME = re.compile(r"\b[A-Z][a-z]+[A-Z]\w*")
TRAINING = ["Adagrad", "Adam", "Gradient", "Momentum"]


def rows(title):
    section = PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE)


def schemas(domain=""):
    return {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == domain}


def test_page_is_what_the_table_says():
    (found,) = re.findall(r"^<!-- operators -->\n(.*?)^<!-- end -->$", PAGE, re.MULTILINE | re.DOTALL)
    made = build_directory() / "tools" / "pages" / "operators.md"
    assert found == made.read_text(), "tools/docs/update writes it anew"


def test_every_operator_of_onnx_is_in_the_table_or_told_of():
    table = {name for name, _ in rows("Of ONNX")}
    assert table <= schemas()
    told = set(NAME.findall(BEFORE)) | {"Optional", "Scatter", "Upsample"}
    assert schemas() - table <= told
    assert all(name in BEFORE for name in told)


def test_an_operator_has_no_more_inputs_than_onnx_gives_it():
    for name, columns in rows("Of ONNX"):
        inputs = columns.split(" | ")[0]
        if "more" not in inputs:
            assert int(inputs.split(" to ")[-1]) <= onnx.defs.get_schema(name).max_input, name


@pytest.mark.parametrize("name", sorted(set(NAME.findall(REFUSED)) & schemas()) + TRAINING)
def test_what_the_page_says_is_not_supported_is_refused(rnncc, tmp_path, name):
    domain = "ai.onnx.preview.training" if name in TRAINING else ""
    x, y = (helper.make_tensor_value_info(value, TensorProto.FLOAT, [2]) for value in "xy")
    graph = helper.make_graph([helper.make_node(name, ["x"], ["y"], name="n", domain=domain)], "g", [x], [y])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid(domain, 1)][:1 + bool(domain)],
                                ir_version=9), path)
    done = rnncc("inspect", path)
    assert done.returncode == 3 and f"the operator {name}" in done.stderr and "is not supported" in done.stderr, done.stderr


@pytest.mark.parametrize("name", ["Trilu", "Celu", "Einsum", "RotaryEmbedding", "GridSample", "BitShift", "Hardmax"])
def test_the_page_for_contributors_names_each_table_that_an_operator_stands_in(name):
    """One of each kind. Headers only declare; a comment is no table; tests of passes take any operator."""
    table = pages.text("new-operator").split("## Every table", 1)[1]
    named = [pattern for row in re.findall(r"^\| (.*?)$", table, re.MULTILINE) for pattern in re.findall(r"`([\w/*.]+/[\w*.]+)`", row)]
    tables = {path for pattern in named for path in pages.ROOT.glob(pattern)}
    assert all(any(pages.ROOT.glob(pattern)) for pattern in named)
    rooms = [pages.ROOT / room for room in ("compiler", "templates", "tests/graphs", "tests/kernels", "tests/unit", "tests/fuzz")]
    stands_in = {path for room in rooms for path in room.rglob("*") if path.suffix in (".c", ".def", ".py")
                 and re.search(rf"\b{name}\b", "".join(line for line in path.read_text().splitlines(True)
                                                       if not line.lstrip().startswith(("/*", "*", "#"))))}
    tests_of_passes = {path for path in stands_in if path.parent.name == "unit" and path.suffix == ".c"}
    assert stands_in - tables - tests_of_passes == set()


def test_an_operator_of_onnx_runtime_is_in_one_table_of_its_own():
    read_as = [name for name, columns in rows("Read as another operator")]
    table = [name for name, _ in rows("Of ONNX Runtime: com.microsoft")]
    assert len(table) > 20 and len(read_as) > 15 and not set(table) & (set(read_as) - {"QLinearAveragePool"})
