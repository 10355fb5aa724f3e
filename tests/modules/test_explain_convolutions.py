# SPDX-License-Identifier: MIT
"""`rnncc inspect --explain=conv`: how each distinct convolution could run, and the choice."""
import re
from dataclasses import dataclass, field

import numpy
import pytest

from support.model_builder import Model


@dataclass
class Explained:
    workload: str
    nodes: str
    candidates: dict = field(default_factory=dict)  # schedule -> predicted us, in the order printed
    starred: list = field(default_factory=list)
    chosen: str = None
    reason: str = None
    few: str = None  # the schedule of runs of few pixels
    row_major: str = None  # why it does not run on blocked tensors
    rest: str = None  # the line with the number of further candidates


def parse(text):
    found = []
    for line in text.splitlines():
        if match := re.fullmatch(r"(\S+): [\d.]+ MFLOP: (.*)", line):
            found.append(Explained(*match.groups()))
        elif match := re.fullmatch(r"([ *]) +([\d.]+)  (\S+)", line):
            found[-1].candidates[match[3]] = float(match[2])
            if match[1] == "*":
                found[-1].starred.append(match[3])
        elif match := re.fullmatch(r"  chosen: (\S+): (.*)", line):
            found[-1].chosen, found[-1].reason = match.groups()
        elif match := re.fullmatch(r"  row-major: (.*)", line):
            found[-1].row_major = match[1]
        elif match := re.fullmatch(r"  few pixels: (\S+), of at most \d+ pixels", line):
            found[-1].few = match[1]
        elif "in all" in line:
            found[-1].rest = line
        else:
            assert line.split() == ["predicted", "us", "schedule"], line
    return found


def network():
    """Two equal convolutions, then another: large enough to run blocked, in many ways."""
    model = Model()
    value = model.input("x", "f32", [1, 64, 28, 28])
    for kernels, window in ((64, 3), (64, 3), (128, 1)):
        weights = numpy.zeros((kernels, 64, window, window), numpy.float32)
        value = model.node("Conv", [value, model.constant(weights)], pads=[window // 2] * 4)
    model.output(value)
    return model


@pytest.fixture
def explain(rnncc, tmp_path):
    def explained(*options, model=network()):
        options = ["--layout-search=greedy", *(options or ["--schedules=none"])]
        done = rnncc("inspect", "--explain=conv", *options, model.write(tmp_path))
        assert done.returncode == 0, done.stderr
        return parse(done.stdout)

    return explained


def test_equal_convolutions_are_reported_once_with_all_their_nodes(explain):
    first, second = explain()
    assert first.nodes == "n0, n1" and second.nodes == "n2"
    assert first.workload != second.workload


def test_the_chosen_schedule_has_the_least_predicted_time(explain):
    convolutions = explain("-v")
    assert len(convolutions) == 2
    for told in convolutions:
        assert told.starred == [told.chosen] == list(told.candidates)[:1]
        assert told.reason == "the least predicted time" and told.rest is None
        assert all(time > 0 for time in told.candidates.values())
        # others of its kind are no faster; an unusual one may be, by the margin that it would need to win by
        assert told.candidates[told.chosen] <= 1.1 * min(told.candidates.values())


def test_ten_candidates_are_listed_unless_all_are_requested(explain):
    for few, every in zip(explain(), explain("-v"), strict=True):
        assert list(few.candidates) == list(every.candidates)[:10]
        assert f" {len(every.candidates)} in all" in few.rest


def test_a_schedule_that_conv_forces_is_listed_with_its_time(explain):
    wide, narrow = (explain(f"--conv=direct,oc={oc},px=3") for oc in (2, 1))
    for told in (*wide, *narrow):
        assert told.starred == [told.chosen] and told.reason == "--conv says so"
        assert re.match("direct,oc=[12],px=3,", told.chosen) and told.candidates[told.chosen] > 0
    assert [told.chosen for told in wide] != [told.chosen for told in narrow]


def test_measured_schedules_are_marked_as_measured(explain, rnncc, tmp_path):
    records = tmp_path / "records.jsonl"
    done = rnncc("tune", network().write(tmp_path), "-o", records, "--trials=2", "--budget=99999", "--layout-search=greedy")
    assert done.returncode == 0, done.stderr
    convolutions = explain(f"--schedules={records}")
    assert len(convolutions) == 2
    for told in convolutions:
        assert re.fullmatch(r"measured, [\d.]+ us", told.reason) and told.starred == [told.chosen]


def of_one(shape=(1, 64, 28, 28), weights="constant", dims=(), **attributes):
    """One convolution of a 3 x 3 window, or 3 x 3 x 3, of an input of this shape."""
    model = Model()
    for dim in dims:
        model.dim(*dim)
    window = numpy.zeros((64, 64, *[3] * (len(shape) - 2)), numpy.float32)
    x = model.input("x", "f32", shape)
    w = model.constant(window) if weights == "constant" else model.input("w", "f32", window.shape)
    model.output(model.node("Conv", [x, w], **attributes))
    return model


ROW_MAJOR = {
    "a width that is a dim": (of_one((1, 64, 28, "W"), dims=[("W", 8, 28, 40)]), None),
    "volumes": (of_one((1, 64, 5, 5, 5)), "its input has neither one spatial axis nor two"),
    "a plane of 2^26 pixels": (of_one((1, 64, 4098, 16386)), "its input has planes of more than 67108863 pixels"),
    "weights that are an input": (of_one(weights="input"), None),
    "weights that are an input, and a stride": (of_one(weights="input", strides=[2, 2]), "its weights are not constant"),
    "much padding": (of_one(pads=[70000, 0, 0, 0]), "its padding may be less than 0 or more than 65536"),
    "a wide stride": (of_one(strides=[5000, 1]), "its window, stride or dilation is too large"),
    "a window that blocked kernels run": (of_one(), None),
}


@pytest.mark.parametrize("what", ROW_MAJOR)
def test_a_convolution_that_runs_row_major_says_why(what, explain):
    model, expected = ROW_MAJOR[what]
    (told,) = explain(model=model)
    assert told.row_major == expected
    assert told.chosen.startswith("plain,") == (expected is not None)
    assert told.few is None or what == "a width that is a dim"


def test_a_convolution_that_conv_forces_to_row_major_says_so(explain):
    assert {told.row_major for told in explain("--conv=plain")} == {"--conv says so"}


def test_the_layout_search_is_named_where_it_found_row_major_faster(explain):
    model = Model()
    x, w = model.input("x", "f32", [1, 1, 200, 200]), model.constant(numpy.zeros((1, 1, 3, 3), numpy.float32))
    model.output(model.node("Conv", [x, w]))  # a block would have one channel of use
    (told,) = explain("--layout-search=dp", "--schedules=none", model=model)
    assert told.row_major == "blocked tensors would take longer, with the transforms that they need: see --explain=layout"


def test_a_model_without_convolutions_says_so(rnncc, root):
    done = rnncc("inspect", "--explain=conv", root / "models" / "digits_rnn.json")
    assert (done.returncode, done.stdout) == (0, "the model has no convolution\n")
