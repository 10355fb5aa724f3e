# SPDX-License-Identifier: MIT
"""Targets that are no row of targets.def: any triple of a little-endian Linux that clang knows, in plain C."""
import os
import re
import subprocess

import numpy
import pytest

from conftest import ROOT
from support.amount import some
from support.clang import clang_name
from support.emitted import run_by
from support.targets import need_foreign

MODELS = {"digits_cnn": ("x", "probabilities"), "digits_rnn": ("x", "probabilities")}
TRIPLES = some(["arm-linux-gnueabihf", "powerpc64le-linux-gnu", "i686-linux-gnu"], 1)
IMAGES = numpy.random.default_rng(3).random((5, 8, 8), dtype=numpy.float32)
FLOOR = (2, 17)  # of glibc's versions


@pytest.mark.parametrize("triple", TRIPLES)
@pytest.mark.parametrize("model", some(["digits_rnn", "digits_cnn"], 1))
def test_trained_models_decide_as_on_x86_64(model, triple, rnnrun, rnnrun_of, compile, tmp_path):
    path, (given, wanted) = ROOT / "models" / f"{model}.json", MODELS[model]
    here = run_by(rnnrun, compile(path, "--target=x86-64"), {given: IMAGES}, [wanted], tmp_path)
    there = run_by(rnnrun_of(triple), compile(path, f"--target={triple}"), {given: IMAGES}, [wanted], tmp_path)
    numpy.testing.assert_allclose(there[wanted], here[wanted], rtol=0, atol=1e-5)


@pytest.mark.parametrize("triple", TRIPLES)
def test_modules_ask_for_nothing_after_glibc_2_17(triple, compile):
    need_foreign(triple)
    module = compile(ROOT / "models" / "digits_rnn.json", f"--target={triple}")
    said = subprocess.run(["readelf", "-W", "--version-info", module], capture_output=True, text=True, check=True).stdout
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"Name: GLIBC_([\d.]+)", said)}
    assert versions and max(versions) <= FLOOR


def test_schedules_are_predicted_to_take_time(rnncc):
    said = rnncc("inspect", ROOT / "models" / "digits_cnn.json", "--explain=conv", "--target=powerpc64le-linux-gnu").stdout
    chosen = [float(micros) for micros in re.findall(r"^\* +(\S+)  ", said, re.MULTILINE)]
    assert len(chosen) == 2 and all(0 < micros < 1e4 for micros in chosen)


@pytest.mark.parametrize("target, expected", [
    ("s390x-linux-gnu", "a triple whose numbers are little-endian"),
    ("powerpc64-linux-gnu", "a triple whose numbers are little-endian"),
    ("arm-linux-gnueabi", "a triple with atomic operations of 8 bytes"),
    ("pdp11-linux-gnu", "a triple of Linux that clang knows, such as powerpc64le-linux-gnu"),
    ("wasm32-linux-x", "a triple of Linux that clang knows"),
    ("powerpc64le-linux-gnu+vsx", "or a triple of Linux"),
    ("powerpc64le", "or a triple of Linux"),
    ("-linux-gnu", "or a triple of Linux"),
    ("arm-linux-gnueabihf -v", "or a triple of Linux"),
    ("../arm-linux-gnueabihf", "or a triple of Linux"),
])
def test_what_is_no_target_is_refused_by_name(target, expected, rnncc, tmp_path):
    done = rnncc(ROOT / "models" / "digits_rnn.json", f"--target={target}", "-o", tmp_path / "m.so")
    assert done.returncode == 2 and not list(tmp_path.iterdir())
    assert done.stderr.startswith("rnncc: error: --target: expected ") and expected in done.stderr and f'"{target}"' in done.stderr


def test_a_libc_that_is_missing_is_said(rnncc, tmp_path):
    done = rnncc(ROOT / "models" / "digits_rnn.json", "--target=mips64el-linux-gnuabin32", "-o", tmp_path / "m.so")
    assert done.returncode == 5 and "expected the headers of a libc of mips64el-linux-gnuabin32, found none" in done.stderr
    assert "apt-get install gcc-mips64el-linux-gnuabin32" in done.stderr and not list(tmp_path.iterdir())


def test_a_clang_that_is_missing_is_said(rnncc, tmp_path):
    done = rnncc(ROOT / "models" / "digits_rnn.json", "--target=powerpc64le-linux-gnu", "-o", tmp_path / "m.so",
                 env={**os.environ, "RNNCC_CLANG": str(tmp_path / "none")})
    assert done.returncode == 5 and f"not found; install it (Debian: apt-get install {clang_name()}" in done.stderr
