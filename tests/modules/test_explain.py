# SPDX-License-Identifier: MIT
"""`rnncc inspect --explain=rnn`: what it says of each recurrent layer."""
import re

import numpy
import pytest

from support.model_builder import Model

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def layers(op, count=1, T=100, B=1, I=64, H=64, directions=1, **attributes):
    """A stack of layers, its weights zero. One direction each, or the two of a single layer."""
    model, weights, gates = Model(), numpy.zeros, GATES[op]
    value = model.input("x", "f32", [T, B, I])
    for level in range(count):
        inputs = [value, model.constant(weights((directions, gates * H, I if level == 0 else H), numpy.float32)),
                  model.constant(weights((directions, gates * H, H), numpy.float32))]
        value = model.node(op, inputs, [f"y{level}"], hidden_size=H, **attributes)
        if level + 1 < count:
            value = model.node("Squeeze", [value, model.constant(numpy.array([1]))], [f"x{level + 1}"])
    model.output(value)
    return model


@pytest.fixture
def explain(rnncc, tmp_path):
    def explained(model, *options):
        done = rnncc("inspect", "--explain=rnn", *options, model.write(tmp_path))
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return explained


def schedules(text):
    """(rule, phases) of each listed schedule."""
    return re.findall(r"^  (survives|order|dependency|symmetry) +(\S.*)$", text, re.MULTILINE)


def test_every_schedule_of_an_lstm_is_listed_with_the_rule_that_prunes_it(explain):
    listed = schedules(explain(layers("LSTM")))
    assert [phases for rule, phases in listed if rule == "survives"] == [
        "W(0) W(1) | R(0) | R(1)", "W(0) R(0) | W(1) R(1)"]
    assert ("dependency", "W(0) | W(1) | R(0) | R(1)") in listed
    assert ("order", "R(0) | W(0) W(1) | R(1)") in listed
    assert ("symmetry", "W(0) W(1) R(0) | R(1)") in listed
    assert len(listed) == len(set(listed)) == 19


def test_the_counts_are_those_of_the_listing(explain):
    text = explain(layers("RNN"))
    rules = [rule for rule, _ in schedules(text)]
    found = re.search(r"together: (\d+) valid; order prunes (\d+), dependency (\d+), symmetry (\d+); (\d+) survive", text)
    assert [int(count) for count in found.groups()] == [
        len(rules), *(rules.count(rule) for rule in ("order", "dependency", "symmetry", "survives"))]


def test_long_listings_are_cut_and_say_so(explain):
    text = explain(layers("LSTM", directions=2, direction="bidirectional"))
    assert len(schedules(text)) < 20
    assert re.search(r"order +\.\.\. and \d+ more", text)


def test_a_layer_says_which_one_it_stands_on(explain):
    text = explain(layers("GRU", count=2, linear_before_reset=1))
    assert re.search(r"^layer 2 of 2.*forward, on layer 1$", text, re.MULTILINE)


def test_a_model_without_recurrent_layers_says_so(explain):
    model = Model()
    model.output(model.node("Relu", [model.input("x", "f32", [3])], ["y"]))
    assert explain(model) == "no recurrent layers\n"


@pytest.mark.parametrize("arguments", [["inspect", "--explain=conv"], ["--explain=rnn"], ["targets", "--explain=rnn"]])
def test_what_cannot_be_explained_is_a_usage_error(rnncc, tmp_path, arguments):
    model = [] if "targets" in arguments else [layers("RNN").write(tmp_path)]
    done = rnncc(*arguments, *model)
    assert done.returncode == 2 and "--explain" in done.stderr
