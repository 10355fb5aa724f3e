# SPDX-License-Identifier: MIT
"""`rnncc inspect --memory`: the arena of a run is nearly as small as possible, and the drawing shows it."""
import re
from xml.etree import ElementTree

import numpy
import pytest

from support.model_builder import Model
from support.report_page import Page
from support.some_networks import NETWORKS, SOME_NETWORKS

SVG = "{http://www.w3.org/2000/svg}"
ROW = re.compile(r"^t\d+ +(?P<offset>\d+) +(?P<bytes>\d+) +(?P<first>\d+) +(?P<last>\d+) +(?P<over>t\d+)?", re.M)


def inspected(rnncc, path, *options):
    done = rnncc("inspect", path, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def arena_and_bound(text):
    return [int(number) for number in re.search(r"^arena (\d+) bytes, largest live set (\d+) bytes", text, re.M).groups()]


@pytest.mark.parametrize("name", SOME_NETWORKS)
def test_the_arena_is_within_a_tenth_of_the_largest_live_set(rnncc, tmp_path, name):
    path = NETWORKS[name](width=0.25, size=139 if name == "inception_v3" else 64).write(tmp_path)
    arena, bound = arena_and_bound(inspected(rnncc, path, "--memory"))
    assert bound <= arena <= 1.1 * bound


def test_the_workers_of_all_convolutions_keep_their_slots(rnncc, tmp_path):
    """If each node had slots of its own, cores would write to each other's cache lines."""
    path = NETWORKS["densenet121"](width=0.25, size=64).write(tmp_path)
    text = inspected(rnncc, path, "--memory", "--conv=winograd")
    slots = [row for row in text.splitlines() if row.endswith("workers' memory")]
    assert len(slots) == 1
    row = ROW.search(slots[0])
    assert int(row["last"]) - int(row["first"]) > 50


def chain(names):
    """A value, and others of the same size, each computed from the one before; the last by one element-wise node from the
    one before and the first."""
    model = Model()
    value = model.input("x", "f32", [4, 100])
    first = value = model.node("Softmax", [value], [names[0]])
    for name in names[1:]:
        value = model.node(*(("Mul", [value, first]) if name is names[-1] else ("Softmax", [value])), [name])
    model.output(model.node("Softmax", [value], ["y"]))
    return model


def test_an_element_wise_result_takes_its_dying_operand_s_place(rnncc, tmp_path):
    rows = [row.groupdict() for row in ROW.finditer(inspected(rnncc, chain(["a", "b", "c"]).write(tmp_path), "--memory"))]
    assert len(rows) == 3 and [bool(row["over"]) for row in rows] == [False, False, True]
    assert rows[2]["offset"] == rows[1]["offset"] != rows[0]["offset"]


def test_the_picture_has_a_bar_for_each_value_and_the_two_lines(rnncc, tmp_path):
    names = ["a", "<b> & \"c\"", "c\u00e9\n"]
    text = inspected(rnncc, chain(names).write(tmp_path), f"--memory={tmp_path / 'plan.svg'}")
    svg = ElementTree.parse(tmp_path / "plan.svg").getroot()
    bars = svg.findall(f".//{SVG}rect")
    assert len(bars) == len(ROW.findall(text)) == 3
    titles = [title.text for title in svg.findall(f".//{SVG}title")]
    assert any(title.startswith("<b> & \"c\"\nf32[4, 100]") for title in titles)
    classes = [path.get("class") for path in svg.findall(f".//{SVG}path")]
    assert {"arena", "bound", "live"} <= set(classes)


def test_bars_stand_at_their_offsets_and_share_no_place(rnncc, tmp_path):
    inspected(rnncc, NETWORKS["squeezenet"](width=0.25, size=64).write(tmp_path), f"--memory={tmp_path / 'plan.svg'}")
    svg = ElementTree.parse(tmp_path / "plan.svg").getroot()
    boxes = numpy.array([[float(bar.get(key)) for key in ("x", "y", "width", "height")] for bar in svg.iter(f"{SVG}rect")])
    right, bottom = boxes[:, 0] + boxes[:, 2], boxes[:, 1] + boxes[:, 3]
    rounding = 0.2  # coordinates have one digit
    for i in range(len(boxes)):
        beside = (boxes[:, 0] < right[i] - rounding) & (right > boxes[i, 0] + rounding)
        above = (boxes[:, 1] < bottom[i] - rounding) & (bottom > boxes[i, 1] + rounding)
        assert (beside & above).sum() == 1, boxes[i]


def trained(layers, size):
    """Dense layers, whose results are needed until their weights' gradients are there."""
    model = Model()
    value = model.input("x", "f32", [16, size])
    for k in range(layers):
        weights = model.constant(numpy.full((size, size), 0.01 * (k + 1), numpy.float32), f"w{k}")
        value = model.node("Tanh", [model.node("MatMul", [value, weights])], [f"y{k}"])
    model.output(model.node("ReduceSum", [value], ["loss"], keepdims=0))
    return model


def test_what_is_in_the_gradients_memory_is_listed_alone(rnncc, tmp_path):
    layers, size = 4, 64
    text = inspected(rnncc, trained(layers, size).write(tmp_path), "--train", "--memory", f"--html={tmp_path / 'plan.html'}")
    of_arena, of_gradients = text.split("in the gradients' memory, until these are written:")
    rows = [{key: int(row[key]) for key in ("offset", "bytes", "first", "last")} for row in ROW.finditer(of_gradients)]
    assert rows and all(row["offset"] + row["bytes"] <= layers * size * size * 4 for row in rows)
    assert len(of_gradients.splitlines()) == len(rows) + 2
    values = Page(tmp_path / "plan.html").data()["model"]["values"]
    placed = [{"offset": v["at"], **{key: v[key] for key in ("bytes", "first", "last")}}
              for v in values if v["where"] == "gradient" and "at" in v]
    assert placed == rows
    assert len(ROW.findall(of_arena)) == sum(v["where"] == "arena" for v in values)


def test_memory_is_for_inspecting(rnncc, tmp_path):
    path = chain(["a"]).write(tmp_path)
    assert rnncc(path, "--memory").returncode == 2
    assert rnncc("inspect", path, "--memory=").returncode == 2
