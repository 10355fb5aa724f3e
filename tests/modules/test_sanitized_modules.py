# SPDX-License-Identifier: MIT
"""Modules whose C is built with AddressSanitizer and UndefinedBehaviorSanitizer: runs touch no memory but their own, and
do nothing that C leaves undefined."""
import os
import subprocess
from pathlib import Path

import numpy
import pytest

from conftest import ROOT
from graphs.movement_models import CASES as MOVEMENTS
from graphs.op_models import CASES as OPERATORS
from graphs.quantised_models import QUANTISED
from support.amount import long_tests
from support.machine import need_target
from support.merge import merged
from support.small_networks import networks, recurrent
from support.watched import made

pytestmark = pytest.mark.unsanitized  # the module has them

CLANG = "clang-19 -fsanitize=address,undefined -fno-sanitize-recover=all -shared-libasan"
SEEDS, SHARE = (4, 1) if long_tests() else (1, 3)  # of each operator; one of so many operators runs
TARGETS = ["x86-64-v4", "x86-64-v3"] if long_tests() else ["native"]
SHIPPED = ["digits_rnn", "digits_cnn", "hyphenate"] if long_tests() else ["digits_rnn"]


@pytest.fixture(scope="module")
def sanitizers():
    """The library that must be loaded before the program's."""
    name = "libclang_rt.asan-x86_64.so"
    path = subprocess.run(["clang-19", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
    if not Path(path).is_file():
        pytest.skip(f"clang has no {name}")
    return {**os.environ, "LD_PRELOAD": path, "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}


@pytest.fixture
def sanitized(rnncc, tmp_path):
    """sanitized(model, target) -> the module, which this CPU can run, or the test is skipped. level: how far clang
    optimises, in place of -O1."""

    def build(model, target, level=""):
        need_target(f"--target={target}")
        done = rnncc(model, "--emit=c", f"--target={target}", "-o", tmp_path / "c")
        assert done.returncode == 0, done.stderr
        return made(tmp_path / "c", CLANG, level)

    return build


def fills(folder, feeds):
    for name, array in feeds.items():
        numpy.save(folder / f"{name}.npy", array)
    return [word for name in feeds for word in ("--input", f"{name}=@{folder}/{name}.npy")]


def runs(rnnrun, module, words, environment):
    for threads in 1, 2:
        done = rnnrun("run", module, "--threads", threads, *words, env=environment)
        assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_models(sanitized, sanitizers, rnnrun, name, target):
    module = sanitized(ROOT / "models" / f"{name}.json", target)
    names = [line.split()[1] for line in rnnrun("inspect", module, env=sanitizers).stdout.splitlines() if line.startswith("input")]
    runs(rnnrun, module, [word for name in names for word in ("--input", f"{name}=random")], sanitizers)


@pytest.mark.parametrize("target", TARGETS)
def test_layers_whose_channels_fill_no_vector(sanitized, sanitizers, rnnrun, tmp_path, target):
    model, feeds = networks()
    runs(rnnrun, sanitized(model.write(tmp_path), target), fills(tmp_path, feeds), sanitizers)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("cases", [OPERATORS, MOVEMENTS, QUANTISED], ids=["arithmetic", "movement", "quantised"])
def test_operators(sanitized, sanitizers, rnnrun, tmp_path, cases, target):
    """Side by side in a network."""
    parts = [make(numpy.random.default_rng([seed, *name.encode()])) for name, make in list(cases.items())[::SHARE] for seed in range(SEEDS)]
    model, feeds = merged(parts)
    runs(rnnrun, sanitized(model.write(tmp_path), target), fills(tmp_path, feeds), sanitizers)


def test_full_blocks_of_recurrent_integers(sanitized, sanitizers, rnnrun, tmp_path):
    """120 samples are whole blocks of any number of rows. Not optimised: clang leaves out stores of what has no value, also
    those beyond a tile. One thread, because frames are large."""
    model, feeds = recurrent(numpy.random.default_rng(3), "LSTM", 4, samples=120, precision="int8-dynamic")
    module = sanitized(model.write(tmp_path), "x86-64", "-O0")
    done = rnnrun("run", module, "--threads", 1, *fills(tmp_path, feeds), env=sanitizers)
    assert done.returncode == 0, done.stderr
