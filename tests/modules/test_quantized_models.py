# SPDX-License-Identifier: MIT
"""How accurate the models of models/ and silero-vad's network are in eight bits, on data that gave no range: rnncc quantize
has one part of the held-out data, and the accuracy is measured on the other."""
import sys

import numpy
import pytest
from support.amount import long_tests
from support.emitted import run_by
from support.hyphenation import as_by_patterns, groups_of, held_out_words, word_inputs
from support.module import Module
from support.quantised import quantise, rows

from conftest import ROOT

sys.path.insert(0, str(ROOT / "models"))

HALVES = (0, 1) if long_tests() else (0,)  # of the held-out data, that give ranges; the others are judged
RATES = (16000, 8000) if long_tests() else (16000,)


def outputs(path, runs, output):
    """The output of each run, one after the other, states carried."""
    with Module(path) as module, module.context(1) as context:
        return [context.run(inputs)[output] for inputs in runs]


@pytest.mark.every_case
@pytest.mark.parametrize("name, recurrent", [("digits_cnn", "weights"), *(("digits_rnn", how) for how in ("weights", "dynamic", "static"))])
def test_digits_lose_at_most_0_3_points(root, rnncc, compile, tmp_path, name, recurrent):
    images = numpy.load(root / "models" / "held_out" / "digits.images.npy")
    labels = numpy.load(root / "models" / "held_out" / "digits.labels.npy")
    right = {"f32": 0, "int8": 0}
    for half in HALVES:
        numpy.save(tmp_path / "x.npy", images[half::2])
        done = quantise(rnncc, root / "models" / f"{name}.json", tmp_path / "q.json", f"--recurrent={recurrent}",
                        data=tmp_path / "x.npy")
        assert all(row[5].startswith("int8") for row in rows(done).values())
        runs = [{"x": part} for part in numpy.split(images[1 - half::2], 3)]
        for precision, model in (("f32", root / "models" / f"{name}.json"), ("int8", tmp_path / "q.json")):
            found = numpy.concatenate(outputs(compile(model), runs, "probabilities")).argmax(1)
            right[precision] += (found == labels[1 - half::2]).sum()
    assert right["int8"] >= right["f32"] - 0.003 * len(images) * len(HALVES) / 2, right


@pytest.mark.optimised  # to run: a thousand words take longer without clang's passes than these take
def test_hyphenation_loses_at_most_0_2_points(root, rnncc, compile, tmp_path):
    words = held_out_words()
    right = {"f32": 0, "int8": 0}
    for half in HALVES:
        for k, group in enumerate(groups_of(words[half::2])[:30]):
            for name, array in word_inputs(group).items():
                numpy.save(tmp_path / f"{name}{k:02}.npy", array)
        done = quantise(rnncc, root / "models" / "hyphenate.json", tmp_path / "q.json",
                        *(f"--data={name}={tmp_path}/{name}*.npy" for name in ("letters", "lengths")))
        assert [row[5] for row in rows(done).values()] == ["int8 weights", "int8 weights", "int8"]
        groups = groups_of(words[1 - half::2])
        for precision, model in (("f32", root / "models" / "hyphenate.json"), ("int8", tmp_path / "q.json")):
            found = outputs(compile(model), [word_inputs(group) for group in groups], "probability")
            right[precision] += sum(as_by_patterns(groups, found))
    assert len(words) == 2000 and right["int8"] >= right["f32"] - 0.002 * len(words) * len(HALVES) / 2, right


CALIBRATION = ("Numbers of eight bits are enough for most of what is heard.", "Where someone speaks, a program listens.",
               "Windows of sound follow one another.")


def other_speech(rate):
    """Other sentences than those that are judged, over noise that fades."""
    from pretrained import speech
    pause = numpy.zeros(rate)
    sound = numpy.concatenate([pause, *(part for text in CALIBRATION for part in (speech.spoken(text, rate), pause))])
    noise = numpy.random.default_rng(5).normal(0, 0.02, len(sound)) * numpy.linspace(1, 0, len(sound))
    return numpy.clip(sound + noise, -1, 1).astype(numpy.float32)


@pytest.mark.parametrize("how", ["weights", pytest.param("--max-error=0.005", marks=pytest.mark.long)])
def test_speech_is_heard_in_the_same_chunks_of_99_5_percent(rnncc, compile, tmp_path, how):
    from pretrained import silero, speech
    same = []
    for rate in (16000, 8000):
        settings = [f"--freeze=sr={rate}", "--dim=input_0=1", f"--dim=input_1={silero.CHUNK[rate] + silero.CONTEXT[rate]}",
                    "--dim=state_1=1", "--state=state=stateN"]
        numpy.save(tmp_path / "x.npy", numpy.concatenate(silero.windows(other_speech(rate), rate)))
        given = {} if how == "weights" else {"data": tmp_path / "x.npy"}
        done = quantise(rnncc, silero.model(), tmp_path / "q.json", *settings, *([how] if given else []), **given)
        assert sum(row[5].startswith("int8") for row in rows(done).values()) >= (2 if given else 7)
        runs = [{"input": window} for window in silero.windows(speech.speech(rate), rate)]
        heard = [numpy.ravel(outputs(module, runs, "output")) > 0.5
                 for module in (compile(silero.model(), *settings), compile(tmp_path / "q.json"))]
        assert heard[0].any() and not heard[0].all()
        same += list(heard[0] == heard[1])
    assert len(same) > 1000 and numpy.mean(same) >= 0.995, numpy.mean(same)


@pytest.mark.parametrize("precision", ["bf16", "f16"])
class TestWeightsOf16Bits:
    """They change at most 0.1 points."""

    @pytest.mark.every_case
    @pytest.mark.parametrize("name", ["digits_cnn", "digits_rnn"])
    def test_digits(self, root, compile, precision, name):
        images = numpy.load(root / "models" / "held_out" / "digits.images.npy")
        labels = numpy.load(root / "models" / "held_out" / "digits.labels.npy")
        runs = [{"x": part} for part in numpy.split(images, len(images) // 6)]
        model = root / "models" / f"{name}.json"
        wide, narrow = ((numpy.concatenate(outputs(compile(model, *options), runs, "probabilities")).argmax(1) == labels).mean()
                        for options in ((), (f"--precision={precision}",)))
        assert narrow >= wide - 0.001, (wide, narrow)

    @pytest.mark.optimised
    def test_hyphenation(self, root, compile, precision):
        groups = groups_of(held_out_words())[::1 if long_tests() else 4]
        model, right = root / "models" / "hyphenate.json", []
        for options in ((), (f"--precision={precision}",)):
            found = outputs(compile(model, *options), [word_inputs(group) for group in groups], "probability")
            right.append(numpy.mean(as_by_patterns(groups, found)))
        assert right[1] >= right[0] - 0.001, right

    def test_speech(self, compile, precision):
        from pretrained import silero, speech
        same = []
        for rate in RATES:
            settings = [f"--freeze=sr={rate}", "--dim=input_0=1", f"--dim=input_1={silero.CHUNK[rate] + silero.CONTEXT[rate]}",
                        "--dim=state_1=1", "--state=state=stateN"]
            runs = [{"input": window} for window in silero.windows(speech.speech(rate), rate)]
            wide, narrow = (numpy.ravel(outputs(compile(silero.model(), *settings, *options), runs, "output")) > 0.5
                            for options in ((), (f"--precision={precision}",)))
            same += list(wide == narrow)
        assert len(same) > 500 * len(RATES) and numpy.mean(same) >= 0.999, numpy.mean(same)


@pytest.fixture
def emulated(compile, aarch64_rnnrun, tmp_path):
    """emulated(model, runs, output) -> the output of each run by products of bf16, under qemu."""
    def run(model, runs, output):
        module = compile(model, "--target=aarch64-linux-gnu+bf16", "--precision=bf16-dynamic")
        return [run_by(aarch64_rnnrun, module, inputs, [output], tmp_path)[output] for inputs in runs]

    return run


class TestProductsOfBf16:
    """They change at most 0.1 points, too."""

    def check_digits(self, root, compile, name, narrow):
        """narrow(model, runs, output): the outputs by bf16."""
        images = numpy.load(root / "models" / "held_out" / "digits.images.npy")
        labels = numpy.load(root / "models" / "held_out" / "digits.labels.npy")
        runs, model = [{"x": part} for part in numpy.split(images, 6)], root / "models" / f"{name}.json"
        wide, small = ((numpy.concatenate(found).argmax(1) == labels).mean()
                       for found in (outputs(compile(model), runs, "probabilities"), narrow(model, runs, "probabilities")))
        assert small >= wide - 0.001, (wide, small)

    @pytest.mark.every_case
    @pytest.mark.parametrize("name", ["digits_cnn", "digits_rnn"])
    def test_digits(self, root, compile, emulated, name):
        self.check_digits(root, compile, name, emulated)

    def test_digits_by_matrices_in_registers(self, root, compile):
        def narrow(model, runs, output):
            options = "--target=x86-64-v4+vnni+amx", "--precision=bf16-dynamic", "--conv=matrices_bf16"
            return outputs(compile(model, *options), runs, output)

        self.check_digits(root, compile, "digits_cnn", narrow)

    @pytest.mark.optimised
    def test_hyphenation(self, root, compile, emulated):
        groups = groups_of(held_out_words())[::4 if long_tests() else 32]
        model, runs = root / "models" / "hyphenate.json", [word_inputs(group) for group in groups]
        right = [numpy.mean(as_by_patterns(groups, found))
                 for found in (outputs(compile(model), runs, "probability"), emulated(model, runs, "probability"))]
        assert right[1] >= right[0] - 0.001, right
