# SPDX-License-Identifier: MIT
"""The models of models/: each compiled module decides every held-out item like PyTorch, and reaches the accuracy that its
model file states."""
import hashlib
import json
import os
import subprocess

import jsonschema
import numpy
import pytest
from support.amount import long_tests
from support.hyphenation import groups_of, held_out_words, hyphenated, word_inputs

DIGITS = ("digits_rnn", "digits_cnn")
MODELS = DIGITS + ("hyphenate",)

# Probabilities come from logits below 32 in magnitude, sums of at most 224 products in another order than PyTorch's
# (sqrt(224) * 2^-24 * 32 = 3e-5 if errors add up like a random walk); dp = p (1 - p) dlogit <= dlogit / 4.
TOLERANCE = 1e-5


def model_file(root, name):
    return root / "models" / f"{name}.json"


def provenance(root, name):
    return json.loads(model_file(root, name).read_text())["x-provenance"]


def held_out(root, file):
    return numpy.load(root / "models" / "held_out" / file)


def run(rnnrun, module, directory, inputs, output):
    """One run of the module on arrays; the named output."""
    arguments = []
    for name, array in inputs.items():
        numpy.save(directory / f"{name}.npy", array)
        arguments += ["--input", f"{name}=@{directory}/{name}.npy"]
    done = rnnrun("run", module, *arguments, "--output", f"{output}=@{directory}/{output}.npy")
    assert done.returncode == 0, done.stderr
    return numpy.load(directory / f"{output}.npy")


@pytest.fixture(scope="module")
def digit_probabilities(request, root, compile, rnnrun, tmp_path_factory):
    """name -> the compiled module's output for all held-out images, 60 in a run."""
    known = {}

    def of(name):
        if name not in known:
            module, directory = compile(model_file(root, name)), tmp_path_factory.mktemp(name)
            parts = numpy.split(held_out(root, "digits.images.npy"), 6)
            known[name] = numpy.concatenate(
                [run(rnnrun, module, directory, {"x": part}, "probabilities") for part in parts])
        return known[name]

    return of


@pytest.mark.parametrize("name", DIGITS)
def test_digits_decided_as_pytorch_decides(name, root, digit_probabilities):
    expected = held_out(root, f"{name}.probabilities.npy")
    numpy.testing.assert_allclose(digit_probabilities(name), expected, rtol=0, atol=TOLERANCE)
    numpy.testing.assert_array_equal(digit_probabilities(name).argmax(axis=1), expected.argmax(axis=1))


@pytest.mark.parametrize("name, least", [("digits_rnn", 0.96), ("digits_cnn", 0.98)])
def test_digits_accuracy_is_the_stated_one(name, least, root, digit_probabilities):
    right = digit_probabilities(name).argmax(axis=1) == held_out(root, "digits.labels.npy")
    assert len(right) == 360
    assert right.mean() == pytest.approx(provenance(root, name)["accuracy"], abs=1e-9)
    assert right.mean() >= least


def test_words_of_several_lengths_in_one_run_are_hyphenated_as_by_pytorch(root, compile, rnnrun, tmp_path):
    module = compile(model_file(root, "hyphenate"))
    for group in groups_of(held_out_words())[::1 if long_tests() else 5]:
        got = run(rnnrun, module, tmp_path, word_inputs(group), "probability")
        assert [hyphenated(word, row) for (word, *_), row in zip(group, got, strict=True)] == [row[2] for row in group]


@pytest.fixture(scope="module")
def words_one_by_one(root, rnnrun, compile):
    """The output of tools/hyphenate for each held-out word."""
    program = rnnrun.path.parent / "hyphenate"
    text = "".join(f"{word}\n" for word, *_ in held_out_words())
    done = subprocess.run([program, compile(model_file(root, "hyphenate"))], input=text, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_words_one_by_one_are_hyphenated_as_by_pytorch(words_one_by_one):
    assert words_one_by_one == [row[2] for row in held_out_words()]


def test_hyphenation_accuracy_is_the_stated_one(root, words_one_by_one):
    right = numpy.mean([got == row[1] for got, row in zip(words_one_by_one, held_out_words(), strict=True)])
    assert right == pytest.approx(provenance(root, "hyphenate")["accuracy"], abs=1e-9)
    assert right >= 0.91


@pytest.mark.parametrize("name", MODELS)
def test_weights_are_small_and_the_ones_the_model_names(name, root):
    (weights,) = json.loads(model_file(root, name).read_text())["weights"]
    data = (root / "models" / weights["file"]).read_bytes()
    assert len(data) <= 2_000_000
    assert hashlib.sha256(data).hexdigest() == weights["sha256"]


@pytest.mark.parametrize("name", MODELS)
def test_model_follows_the_published_schema(name, root):
    schema = json.loads((root / "models" / "schema.json").read_text())
    jsonschema.validate(json.loads(model_file(root, name).read_text()), schema)


@pytest.mark.parametrize("name", MODELS)
def test_compiling_again_elsewhere_gives_the_same_bytes(name, root, rnncc, compile, tmp_path):
    done = rnncc(os.path.relpath(model_file(root, name), tmp_path), "-o", "again.so", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again.so").read_bytes() == compile(model_file(root, name)).read_bytes()
