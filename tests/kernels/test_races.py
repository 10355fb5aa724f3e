# SPDX-License-Identifier: MIT
"""Kernels that lay out their own scratch memory run under ThreadSanitizer: what one thread writes, no other reads or
writes without a barrier between. The module and the rnnrun that runs it are built with ThreadSanitizer."""
import os
import platform
import re
import subprocess

import numpy
import pytest

from conftest import build_directory
from kernels.test_detection_kernels import suppression
from support.model_builder import Model

SANITIZE = "-fsanitize=thread"
RACE = 66  # ThreadSanitizer's exit code
RUNS = 5


@pytest.fixture(scope="module")
def watching_rnnrun(root, tmp_path_factory):
    program = tmp_path_factory.mktemp("races") / "rnnrun"
    sources = [path for room in ("command", "rnnrun", "speed") for path in (root / "tools" / room).glob("*.c")]
    include = [f"-I{root / folder}" for folder in ("runtime", "tools/command", "tools/speed")]
    include += [f"-I{build_directory() / 'tools' / 'report'}"]
    subprocess.run(["clang-19", "-std=gnu11", "-O1", "-D_GNU_SOURCE", '-DRNNCC_VERSION="0"', SANITIZE, *include,
                    *sources, root / "runtime" / "cpu.c", "-pthread", "-o", program], check=True)
    return program


def watched_module(folder):
    """The module of an emitted folder, with its Makefile's flags and the sanitizer's."""
    text = (folder / "Makefile").read_text()
    flags = [f"{name}={re.search(f'^{name} = (.*)$', text, re.M)[1]} {SANITIZE}"
             for name in ("KERNEL_FLAGS", "RUNTIME_FLAGS")]
    subprocess.run(["make", "-s", *flags, "LINK_FLAGS=-shared"], cwd=folder, check=True)
    return folder / "module.so"


def detection():
    """Several boxes and classes for each thread."""
    return suppression([(1500, 7, 300, 50), (40, 2, 40, 40), (500, 5, 0, 9)])


def best_of_rows():
    model, rng = Model(), numpy.random.default_rng(1)
    x = model.input("x", "f32", [9, 700, 3])
    for axis, k in ((1, 40), (0, 4), (2, 2), (1, 700)):
        model.output(*model.node("TopK", [x, model.constant(numpy.array([k]))], 2, axis=axis))
    return model, {x: rng.integers(0, 50, (9, 700, 3)).astype(numpy.float32)}


def layers_of_integers():
    """Layers of one and two directions, whose workers share each sample: each quantises what all write."""
    model, rng, feeds = Model(), numpy.random.default_rng(2), {}
    for op, gates, directions in (("LSTM", 4, 1), ("GRU", 3, 2)):
        x = model.input(f"x{gates}", "f32", [20, 3, 30])
        W, R = (model.constant(rng.uniform(-1, 1, (directions, gates * 70, n)).astype(numpy.float32)) for n in (30, 70))
        model.output(model.node(op, [x, W, R], hidden_size=70, precision="int8-dynamic",
                                direction="bidirectional" if directions == 2 else "forward"))
        feeds[x] = rng.uniform(-1, 1, (20, 3, 30)).astype(numpy.float32)
    return model, feeds


def ended(watching_rnnrun, module, feeds, folder):
    """The exit codes of some runs on four threads, even if there are fewer CPUs. The first race ends a run, because the
    rest of the run may never end."""
    inputs = []
    for name, array in feeds.items():
        numpy.save(folder / f"{name}.npy", array)
        inputs += ["--input", f"{name}=@{folder / name}.npy"]
    command = [watching_rnnrun, "run", module, *inputs, "--threads", "4"]
    environment = os.environ | {"TSAN_OPTIONS": "halt_on_error=1"}
    return {subprocess.run(command, capture_output=True, timeout=120, env=environment).returncode for _ in range(RUNS)}


# ThreadSanitizer sees accesses of up to 16 bytes: no wider vectors.
NARROW = ["--target=x86-64"] if platform.machine() == "x86_64" else []


@pytest.mark.parametrize("build, options", [(detection, []), (best_of_rows, []), (layers_of_integers, [*NARROW, "--rnn=workers=4"])])
def test_no_two_threads_race(rnncc, watching_rnnrun, tmp_path, build, options):
    model, feeds = build()
    done = rnncc(model.write(tmp_path), "--emit=c", "-o", tmp_path / "c", "--threads=4", *options)
    assert done.returncode == 0, done.stderr
    assert ended(watching_rnnrun, watched_module(tmp_path / "c"), feeds, tmp_path) == {0}


def test_a_barrier_that_is_missing_is_seen(rnncc, watching_rnnrun, tmp_path):
    model, feeds = detection()
    done = rnncc(model.write(tmp_path), "--emit=c", "-o", tmp_path / "c", "--threads=4")
    assert done.returncode == 0, done.stderr
    network = tmp_path / "c" / "network.c"
    without = network.read_text().replace("\n  module_barrier(run, team);", "")
    assert without != network.read_text()
    network.write_text(without)
    assert RACE in ended(watching_rnnrun, watched_module(tmp_path / "c"), feeds, tmp_path)
