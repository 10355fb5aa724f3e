# SPDX-License-Identifier: MIT
"""Modules and musl: programs of that libc load those of glibc's targets, whose symbols both have."""
import subprocess

import numpy
import pytest

from conftest import ROOT
from support.emitted import run_by
from support.machine import need_libc

MODEL = ROOT / "models" / "digits_rnn.json"
IMAGES = numpy.random.default_rng(7).random((3, 8, 8), dtype=numpy.float32)
FLOOR = (2, 17)  # of glibc's versions


def output(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def probabilities(rnnrun, module, folder):
    (array,) = run_by(rnnrun, module, {"x": IMAGES}, ["probabilities"], folder).values()
    return array


@pytest.mark.parametrize("target, triple", [("x86-64", "x86_64-linux-musl"), ("aarch64-linux-gnu", "aarch64-linux-musl")])
def test_a_module_of_glibcs_target_runs_in_a_program_of_musl(target, triple, rnnrun, rnnrun_of, compile, tmp_path):
    module, by_musl = compile(MODEL, f"--target={target}"), rnnrun_of(triple)
    by_glibc = rnnrun if target == "x86-64" else rnnrun_of(target)
    assert probabilities(by_musl, module, tmp_path).tolist() == probabilities(by_glibc, module, tmp_path).tolist()


def names_of_glibc():
    """Of what a program finds in glibc, each name with the first version that it was in."""
    first = {}
    for line in output("nm", "-D", "--defined-only", "/lib/x86_64-linux-gnu/libc.so.6").splitlines():
        name, _, version = line.split()[-1].replace("@@", "@").partition("@GLIBC_")
        if version[:1].isdigit():
            numbers = tuple(int(part) for part in version.split("."))
            first[name] = min(numbers, first.get(name, numbers))
    return first


def names_of_musl():
    return {line.split()[-1] for line in output("nm", "-D", "--defined-only", "/usr/lib/x86_64-linux-musl/libc.so").splitlines()}


@pytest.mark.parametrize("kind", ["module", "static"])
def test_no_symbol_is_of_one_libc_alone(kind, rnncc, compile, tmp_path):
    """Nor of glibc after 2.17."""
    need_libc("x86_64-linux-musl")
    if kind == "module":
        lines = output("nm", "-D", "--undefined-only", compile(MODEL, "--target=x86-64"))
    else:
        done = rnncc(MODEL, "--static", "--target=x86-64", "-o", tmp_path / "libm.a")
        assert done.returncode == 0, done.stderr
        lines = output("nm", "--undefined-only", tmp_path / "libm.a")
    wanted = {line.split()[-1].partition("@")[0] for line in lines.splitlines() if " U " in line}
    assert "pthread_create" in wanted
    assert wanted - names_of_musl() == set()
    glibc = names_of_glibc()
    assert {name for name in wanted if glibc.get(name, (99,)) > FLOOR} == set()
