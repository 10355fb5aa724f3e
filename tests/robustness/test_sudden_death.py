# SPDX-License-Identifier: MIT
"""A compiler that is killed, and compilers and loaders of one output at once: the output is always the old one or a complete
one, and what the dead leave a later run removes."""
import itertools
import os
import signal
import subprocess
import sys

import numpy
import pytest
from conftest import ROOT
from support.amount import long_tests
from support.clang import clang_name
from support.model_builder import Model
from support.preloaded import preloaded

pytestmark = pytest.mark.unsanitized
STRIDE = 1 if long_tests() else 13  # of the calls before which it is killed; a module takes some 300
COMPILERS = 16
WEIGHT_BYTES = 2 << 20
OLD = b"old"


@pytest.fixture
def dying(rnncc, root, tmp_path):
    """dying(more environment) -> (how rnncc ended, the output): of a compilation over an old output. All that it started
    has ended, too."""
    (tmp_path / "out").mkdir(), (tmp_path / "temporary").mkdir()
    output = tmp_path / "out" / "m.so"
    command = [*rnncc.prefix, root / "models" / "digits_cnn.json", "--target=x86-64-v3", "-o", output]

    def run(environment):
        output.write_bytes(OLD)
        reading, writing = os.pipe()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[writing],
                              env={**os.environ, "TMPDIR": str(tmp_path / "temporary"), **environment}) as process:
            os.close(writing)
            with open(reading, "rb") as last_writer:
                last_writer.read()
        return process.returncode, output.read_bytes()

    return run


def left(tmp_path):
    return {*os.listdir(tmp_path / "out"), *os.listdir(tmp_path / "temporary")} - {"m.so"}


def test_killed_before_any_call_it_leaves_the_old_output_or_a_complete_one(dying, tmp_path):
    library, (code, good), outputs, leaves = preloaded("fail_call", tmp_path), dying({}), set(), set()
    assert code == 0
    for number in itertools.count(1, STRIDE):
        code, output = dying({"LD_PRELOAD": library, "KILL_CALL": str(number)})
        if code == 0:
            break
        assert code == -signal.SIGKILL and output in (OLD, good), number
        outputs.add(output)
        leaves |= left(tmp_path)
    assert number >= 200 and OLD in outputs and (STRIDE > 1 or good in outputs)
    assert leaves and output == good and left(tmp_path) == set(), "the last run has removed what others left"


MOMENTS = {"before": 'kill -9 $PPID; {clang} "$@"', "half done": '{clang} "$@"; truncate -s 999 $made; kill -9 $PPID; {clang} "$@"',
           "after": '{clang} "$@"; kill -9 $PPID'}


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_while_clang_runs_it_leaves_the_old_output(moment, dying, tmp_path):
    """clang works on, in the folder that is left."""
    code, good = dying({})
    assert code == 0
    clang, real = tmp_path / "clang", os.environ.get("RNNCC_CLANG", clang_name())
    for made in "runtime.o", "network.o", "module.so":
        commands = MOMENTS[moment].format(clang=real)
        clang.write_text(f'#!/bin/sh\nmade={made}\ncase "$*" in *"-o $made"*) {commands} ;; *) exec {real} "$@" ;; esac\n')
        clang.chmod(0o755)
        assert dying({"RNNCC_CLANG": str(clang)}) == (-signal.SIGKILL, OLD), made
    assert left(tmp_path)
    assert dying({}) == (0, good) and left(tmp_path) == set()


def quick_model(folder):
    """Its weights make that writing the module takes a while, in which half of it would be seen."""
    model, weights = Model("quick"), numpy.arange(WEIGHT_BYTES // 4, dtype=numpy.float32)
    model.output(model.node("Add", [model.input("x", "f32", [1]), model.constant(weights)]))
    return model.write(folder)


LOADER = f"""
import select, sys
import numpy
sys.path.insert(0, {str(ROOT / "runtime" / "bindings" / "python")!r})
import rnncc
expected = numpy.arange({WEIGHT_BYTES // 4}, dtype=numpy.float32) + 1

def load():
    with rnncc.load(sys.argv[1], threads=1) as loaded:
        assert (loaded(numpy.ones(1, numpy.float32)) == expected).all()

load()
print("loaded", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    load()
"""


def test_compilers_of_one_output_do_not_disturb_each_other_or_a_loader(rnncc, tmp_path):
    """It loads, runs and unloads whatever is there, all the while: its process would crash of a module that is changed."""
    output, model = tmp_path / "out" / "m.so", quick_model(tmp_path)
    output.parent.mkdir()
    command = [*rnncc.prefix, model, "-o", output]
    subprocess.run(command, check=True)
    with subprocess.Popen([sys.executable, "-c", LOADER, output], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as loader:
        assert loader.stdout.readline() == "loaded\n", "its start may take longer than all that follows"
        compilers = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(COMPILERS)]
        messages = [compiler.communicate()[1] for compiler in compilers]
        loader.communicate()
    assert [(compiler.returncode, message) for compiler, message in zip(compilers, messages)] == [(0, "")] * COMPILERS
    assert loader.returncode == 0
    assert os.listdir(output.parent) == ["m.so"]
