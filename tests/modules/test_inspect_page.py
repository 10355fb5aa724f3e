# SPDX-License-Identifier: MIT
"""rnncc inspect --html: one page that is well-formed, loads nothing, and has every node with what was decided for it."""
import shutil
import subprocess

import numpy
import pytest

from support.amount import long_tests
from support.model_builder import Model
from support.report_page import Page

HOSTILE = '</script><b>"&\'\x1b[1m ü ]]> -->'
BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium")


def network():
    model = Model(HOSTILE.replace("/", ""))
    model.dim("N", 1, 2, 4)
    x = model.input("x", "f32", ["N", 16, 16, 16])
    y = model.node("Relu", [model.node("Conv", [x, model.constant(numpy.ones((32, 16, 3, 3), numpy.float32))])])
    model.nodes[-2]["name"] = HOSTILE
    y = model.node("Flatten", [y])
    y = model.node("Sigmoid", [model.node("Mul", [y, y])])
    model.output(model.node("MatMul", [y, model.constant(numpy.ones((32 * 14 * 14, 8), numpy.float32))]))
    return model


@pytest.fixture
def page(rnncc, tmp_path):
    (tmp_path / "net.json").write_text(network().write(tmp_path).read_text())

    def of(*options):
        done = rnncc("inspect", tmp_path / "net.json", "--html", tmp_path / "plan.html", *options)
        assert done.returncode == 0, done.stderr
        return Page(tmp_path / "plan.html")

    return of


def test_a_page_is_well_formed_and_loads_nothing(page):
    made = page()
    made.has_no_references()
    assert [h.text for h in made.all("h2")][:3] == ["Verdict", "Graph", "Nodes"] and made.all("h2")[-1].text == "Memory plan"
    assert made.of("verdict").text.splitlines()[0].startswith("model ")


def test_every_kernel_has_a_row_and_a_step(page):
    made = page("--layout-search=greedy", "--target=x86-64-v3", "--no-winograd")
    rows, steps = made.rows("nodes"), made.data()["model"]["steps"]
    assert [row[0] for row in rows] == [str(i) for i in range(len(steps))]
    assert [row[1] for row in rows] == [step["node"].replace("\x1b", "?") for step in steps]
    assert len(made.data()["predicted"]) == len(steps) and made.data()["profile"] is None
    convolution = next(row for row in rows if row[2] == "Conv")
    assert convolution[1] == HOSTILE.replace("\x1b", "?") and convolution[3].startswith("Relu: ")
    assert "blocks" in convolution[4] and convolution[5] == "f32" and convolution[10].startswith("direct")


def test_its_data_are_what_the_graph_and_the_memory_plan_are_drawn_of(page):
    model = page("--layout-search=greedy", "--target=x86-64-v3", "--no-winograd").data()["model"]
    values = {value.pop("id"): value for value in model["values"]}
    names = lambda ids: [values[i]["name"] for i in ids]
    steps = [(step["op"], step.get("after"), step["kernel"], names(step["reads"]), names(step["writes"])) for step in model["steps"]]
    assert set(model) == {"name", "target", "arena", "end", "values", "steps"} and model["end"] == len(steps)
    assert steps == [("LayoutTransform", None, "k0_copy_strided", ["x"], ["x"]),
                     ("Conv", ["Relu"], "k1_conv_direct", ["x", "constant0"], ["v1_0"]),
                     ("LayoutTransform", None, "k0_copy_strided", ["v1_0"], ["v1_0"]),
                     ("Mul", ["Sigmoid"], "k2_elementwise", ["v1_0"], ["v4_0"]),
                     ("MatMul", None, "k3_gemm_packed", ["v4_0", "packed B"], ["v5_0"])]
    assert [step.get("schedule", "").split("_")[0] for step in model["steps"]] == ["", "direct", "", "", "n8k6272"]
    listed = list(values.values())
    assert listed[0] == {"name": "x", "type": "f32", "shape": ["N", "16", "16", "16"], "where": "input", "bytes": 65536}
    assert listed[1] == {"name": "x", "type": "f32", "shape": ["N", "16", "16", "16"], "block": 8, "where": "arena", "bytes": 65536,
                         "at": 100352, "first": 0, "last": 1}
    assert listed[-2] == {"name": "constant0", "type": "f32", "shape": ["4608"], "where": "weights", "bytes": 18432}
    assert [(value["first"], value["last"]) for value in listed if value["where"] == "arena"] == [(0, 1), (1, 2), (2, 3), (3, 4)]


@pytest.mark.parametrize("target, products", [("x86-64-v4+bf16", "f32, weights of fewer bits"), ("x86-64-v4+amx", "f32, as three of bf16")])
def test_weights_of_fewer_bits_are_told(target, products, page):
    rows = page("--precision=bf16", f"--target={target}").rows("nodes")
    assert next(row for row in rows if row[2] == "MatMul")[5] == products


@pytest.mark.parametrize("target", ["aarch64-linux-gnu+bf16", "x86-64-v4+bf16", "x86-64-v4+amx"])
def test_products_of_bf16_are_told(target, page):
    rows = page("--precision=bf16-dynamic", f"--target={target}").rows("nodes")
    assert next(row for row in rows if row[2] == "MatMul")[5] == "bf16"


def test_what_has_no_page_is_refused(rnncc, tmp_path):
    model = network().write(tmp_path)
    done = rnncc("inspect", model, "--html", tmp_path / "no" / "plan.html")
    assert done.returncode == 5 and "plan.html" in done.stderr
    done = rnncc("inspect", model, "--html=p.html", "--target=x86-64-v3,x86-64-v2")
    assert done.returncode == 2 and "--html: expected one target, found 2" in done.stderr
    done = rnncc("inspect", f"a={model}", f"b={model}", "--html=p.html")
    assert done.returncode == 2 and "--html: expected one network, found 2" in done.stderr


@pytest.mark.skipif(not long_tests(), reason="a browser is for long tests")
def test_a_browser_draws_it_without_an_error(page, tmp_path):
    assert BROWSER, "tools/setup test chromium-headless-shell"
    page()
    drawn = subprocess.run([BROWSER, "--no-sandbox", "--enable-logging=stderr", "--v=0", "--dump-dom",
                            f"--user-data-dir={tmp_path / 'browser'}", tmp_path / "plan.html"],
                           capture_output=True, text=True, check=True, timeout=120)
    assert "CONSOLE" not in drawn.stderr, drawn.stderr
    assert 'aria-label="the graph"' in drawn.stdout and 'aria-label="the memory plan"' in drawn.stdout
