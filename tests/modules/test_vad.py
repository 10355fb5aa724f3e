# SPDX-License-Identifier: MIT
"""silero-vad's network as a stream, and tools/vad, the application: they give ONNX Runtime's probabilities."""
import subprocess
import sys

import numpy
import pytest

from conftest import ROOT
from support.module import Module

sys.path.insert(0, str(ROOT / "models"))

RATES = (16000, 8000)
TOLERANCE = 1e-4  # of a probability, over the whole stream: the goal for this network


@pytest.fixture(scope="module", params=RATES)
def rate(request):
    return request.param


@pytest.fixture(scope="module")
def module(compile, rate):
    from pretrained import silero
    samples = silero.CHUNK[rate] + silero.CONTEXT[rate]
    return compile(silero.model(), f"--freeze=sr={rate}", "--dim=input_0=1", f"--dim=input_1={samples}",
                   "--dim=state_1=1", "--state=state=stateN")


@pytest.fixture(scope="module")
def file(rate, tmp_path_factory):
    from pretrained import speech
    path = tmp_path_factory.mktemp("sound") / "sound.wav"
    speech.write_wav(path, speech.speech(rate), rate)
    return path


@pytest.fixture(scope="module")
def sound(file):
    from pretrained import silero
    return silero.read_wav(file)[0]


@pytest.fixture(scope="module")
def expected(sound, rate):
    from pretrained import silero
    listener = silero.Listener(rate)
    return numpy.array([listener.hear(window) for window in silero.windows(sound, rate)])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_stream_is_heard_as_onnx_runtime_hears_it(module, sound, rate, expected, threads):
    from pretrained import silero
    with Module(module) as loaded:
        context = loaded.context(threads)
        heard = [context.run({"input": window})["output"][0, 0] for window in silero.windows(sound, rate)]
        context.close()
    assert (expected > 0.9).any() and (expected < 0.1).any()  # there is speech, and there is none
    numpy.testing.assert_allclose(heard, expected, rtol=0, atol=TOLERANCE)


@pytest.fixture(scope="module")
def vad(rnnrun, module):
    def run(*arguments):
        return subprocess.run([rnnrun.path.parent / "vad", module, *arguments], capture_output=True, text=True, timeout=60)

    return run


def test_the_application_hears_the_same(vad, file, expected):
    done = vad(file, "--probabilities")
    assert done.returncode == 0, done.stderr
    heard = [float(line) for line in done.stdout.splitlines()]
    numpy.testing.assert_allclose(heard, expected, rtol=0, atol=TOLERANCE)


def test_each_sentence_is_a_span_of_speech(vad, file):
    from pretrained import speech
    assert len(vad(file).stdout.splitlines()) == len(speech.SENTENCES)


@pytest.mark.every_case
@pytest.mark.parametrize("content, complaint", [(b"", "not a .wav file"), (b"RIFF\0\0\0\0WAVEdata", "has no chunk")])
def test_a_file_that_is_not_sound_is_refused(vad, tmp_path, content, complaint):
    (tmp_path / "sound.wav").write_bytes(content)
    done = vad(tmp_path / "sound.wav")
    assert done.returncode == 2 and complaint in done.stderr


def test_another_module_is_refused(rnnrun, root, compile, file):
    done = subprocess.run([rnnrun.path.parent / "vad", compile(root / "models" / "hyphenate.json"), file],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "not a module of silero-vad" in done.stderr
