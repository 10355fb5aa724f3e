# SPDX-License-Identifier: MIT
"""Faults while compiling: no room to write, no right to. The output file is always the old one or a complete one, and a
failure is an exit code with a reason. test_failing_calls.py and test_sudden_death.py have the rest."""
import fcntl
import itertools
import os
import resource
import signal
import socket
import subprocess

import pytest
from support.amount import long_tests
from support.machine import need_own_mounts

EXIT_ENVIRONMENT = 5
PAGE = resource.getpagesize()


@pytest.fixture
def model(root):
    return root / "models" / "digits_rnn.json"


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


# $1: what is mounted, at $2, with options $3 once the old output and the folder of temporaries are there. Prints what is left.
ON_ITS_OWN = """
    mount -t tmpfs -o "$1" none "$2" && cd "$2" && mkdir out temporary && printf old >out/m.so || exit 77
    [ -z "$3" ] || mount -o "remount,$3" "$2" || exit 77
    shift 3
    "$@"
    code=$?
    printf '%s ' out/* out/.r* temporary/*; tail -c 3 out/m.so
    exit $code
"""
UNTOUCHED = "out/m.so out/.r* temporary/* old"


@pytest.fixture
def on_a_file_system(rnncc, model, tmp_path):
    """on_a_file_system(options of mount, later ones, TMPDIR) -> how rnncc ended there."""
    prefix = need_own_mounts()

    def run(options, later="", folder="temporary"):
        there = tmp_path / "there"
        there.mkdir(exist_ok=True)
        command = [*prefix, "sh", "-c", ON_ITS_OWN, "sh", options, there, later, *rnncc.prefix, model, "-o", "out/m.so"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, "TMPDIR": str(there / folder)})
        assert done.returncode != 77, done.stderr
        return done

    return run


def test_a_full_disk_is_reported(on_a_file_system):
    """From one on which nothing more fits, in steps of a factor, to one where all does."""
    failed = 0
    for step in itertools.count():
        pages = 4 * (4 if long_tests() else 6)**step // 3**step
        done = on_a_file_system(f"size={pages * PAGE}")
        if done.returncode == 0:
            break
        assert done.returncode == EXIT_ENVIRONMENT and "error: " in done.stderr and done.stdout == UNTOUCHED, (pages, done)
        failed += "No space left on device" in done.stderr
    assert failed > 3 and done.stdout.startswith("out/m.so out/.r* temporary/* ") and done.stdout != UNTOUCHED


@pytest.mark.parametrize("folder", ["temporary", ".."], ids=["everything", "the output"])
def test_a_read_only_file_system_is_reported(on_a_file_system, folder):
    done = on_a_file_system("size=1m", "ro", folder)
    assert done.returncode == EXIT_ENVIRONMENT and "Read-only file system" in done.stderr, done.stderr
    assert done.stdout == UNTOUCHED


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
