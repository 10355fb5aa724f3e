# SPDX-License-Identifier: MIT
"""When someone speaks: the network of the package silero-vad, as its authors export it to ONNX, on ONNX Runtime.

    python -m pretrained.silero                the path of its model
    python -m pretrained.silero SOUND.wav      the probability of speech in each chunk of 32 ms, a line each; on stderr
                                               the time of a chunk

The network reads the last CONTEXT samples of the chunk before, then the chunk; its recurrent state goes from run to run.
"""
import sys
import time
import wave

import numpy
import onnxruntime

from pretrained import package_folder

CHUNK = {16000: 512, 8000: 256}
CONTEXT = {16000: 64, 8000: 32}


def model():
    return package_folder("silero_vad") / "data" / "silero_vad.onnx"


def windows(sound, rate):
    """f32 [1, context + chunk] for each whole chunk of the sound."""
    chunk, context = CHUNK[rate], CONTEXT[rate]
    padded = numpy.concatenate([numpy.zeros(context, numpy.float32), sound])
    return [padded[numpy.newaxis, start:start + context + chunk] for start in range(0, len(sound) - chunk + 1, chunk)]


class Listener:
    """ONNX Runtime on one thread."""

    def __init__(self, rate):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(model(), options, providers=["CPUExecutionProvider"])
        self.rate, self.state = numpy.array(rate, numpy.int64), numpy.zeros((2, 1, 128), numpy.float32)

    def hear(self, window):
        """The probability of speech."""
        probability, self.state = self.session.run(None, {"input": window, "state": self.state, "sr": self.rate})
        return float(probability[0, 0])


def read_wav(path):
    with wave.open(str(path)) as file:
        return numpy.frombuffer(file.readframes(file.getnframes()), "<i2").astype(numpy.float32) / 32768, file.getframerate()


def main(path):
    sound, rate = read_wav(path)
    listener, chunks = Listener(rate), windows(sound, rate)
    start = time.perf_counter()
    probabilities = [listener.hear(window) for window in chunks]
    taken = time.perf_counter() - start
    print("\n".join(f"{p:.6f}" for p in probabilities))
    print(f"{len(chunks)} chunks, {taken / len(chunks) * 1e6:.1f} us each, one thread", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(model())
    elif len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        raise SystemExit(__doc__)
