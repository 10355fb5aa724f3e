# SPDX-License-Identifier: MIT
"""Faults while compiling: no memory, no room to write, sudden death, other compilers of the same output. The output file is
always the old one or a complete one, and a failure is an exit code with a reason."""
import fcntl
import os
import random
import resource
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import numpy
import pytest
from support.model_builder import Model
from support.preloaded import preloaded

EXIT_LIMIT, EXIT_ENVIRONMENT = 4, 5
KILLS = 12
COMPILERS = 8
WEIGHT_BYTES = 2 << 20


@pytest.fixture
def model(root):
    return root / "models" / "digits_rnn.json"


@pytest.fixture
def quick_model(tmp_path):
    """For compilations by the dozen, each with clang as it is. Its weights make that writing the module takes a while, in
    which half of it would be seen."""
    model, weights = Model("quick"), numpy.arange(WEIGHT_BYTES // 4, dtype=numpy.float32)
    model.output(model.node("Add", [model.input("x", "f32", [1]), model.constant(weights)]))
    return model.write(tmp_path)


def test_any_allocation_may_fail(rnncc, model, tmp_path):
    """One after the other, until the compiler makes no more allocations."""
    output, folder = tmp_path / "out" / "m.h", tmp_path / "temporary"
    output.parent.mkdir()
    folder.mkdir()
    library, number = preloaded("fail_allocation", tmp_path), 1
    while True:
        output.write_text("old")
        environment = {**os.environ, "LD_PRELOAD": library, "FAIL_ALLOCATION": str(number),
                       "TMPDIR": str(folder)}
        done = rnncc(model, "--emit=h", "-o", output, env=environment)
        if done.returncode == 0:
            break
        assert (done.returncode, number) == (EXIT_LIMIT, number) and "out of memory" in done.stderr
        assert output.read_text() == "old"
        assert os.listdir(output.parent) == ["m.h"] and os.listdir(folder) == []
        number += 1
    assert number > 10
    assert output.read_text() != "old"


def test_a_runtime_without_sources_is_reported(rnncc, root, model, tmp_path):
    """Else the module would have no symbol."""
    data = tmp_path / "data"
    (data / "runtime").mkdir(parents=True)
    (data / "templates").symlink_to(root / "templates")
    for header in (root / "runtime").glob("*.h"):
        (data / "runtime" / header.name).symlink_to(header)
    done = rnncc(model, "-o", tmp_path / "m.so", env={**os.environ, "RNNCC_DATA": str(data)})
    assert done.returncode == EXIT_ENVIRONMENT and "runtime: error: expected the runtime's sources" in done.stderr
    assert not (tmp_path / "m.so").exists()


@pytest.mark.parametrize("ignored", [False, True], ids=["signalled", "told"])
@pytest.mark.parametrize("room", [0, 1, 5000, 100000])
def test_no_room_to_write_is_reported(rnncc, model, tmp_path, room, ignored):
    """A limit on files' sizes stands for a full disk. By default the kernel also sends a signal, deadly if not caught."""
    output, folder = tmp_path / "out" / "m.so", tmp_path / "temporary"
    output.parent.mkdir()
    folder.mkdir()
    output.write_text("old")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN if ignored else signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    done = rnncc(model, "-o", output, preexec_fn=limit, env={**os.environ, "TMPDIR": str(folder)})
    assert done.returncode == EXIT_ENVIRONMENT, done.stderr
    assert done.stderr
    assert output.read_text() == "old"
    assert os.listdir(output.parent) == ["m.so"] and os.listdir(folder) == []


def is_complete(rnnrun, path):
    return rnnrun("inspect", path).returncode == 0


def wait_for_change(output, process):
    """Until `output` is no longer the old one: half of it would be seen now."""
    while process.poll() is None and output.stat().st_size == len(b"old"):
        pass


@pytest.mark.unsanitized
def test_a_killed_compiler_leaves_the_old_output_or_a_complete_one(rnncc, rnnrun, quick_model, tmp_path):
    output = tmp_path / "m.so"
    begin = time.monotonic()
    assert rnncc(quick_model, "-o", output).returncode == 0
    whole_run = time.monotonic() - begin
    rng, outcomes = random.Random(1), set()
    for kill in range(KILLS):
        output.write_bytes(b"old")
        process = subprocess.Popen([*rnncc.prefix, quick_model, "-o", output], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True, env={**os.environ, "TMPDIR": str(tmp_path)})
        if kill % 4 == 0:
            wait_for_change(output, process)
        else:
            time.sleep(whole_run * rng.uniform(0, 1))
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        old = output.read_bytes() == b"old"
        assert old or is_complete(rnnrun, output)
        outcomes.add(old)
    assert outcomes == {True, False}


def test_what_killed_compilers_left_beside_the_output_is_removed(rnncc, model, tmp_path):
    """Not what a living one works on, nor what only has a similar name."""
    output, begin = tmp_path / "out" / "m.h", f".rnncc.{socket.gethostname()}."
    output.parent.mkdir()
    left, locked, longer, other = (output.parent / f"{begin}{end}" for end in ("abcdef", "fedcba", "abcdefg", "no"))
    for file in left, locked, longer, other:
        file.write_text("half")
    with open(locked) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert rnncc(model, "--emit=h", "-o", output).returncode == 0
    assert not left.exists() and locked.exists() and longer.exists() and other.exists()


@pytest.mark.unsanitized
def test_compilers_of_one_output_do_not_disturb_each_other(rnncc, rnnrun, quick_model, tmp_path):
    output = tmp_path / "out" / "m.so"
    output.parent.mkdir()
    assert rnncc(quick_model, "-o", output).returncode == 0
    failures, loads, done = [], [0], threading.Event()

    def load():
        while not done.is_set():
            loads[0] += 1
            if not is_complete(rnnrun, output):
                failures.append("a load failed")

    loader = threading.Thread(target=load)
    loader.start()
    compilers = [subprocess.Popen([*rnncc.prefix, quick_model, "-o", output], stderr=subprocess.PIPE) for _ in range(COMPILERS)]
    for compiler in compilers:
        message = compiler.communicate()[1]
        if compiler.returncode:
            failures.append(message)
    done.set()
    loader.join()
    assert not failures and loads[0] > 0
    assert os.listdir(output.parent) == ["m.so"]
