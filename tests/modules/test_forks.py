# SPDX-License-Identifier: MIT
"""Runs of rnncc that are forks of one process, by which tests compile modules, end as those of the program do. Of the
reference interpreter: after a run that took too long there are others."""
import os
import select
import subprocess
import time

import numpy
import pytest
from support.clang import BUILD
from support.forking import running
from support.forks import Forks, program_of
from support.model_builder import Model


@pytest.fixture(scope="module")
def forks():
    return Forks(BUILD / "tests" / "support" / "rnncc_forks")


def end_of(done, output):
    return done.returncode, done.stdout, done.stderr, output.read_bytes() if output.exists() else None


def both(forks, rnncc, output, *arguments, **settings):
    """How a fork and the program end: status, what they say, the output."""
    command, environment = [*rnncc.prefix, *arguments, "-o", output], {**os.environ, **settings}
    forked = end_of(forks.run(command, environment), output)
    output.unlink(missing_ok=True)
    return forked, end_of(subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120), output)


@pytest.mark.parametrize("target", ["x86-64", "x86-64-v3"])
def test_a_module_has_the_same_bytes(forks, rnncc, root, tmp_path, target):
    """The second one of the process, too."""
    for name in ("digits_rnn", "digits_cnn"):
        forked, alone = both(forks, rnncc, tmp_path / "m.so", root / "models" / f"{name}.json", f"--target={target}", "-v")
        assert forked == alone and alone[0] == 0 and alone[3]


def test_an_error_and_an_empty_argument_are_the_same(forks, rnncc, tmp_path):
    for argument in ("no such model", ""):
        forked, alone = both(forks, rnncc, tmp_path / "m.so", argument)
        assert forked == alone and alone[0] != 0 and alone[2]


def test_a_run_has_its_own_environment(forks, rnncc, root, tmp_path):
    forked, alone = both(forks, rnncc, tmp_path / "m.so", root / "models" / "digits_rnn.json", RNNCC_CLANG=str(tmp_path / "none"))
    assert forked == alone and alone[0] == 5 and str(tmp_path / "none") in alone[2]


def test_a_signal_is_told(forks, rnncc, root, tmp_path):
    """Of a tool that ends the run that calls it."""
    clang = tmp_path / "clang"
    clang.write_text("#!/bin/sh\nkill -KILL $PPID\n")
    clang.chmod(0o755)
    command = [*rnncc.prefix, root / "models" / "digits_rnn.json", "-o", tmp_path / "m.so"]
    assert forks.run(command, {**os.environ, "RNNCC_CLANG": str(clang), "TMPDIR": str(tmp_path)}).returncode == -9


def test_a_run_that_takes_too_long_ends_with_its_clang_and_the_next_one_runs(forks, rnncc, root, tmp_path, monkeypatch):
    clang, begun = tmp_path / "clang", tmp_path / "begun"
    clang.write_text(f"#!/bin/sh\ntouch {begun}\nexec sleep 1000\n")
    clang.chmod(0o755)
    command = [*rnncc.prefix, root / "models" / "digits_rnn.json", "-o", tmp_path / "m.so"]

    def too_long(*_):
        while not begun.exists():
            assert forks.process.poll() is None
            time.sleep(0.01)
        assert len(list(running(forks.process.pid))) > 2
        return [], [], []

    with monkeypatch.context() as patch, pytest.raises(subprocess.TimeoutExpired):
        patch.setattr(select, "select", too_long)
        forks.run(command, {**os.environ, "RNNCC_CLANG": str(clang), "TMPDIR": str(tmp_path)})
    assert not list(running(forks.process.pid))
    assert forks.run(command, os.environ).returncode == 0


def test_after_a_run_of_the_reference_that_takes_too_long_the_next_one_runs(reference, tmp_path, monkeypatch):
    model = Model()
    model.output(model.node("Neg", [model.input("x", "f32", [3])], ["y"]))
    path, feeds = model.write(tmp_path), {"x": numpy.arange(3, dtype=numpy.float32)}
    with monkeypatch.context() as patch, pytest.raises(subprocess.TimeoutExpired):
        patch.setattr(select, "select", lambda *_: ([], [], []))
        reference.run(model, path, feeds)
    assert not list(running(reference.runs.process.pid))
    assert (reference.run(model, path, feeds)["y"] == [0, -1, -2]).all()


def test_the_program_is_not_older_than_the_compiler(tmp_path):
    program, library = tmp_path / "tests" / "support" / "rnncc_forks", tmp_path / "compiler" / "librnncc.a"
    assert program_of(tmp_path) is None
    for path in (library, program):
        path.parent.mkdir(parents=True)
        path.touch()
    for seconds, found in ((2, program), (1, program), (0, None)):
        os.utime(library, (1, 1))
        os.utime(program, (seconds, seconds))
        assert program_of(tmp_path) == found
