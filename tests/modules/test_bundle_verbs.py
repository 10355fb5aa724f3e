# SPDX-License-Identifier: MIT
"""`rnncc inspect` and `rnncc tune` of several networks, as `rnncc bundle` takes them; whose a message is."""
import json
import re

import numpy
import pytest

from support.model_builder import Model

STATE = "--state=reader:h=hN"


def recurrent(name):
    """A layer with a panel of units, one sample and five steps."""
    rng, model = numpy.random.default_rng(1), Model(name)
    draw = lambda *shape: model.constant(rng.uniform(-1, 1, shape).astype(numpy.float32))
    inputs = [model.input("x", "f32", [5, 1, 8]), draw(1, 48, 8), draw(1, 48, 16), None, None, model.input("h", "f32", [1, 1, 16])]
    model.output(*model.node("GRU", inputs, ["y", "hN"], hidden_size=16))
    return model


def convolutional(name):
    model = Model(name)
    weights = model.constant(numpy.random.default_rng(2).uniform(-1, 1, (16, 16, 3, 3)).astype(numpy.float32))
    model.output(model.node("Conv", [model.input("x", "f32", [1, 16, 6, 6]), weights], ["y"], kernel_shape=[3, 3]))
    return model


def product(name):
    model = Model(name)
    x = model.input("x", "f32", [model.dim("T", 1, 2, 9), 4])
    model.output(model.node("MatMul", [x, model.constant(numpy.eye(4, dtype=numpy.float32))]))
    return model


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The folder of reader.json, seer.json and adder.json."""
    folder = tmp_path_factory.mktemp("files")
    for make, name in ((recurrent, "reader"), (convolutional, "seer"), (product, "adder")):
        make(name).write(folder)
    return folder


def headings(text):
    return re.findall(r"^==== (.*) ====$", text, re.MULTILINE)


# ---- inspect ----

def test_each_network_is_inspected_as_it_is_alone(rnncc, files):
    alone = {name: rnncc("inspect", f"{name}.json", "--target=x86-64", *options, cwd=files).stdout
             for name, options in (("reader", ["--state=h=hN"]), ("adder", ["--dim=T=7"]))}
    done = rnncc("inspect", "reader.json", "adder.json", "--target=x86-64", STATE, "--dim=T=7", cwd=files)
    assert done.returncode == 0, done.stderr
    _, *parts = re.split(r"^==== \w+ ====\n", done.stdout, flags=re.MULTILINE)
    common = r"(?<= packed for x86-64), \d+ for all networks"
    assert [re.sub(common, "", part).rstrip("\n") for part in parts] == [text.rstrip("\n") for text in alone.values()]
    assert len(re.findall(common, done.stdout)) == 2 and headings(done.stdout) == ["reader", "adder"]


def test_one_network_may_have_a_name_and_several_may_be_of_one_file(rnncc, files):
    done = rnncc("inspect", "wide=adder.json", "narrow=adder.json", "--dim=wide:T=8", "--dim=narrow:T=4",
                 "--target=x86-64-v3,x86-64", cwd=files)
    assert headings(done.stdout) == ["wide, x86-64-v3", "narrow, x86-64-v3", "wide, x86-64", "narrow, x86-64"]
    assert re.findall(r"^inputs .*(f32.*)", done.stdout, re.MULTILINE) == ["f32[8, 4]", "f32[4, 4]"] * 2
    assert headings(rnncc("inspect", "one=adder.json", cwd=files).stdout) == ["one"]
    assert headings(rnncc("inspect", "adder.json", cwd=files).stdout) == []


def test_choices_are_explained_network_by_network(rnncc, files):
    done = rnncc("inspect", "reader.json", "seer.json", "--explain=conv", cwd=files)
    assert headings(done.stdout) == ["reader", "seer"] and done.stdout.count("  chosen: ") == 1


# ---- tune ----

LAYOUTS = "--layout-search=none"  # by none, what was measured may lose to the predicted time of another layout


@pytest.fixture(scope="module")
def tuned(rnncc, files, tmp_path_factory):
    """(the records' path, the CompletedProcess)."""
    records = tmp_path_factory.mktemp("tuned") / "records.jsonl"
    done = rnncc("tune", "reader.json", "adder.json", "again=seer.json", "seer.json", STATE, "-o", records, "--trials=1",
                 "--budget=2s", "--threads=1", LAYOUTS, cwd=files, timeout=300)
    assert done.returncode == 0, done.stderr
    return records, done


def test_each_network_is_tuned_and_a_layer_of_two_once(tuned):
    records, done = tuned
    assert headings(done.stdout) == ["reader", "adder", "again", "seer"]
    said = dict(zip(headings(done.stdout), re.split(r"^==== \w+ ====\n", done.stdout, flags=re.MULTILINE)[1:]))
    assert said["reader"].startswith("gru_") and said["again"].startswith("n1c16k16_") and said["seer"] == ""
    assert said["adder"] == "neither a convolution nor a recurrent layer to tune\n"
    assert "records.jsonl: network seer: note: 1 of 1 tasks are done\n" in done.stderr
    winners = [line for line in map(json.loads, records.read_text().splitlines()) if line["status"] == "best"]
    assert len({line["workload"] for line in winners}) == len(winners) == 2


def test_a_bundle_uses_what_was_tuned(rnncc, files, tuned, tmp_path):
    records, _ = tuned
    done = rnncc("inspect", "reader.json", "seer.json", STATE, f"--schedules={records}", "--explain=conv", "--threads=1", LAYOUTS, cwd=files)
    assert re.search(r"chosen: .*: measured, ", done.stdout), done.stdout + done.stderr
    done = rnncc("inspect", "reader.json", "seer.json", STATE, f"--schedules={records}", "--explain=rnn", "--threads=1", cwd=files)
    assert " a run of the model it was tuned in, by " in done.stdout, done.stdout + done.stderr
    done = rnncc("bundle", "reader.json", "seer.json", STATE, f"--schedules={records}", "--threads=1", "-o", tmp_path / "m.so", cwd=files)
    assert (done.returncode, done.stderr) == (0, "")


def test_networks_without_anything_to_tune_are_an_error(rnncc, files, tmp_path):
    done = rnncc("tune", "adder.json", "b=adder.json", "-o", tmp_path / "records.jsonl", cwd=files)
    assert done.returncode == 2 and "the networks have neither a convolution nor a recurrent layer to tune" in done.stderr


# ---- what makes no sense ----

@pytest.mark.parametrize("words, message", [
    (["inspect", "adder.json", "adder.json"], "inspect: expected networks of different names, found adder twice"),
    (["tune", "adder.json", "seer.json"], "tune: expected -o PATH, found none"),
    (["inspect", "adder.json", "seer.json", "--memory=plan.svg"], "inspect: --memory=FILE: expected one network, found 2"),
    (["inspect", "1st=adder.json"], "inspect: expected a file, or NAME=FILE with an identifier of C as the name"),
    (["inspect", "adder.json", "seer.json", "--dim=U=5"], '--dim: expected a named dim, found "U"; adder has "T"; seer has none')], ids=" ".join)
def test_what_makes_no_sense_is_told(rnncc, files, words, message):
    done = rnncc(*words, cwd=files)
    assert done.returncode == 2 and message in done.stderr, done.stderr


@pytest.mark.parametrize("verb", ["bundle", "inspect", "tune"])
def test_errors_say_whose_they_are(rnncc, files, tmp_path, verb):
    """By the file's name, or where the network is called otherwise, by the network's."""
    model = product("broken")
    model.nodes[0]["op"] = "MatMull"
    model.write(tmp_path)
    for word, told in ((tmp_path / "broken.json", "broken.json: nodes[0].op: byte "),
                       (f"other={tmp_path}/broken.json", "broken.json: network other: nodes[0].op: byte ")):
        done = rnncc(verb, "seer.json", word, *(["-o", tmp_path / "out"] if verb != "inspect" else []), cwd=files)
        assert done.returncode == 3 and told in done.stderr, done.stderr
    done = rnncc("inspect", "one=seer.json", "two=seer.json", "--freeze=two:x=3", cwd=files)
    assert done.returncode == 2 and "--freeze x: network two: error: the value is not of the shape" in done.stderr, done.stderr
