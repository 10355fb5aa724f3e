# SPDX-License-Identifier: MIT
"""`rnncc inspect --explain=rnn`: its output for each recurrent layer."""
import re

import numpy
import pytest

from support.model_builder import Model

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def layers(op, count=1, T=100, B=1, I=64, H=64, directions=1, **attributes):
    """A stack of layers with zero weights. One direction each, or both of a single layer."""
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


def test_verbose_listings_are_whole(rnncc, tmp_path):
    model = layers("RNN", directions=2, direction="bidirectional").write(tmp_path)
    text = rnncc("inspect", "--explain=rnn", "-v", model).stdout
    assert len(schedules(text)) == len(set(schedules(text))) == int(re.search(r"together: (\d+) valid", text)[1]) > 40


def test_a_layer_says_which_stack_it_is_of(explain):
    text = explain(layers("GRU", count=2, linear_before_reset=1))
    assert re.search(r"^layer 2 of 2.*forward, number 2 of a stack of 2$", text, re.MULTILINE)


def stack_choice(text):
    return int(re.search(r"^  chosen: chunk=(\d+)", text, re.MULTILINE)[1])


def test_a_stack_of_small_layers_is_a_wavefront_and_one_of_large_layers_is_not(rnncc, explain, tmp_path):
    small, large = layers("LSTM", count=3, I=64, H=64), layers("LSTM", count=3, I=512, H=512)
    two = ["--target=x86-64-v4", "--threads=2"]
    assert stack_choice(explain(small, *two)) > 0
    assert stack_choice(explain(large, *two)) == 0
    assert stack_choice(explain(small, "--target=x86-64-v4", "--threads=1")) == 0
    assert re.search(r"lstm_\S+_w\d+ ", rnncc("inspect", *two, small.write(tmp_path)).stdout)


def test_a_model_without_recurrent_layers_says_so(explain):
    model = Model()
    model.output(model.node("Relu", [model.input("x", "f32", [3])], ["y"]))
    assert explain(model) == "no recurrent layers\n"


@pytest.mark.parametrize("arguments", [["inspect", "--explain=pool"], ["--explain=rnn"], ["targets", "--explain=rnn"]])
def test_a_wrong_explain_option_is_a_usage_error(rnncc, tmp_path, arguments):
    model = [] if "targets" in arguments else [layers("RNN").write(tmp_path)]
    done = rnncc(*arguments, *model)
    assert done.returncode == 2 and "--explain" in done.stderr


def candidates(text):
    """(chosen, input, P, X_i, X_j, X_k, total us) of each row."""
    rows = re.findall(r"^(\*?) +(ahead|step) +(\d+) +(\d+)x +(\d+)x(\d+) .* ([\d.]+)$", text, re.MULTILINE)
    return [(bool(mark), name, int(p), int(i), int(j), int(k), float(total)) for mark, name, p, i, j, k, total in rows]


def test_every_degree_of_parallelism_has_a_split_and_a_time_and_one_is_chosen(explain):
    rows = candidates(explain(layers("LSTM", H=256, I=256), "--threads=4"))
    assert {row[2] for row in rows} == {1, 2, 3, 4}
    assert all(i * j * k == p and k == 1 for _, _, p, i, j, k, _ in rows)
    assert sum(row[0] for row in rows) == 1


def test_the_choice_is_the_least_time_or_says_by_how_much_it_is_not(explain):
    for H in (48, 64, 256):
        text = explain(layers("GRU", H=H, I=H, linear_before_reset=1))
        rows = candidates(text)
        chosen, least = next(row[-1] for row in rows if row[0]), min(row[-1] for row in rows)
        over = re.search(r"([\d.]+)% over the least", text)
        assert ("the least predicted time" in text) if chosen == least else abs(chosen / least - 1 - float(over[1]) / 100) < 0.01


def test_one_thread_leaves_one_worker(explain):
    assert {row[2] for row in candidates(explain(layers("LSTM", B=8), "--threads=1"))} == {1}


def test_the_chosen_variant_is_what_the_module_runs(rnncc, tmp_path):
    model = layers("LSTM", T=100, H=256, I=256).write(tmp_path)
    assert "_p3" in rnncc("inspect", "--threads=3", "--rnn=workers=3", model).stdout
    explained = rnncc("inspect", "--explain=rnn", "--target=x86-64-v3", "--threads=2", model).stdout
    workers = re.search(r"chosen: .*workers=(\d+)", explained)[1]
    assert f"_p{workers}" in rnncc("inspect", "--target=x86-64-v3", "--threads=2", model).stdout


@pytest.mark.parametrize("count", [1, 2], ids=["by itself", "in a stack"])
def test_chunks_of_a_layer_are_explained_as_they_run(rnncc, tmp_path, count):
    model = layers("LSTM", count=count, T=100, B=10, H=256, I=256).write(tmp_path)
    options = ["--target=x86-64-v3", "--threads=2", model]
    explained = re.findall(r"chosen: input=.*chunk=(\d+)", rnncc("inspect", "--explain=rnn", *options).stdout)
    run = re.findall(r"lstm_i256h256\S*?(?:_c(\d+))?$", rnncc("inspect", *options).stdout.replace(" ", "\n"), re.MULTILINE)
    assert len(explained) == count and {chunk or "0" for chunk in run} == set(explained)
    assert (explained[0] != "0") == (count == 1)


@pytest.mark.parametrize("threads", ["0", "-1", "two", "1025", "", "1.5"])
def test_a_wrong_number_of_threads_is_a_usage_error(rnncc, tmp_path, threads):
    done = rnncc("inspect", f"--threads={threads}", layers("RNN").write(tmp_path))
    assert done.returncode == 2 and "--threads" in done.stderr
