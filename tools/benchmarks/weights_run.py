# SPDX-License-Identifier: MIT
"""tools/bench weights: what weights_set takes, over a copy of the same bytes by memcpy on as many threads, in turns."""
import ctypes
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from benchmarks import environment
from benchmarks.arguments import case_parser, parse_cases, positive

CASES = {"lstm_1024": ("LSTM", 4, 1024), "lstm_512": ("LSTM", 4, 512), "gru_1024": ("GRU", 3, 1024), "gru_256": ("GRU", 3, 256)}
THREADS = (1, 2)


def parser():
    top = case_parser(
        "weights",
        "Sets all weights of a recurrent layer in a module of --weights=mutable, and copies as many bytes by memcpy, "
        "in turns: medians in ms, their ratio, and that of the least times.")
    top.add_argument("--rounds", type=positive(int), default=100, help="default: 100")
    return top


def parse(words):
    return parse_cases(parser(), words, CASES)


def module_of(name):
    """The path of a module of the layer, and its weights."""
    import numpy as np
    from support.model_builder import Model
    op, gates, width = CASES[name]
    rng, model = np.random.default_rng(1), Model(name)
    model.dim("T", 1, 50, 100)
    shapes = {"W": (1, gates * width, width), "R": (1, gates * width, width), "B": (1, 2 * gates * width)}
    weights = {key: rng.standard_normal(shape).astype(np.float32) for key, shape in shapes.items()}
    layer = [model.constant(array, key) for key, array in weights.items()]
    model.output(*model.node(op, [model.input("x", "f32", ["T", 1, width]), *layer], ["y", "last"], hidden_size=width))
    folder = environment.BUILD / "bench" / f"weights_{name}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "module.so"
    subprocess.run([environment.BUILD / "compiler" / "rnncc", model.write(folder), "--weights=mutable", "-o", path], check=True)
    return path, weights


def copier(arrays, threads):
    """A function that copies all arrays to other memory, each thread a share of each."""
    import numpy as np
    memcpy = ctypes.CDLL(None).memcpy
    memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    targets, pool = [np.zeros_like(array) for array in arrays], ThreadPoolExecutor(threads)

    def share(rank):
        for source, target in zip(arrays, targets):
            begin, end = source.nbytes * rank // threads, source.nbytes * (rank + 1) // threads
            memcpy(target.ctypes.data + begin, source.ctypes.data + begin, end - begin)

    return lambda: share(0) if threads == 1 else list(pool.map(share, range(threads)))


def seconds(function):
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def measured(path, weights, threads, rounds):
    """path: of the module. Of each round ms of the copy and of weights_set. Which one is first changes: on a busy machine it has more of its time
    slice left."""
    from support.module import rnncc
    module = rnncc.load(path, threads=threads)
    ways = [copier(list(weights.values()), threads), lambda: module.weights.update(weights)]
    found = []
    for turn in range(rounds):
        times = [1e3 * seconds(way) for way in (ways if turn % 2 else ways[::-1])]
        found.append(times if turn % 2 else times[::-1])
    return list(zip(*found))


def run(given):
    print(f"{'':12}{'threads':>8}{'memcpy':>10}{'set':>10}{'ratio':>8}{'of least':>10}")
    for name in given.names:
        path, weights = module_of(name)
        for threads in THREADS:
            times = measured(path, weights, threads, given.rounds)
            copy, whole = map(statistics.median, times)
            least = min(times[1]) / min(times[0])
            print(f"{name:12}{threads:8}{copy:10.3f}{whole:10.3f}{whole / copy:8.2f}{least:10.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(run(parse(sys.argv[1:])))
