# SPDX-License-Identifier: MIT
"""python -m pretrained.speech SOUND.wav [RATE]: sentences that Debian's espeak-ng speaks, with pauses between, over
noise that grows: 16-bit PCM of RATE samples a second (16000)."""
import subprocess
import sys
import wave

import numpy

SENTENCES = ("A compiler reads the network once, ahead of time.", "What is left is arithmetic.",
             "Silence is part of speech, and noise is not.", "The quick brown fox jumps over the lazy dog.")
PAUSE = 1.3  # seconds before, between and after
LOUDEST_NOISE = 0.02  # standard deviation, at the end


def spoken(sentence, rate):
    """float64 [samples], -1 to 1."""
    done = subprocess.run(["espeak-ng", "--stdout", sentence], capture_output=True, check=True)
    header = done.stdout.index(b"data")
    own_rate = int.from_bytes(done.stdout[24:28], "little")
    return resampled(numpy.frombuffer(done.stdout, "<i2", offset=header + 8) / 32768, own_rate, rate)


def resampled(sound, rate, wanted):
    """By its spectrum: frequencies above half the new rate are dropped, so there is no aliasing."""
    count = len(sound) * wanted // rate
    spectrum = numpy.fft.rfft(sound)[:count // 2 + 1]
    return numpy.fft.irfft(spectrum, count) * count / len(sound)


def speech(rate=16000, seed=1):
    """float32 [samples]."""
    pause = numpy.zeros(int(PAUSE * rate))
    sound = numpy.concatenate([pause, *(part for sentence in SENTENCES for part in (spoken(sentence, rate), pause))])
    noise = numpy.random.default_rng(seed).normal(0, LOUDEST_NOISE, len(sound)) * numpy.linspace(0, 1, len(sound))
    return numpy.clip(sound + noise, -1, 1).astype(numpy.float32)


def write_wav(path, sound, rate):
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes((sound * 32767).astype("<i2").tobytes())


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit("usage: python -m pretrained.speech SOUND.wav [RATE]")
    RATE = int(sys.argv[2]) if len(sys.argv) == 3 else 16000
    write_wav(sys.argv[1], speech(RATE), RATE)
