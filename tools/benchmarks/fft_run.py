# SPDX-License-Identifier: MIT
"""tools/bench fft: transforms of real numbers, one row or a hundred, by rnncc, by ONNX Runtime's DFT, and by pocketfft
as NumPy and SciPy call it, in turns."""
import statistics
import subprocess
import sys
import time
from types import SimpleNamespace

from benchmarks import environment
from benchmarks.arguments import case_parser, parse_cases, positive
from benchmarks.turns import ratios_of

LENGTHS = (256, 320, 400, 512, 960, 1024, 4096)
ROWS = (1, 100)
CASES = {f"{kind}_{n}x{rows}": (kind, n, rows) for kind in ("real", "inverse") for n in LENGTHS for rows in ROWS}
PEERS = ("scipy", "numpy", "onnxruntime")
SECONDS = 0.004  # of a contestant in a round, about


def parser():
    top = case_parser(
        "fft",
        "Times transforms of real numbers, and inverse ones, on one thread: us a transform, and the medians' "
        "ratios to each peer, round by round.",
        epilog="NumPy and SciPy are called from Python, which costs them a few us a call: a hundred rows show their "
               "loops. Exit 1 if a result is wrong.")
    top.add_argument("--rounds", type=positive(int), default=20, help="default: 20")
    top.add_argument("--target", metavar="NAME", help="rnncc's; default: this CPU's")
    return top


def parse(words):
    return parse_cases(parser(), words, CASES)


def model_of(kind, n, rows):
    """DFT of `rows` rows, and its input."""
    import numpy as np
    from support.model_builder import Model
    rng, model = np.random.default_rng(n), Model()
    shape = (rows, n, 1) if kind == "real" else (rows, n // 2 + 1, 2)
    names = [model.input("x", "f32", shape), model.constant(np.array(n)), model.constant(np.array(1))]
    model.output(model.node("DFT", names, inverse=int(kind == "inverse"), onesided=1))
    return model, rng.standard_normal(shape).astype(np.float32)


def expected(kind, n, x):
    """In double."""
    import numpy as np
    if kind == "inverse":
        return np.fft.irfft(x[..., 0] + 1j * x[..., 1].astype(float), n)[..., None]
    spectra = np.fft.rfft(x[..., 0].astype(float))
    return np.stack([spectra.real, spectra.imag], -1)


class Called:
    """A function of Python, timed in a loop."""

    def __init__(self, function):
        self.function = function

    def times(self, runs):
        began = time.perf_counter()
        for _ in range(runs):
            self.function()
        return [(time.perf_counter() - began) / runs] * runs


def by_pocketfft(module, kind, n, x):
    """As float32, which both keep."""
    import numpy as np
    if kind == "inverse":
        spectra = (x[..., 0] + 1j * x[..., 1]).astype(np.complex64)
        return Called(lambda: module.irfft(spectra, n))
    signal = np.ascontiguousarray(x[..., 0])
    return Called(lambda: module.rfft(signal))


def contestants_of(job, kind, n, x):
    import numpy as np
    import scipy.fft
    from benchmarks.contestants import OnnxRuntime, Rnncc
    return {"rnncc": Rnncc().open(job, 1), "scipy": by_pocketfft(scipy.fft, kind, n, x),
            "numpy": by_pocketfft(np.fft, kind, n, x), "onnxruntime": OnnxRuntime().open(job, 1)}


def job_of(name, given):
    """The model's files for rnncc and ONNX Runtime."""
    import numpy as np
    import onnx
    kind, n, rows = CASES[name]
    folder = environment.BUILD / "bench" / f"fft_{name}"
    folder.mkdir(parents=True, exist_ok=True)
    model, x = model_of(kind, n, rows)
    onnx.save(model.onnx(), folder / "model.onnx")
    options = [f"--target={given.target}", "--machine=native"] if given.target else []
    rnncc = environment.BUILD / "compiler" / "rnncc"
    subprocess.run([rnncc, model.write(folder), "-o", folder / "module.so", *options], check=True)
    want = expected(kind, n, x)
    return SimpleNamespace(folder=folder, feeds={"x": x}, outputs={model.outputs[0]: np.zeros(want.shape, np.float32)}), want


def rounds_of(contestants, count):
    """Seconds of a run: one median a round, of as many runs as take SECONDS."""
    runs = {name: max(1, int(SECONDS / max(min(one.times(3)), 1e-7))) for name, one in contestants.items()}
    rounds = {name: [] for name in contestants}
    for _ in range(count):
        for name, one in contestants.items():
            rounds[name].append(statistics.median(one.times(runs[name])))
    return rounds


def line(name, rows, rounds):
    us = {who: 1e6 * statistics.median(rounds[who]) / rows for who in rounds}
    by = ratios_of(rounds)
    return f"{name:18}" + f"{us['rnncc']:9.3f}" + "".join(f"{us[peer]:9.3f} {by[peer]:5.2f}" for peer in PEERS)


def header():
    return f"{'us a transform':18}{'rnncc':>9}" + "".join(f"{peer:>9.9} {'ratio':>5}" for peer in PEERS)


def is_wrong(job, contestants, want):
    contestants["rnncc"].times(1)
    got, = job.outputs.values()
    return float(abs(got - want).max()) > 1e-5 * float(abs(want).max())


def run(given):
    wrong = []
    print(header())
    for name in given.names:
        kind, n, rows = CASES[name]
        job, want = job_of(name, given)
        contestants = contestants_of(job, kind, n, job.feeds["x"])
        wrong += [name] if is_wrong(job, contestants, want) else []
        print(line(name, rows, rounds_of(contestants, given.rounds)), flush=True)
    for name in wrong:
        print(f"tools/bench: {name}: rnncc's result is wrong", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(run(parse(sys.argv[1:])))
