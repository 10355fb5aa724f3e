# SPDX-License-Identifier: MIT
"""Random graphs whose C is built with sanitizers: they touch no memory but their own, do nothing that C leaves undefined,
read nothing that they have not written, and no two of their threads race. Their C compiles by gcc and clang without a
warning."""
import os
import re
import subprocess

import numpy
import pytest

from differential import plans
from differential.check import Checker, Finding, feeds_of, side_by_side
from differential.grow import random_case
from graphs import test_narrow_weights as narrow_weights
from modules.test_sanitized_modules import CLANG, sanitizers  # noqa: F401 (a fixture)
from support.amount import long_tests
from support.machine import need_target
from support.model_builder import Model
from support.watched import SEEN, ended, made, watched_module, watching_rnnrun

pytestmark = pytest.mark.unsanitized  # the modules have them

SEED = 3
GRAPHS = 25 if long_tests() else 12
GROUPS = 2 if long_tests() else 1
UNDER_ASAN = GRAPHS if long_tests() else 8  # whose C takes clang 2 s a graph; modules/test_sanitized_modules.py has each operator
STEPS = 12 if long_tests() else 3  # operators of a graph, at most, besides one that is due
STRICT = ["-Wall", "-Wextra", "-Werror"]


def emitted(folder, number, *options, graphs=GRAPHS):
    """The C of a group of graphs that the reference or ONNX Runtime can run, and rnnrun's words to feed it."""
    checker = Checker(folder)
    cases = [random_case(SEED, number * GRAPHS + k, prefix=f"g{k}_", winograd=True, most_steps=STEPS) for k in range(graphs)]
    cases = [case for case in cases if (expected := checker.expected(case)) and not isinstance(expected, Finding)]
    assert len(cases) >= 0.8 * graphs
    done = checker.compile(side_by_side(cases).write(folder), folder / "c", ("--emit=c", "--threads=4", *options))
    assert done.returncode == 0, done.stderr
    return folder / "c", input_words(folder, feeds_of(cases, 0))


def input_words(folder, feeds):
    """rnnrun's, of arrays that are put into the folder."""
    for name, array in feeds.items():
        numpy.save(folder / f"{name}.npy", array)
    return [word for name in feeds for word in ("--input", f"{name}=@{folder}/{name}.npy")]


@pytest.mark.parametrize("number", range(GROUPS))
def test_no_memory_but_their_own(sanitizers, rnnrun, tmp_path, number):  # noqa: F811
    target = f"--target={plans.TARGETS[number % 2]}"
    need_target(target)
    folder, words = emitted(tmp_path, number, target, graphs=UNDER_ASAN)
    module = made(folder, CLANG)
    for threads in 1, 3:
        done = rnnrun("run", module, "--threads", threads, *words, env=sanitizers)
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module", params=["thread", "memory"])
def watching(request, module_cache):
    return request.param, watching_rnnrun(module_cache, request.param)


# Of accesses of up to 16 bytes, as ThreadSanitizer sees them.
NARROW = "--target=x86-64"


@pytest.mark.parametrize("number", range(100, 100 + GROUPS))
def test_no_race_and_nothing_read_that_was_not_written(watching, tmp_path, number):
    sanitizer, program = watching
    folder, words = emitted(tmp_path, number, NARROW)
    (status, said), = ended(program, sanitizer, watched_module(folder, sanitizer), words)
    assert status == 0, said


@pytest.mark.parametrize("watching", ["memory"], indirect=True)
def test_weights_of_few_bits_read_nothing_that_was_not_written(watching, rnncc, tmp_path):
    """Random graphs have none. Sums of a group of integers begin at zero, of one row and of many."""
    sanitizer, program = watching
    net, folder = narrow_weights.network(True), tmp_path / "c"
    done = rnncc(net.write(tmp_path), "--emit=c", "--threads=4", "-o", folder, NARROW)
    assert done.returncode == 0, done.stderr
    words = input_words(tmp_path, narrow_weights.feeds_of(net))
    (status, said), = ended(program, sanitizer, watched_module(folder, sanitizer), words)
    assert status == 0, said


@pytest.mark.parametrize("watching", ["memory"], indirect=True)
def test_a_value_that_is_not_written_is_seen(watching, rnncc, tmp_path):
    """The first of two kernels, whose result the other reads, is left out."""
    model = Model()
    y = model.node("MatMul", [model.input("x", "f32", [3, 5]), model.constant(numpy.ones((5, 7), numpy.float32))])
    model.output(model.node("ReduceMax", [model.node("Softmax", [y])]))
    sanitizer, program = watching
    folder = tmp_path / "c"
    done = rnncc(model.write(tmp_path), "--emit=c", "-o", folder, NARROW)
    assert done.returncode == 0, done.stderr
    text = (folder / "network.c").read_text()
    without, count = re.subn(r"\n  k0\w*\(team[^;]*;", "\n  ;", text)
    assert count
    (folder / "network.c").write_text(without)
    numpy.save(tmp_path / "x.npy", numpy.ones((3, 5), numpy.float32))
    (status, said), = ended(program, sanitizer, watched_module(folder, sanitizer), ("--input", f"x=@{tmp_path}/x.npy"))
    assert status == SEEN[sanitizer] and "use-of-uninitialized-value" in said, said


@pytest.mark.parametrize("number", range(300, 300 + GROUPS))
@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_their_c_compiles_without_a_warning(tmp_path, compiler, number):
    """Of the runtime, optimised, too."""
    target = plans.TARGETS[number % 3]
    folder, _ = emitted(tmp_path, number, f"--target={target}")
    text = (folder / "Makefile").read_text()
    for source, name, level in (("network.c", "KERNEL_FLAGS", "-O0"), ("runtime.c", "RUNTIME_FLAGS", "-O2")):
        flags = re.search(f"^{name} = (.*)$", text, re.M)[1].split()
        done = subprocess.run([compiler, *flags, *STRICT, level, "-I.", "-c", source, "-o", os.devnull], cwd=folder, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
