# SPDX-License-Identifier: MIT
"""What clang may do: write in its folder, and nowhere else; connect to nothing."""
import contextlib
import os
import re
import socket
import stat
import subprocess
import sys

import pytest
from support.model_builder import Model
from support.preloaded import preloaded

EXIT_ENVIRONMENT = 5
CONNECT = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])))"
# Landlock knows of TCP alone.
SEND = "import socket, sys; socket.socket(type=socket.SOCK_DGRAM).sendto(b'here', ('127.0.0.1', int(sys.argv[1])))"


def plain_environment(**more):
    """In which clang is the one that rnncc looks for."""
    return {name: value for name, value in os.environ.items() if name != "RNNCC_CLANG"} | more


@pytest.fixture
def model(tmp_path):
    """That is compiled at once: here each compilation is clang's own."""
    model = Model("sum")
    model.output(model.node("Add", [model.input("x", "f32", [1]), model.input("y", "f32", [1])]))
    return model.write(tmp_path)


@pytest.fixture(autouse=True)
def landlock(rnncc, model, tmp_path):
    done = rnncc(model, "-o", tmp_path / "asked.so", "--sandbox=always", env=plain_environment())
    if "Function not implemented" in done.stderr or "Operation not supported" in done.stderr:
        pytest.skip("this kernel has no Landlock")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def listener():
    """For TCP and UDP, at one port."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(server.getsockname())
        server.settimeout(0), datagrams.settimeout(0)
        yield server, datagrams


@pytest.fixture
def curious(tmp_path, listener):
    """A program of the name clang-19 in a folder of its own that tries what clang has no business with, then is clang."""
    folder, outside = tmp_path / "bin", tmp_path / "outside"
    folder.mkdir(), outside.mkdir()
    (outside / "there").write_text("old")
    real = subprocess.run(["sh", "-c", "command -v clang-19"], capture_output=True, text=True, check=True).stdout.strip()
    program = folder / "clang-19"
    program.write_text(f"""#!/bin/sh
        touch here || exit 9
        echo new 2>/dev/null >{outside}/new
        echo new 2>/dev/null >{outside}/there
        rm -f {outside}/removed 2>/dev/null
        mv here {outside}/moved 2>/dev/null
        {sys.executable} -c "{CONNECT}" {listener[0].getsockname()[1]} 2>/dev/null
        {sys.executable} -c "{SEND}" {listener[1].getsockname()[1]} 2>/dev/null
        exec {real} "$@"\n""")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (outside / "removed").write_text("old")
    return program


def what_it_did(outside, listener):
    did = {name for name in ("new", "moved") if (outside / name).exists()}
    did |= {"there"} if (outside / "there").read_text() != "old" else set()
    did |= {"removed"} if not (outside / "removed").exists() else set()
    server, datagrams = listener
    with contextlib.suppress(BlockingIOError):
        while True:
            server.accept()[0].close()
            did.add("connected")
    with contextlib.suppress(BlockingIOError):
        did.add(datagrams.recv(9) and "sent")
    return did


ALL = {"new", "moved", "there", "removed", "connected", "sent"}


@pytest.mark.parametrize("by_name, options, does", [
    (True, [], set()), (True, ["--sandbox=always"], set()), (True, ["--sandbox=never"], ALL),
    (False, [], ALL), (False, ["--sandbox=always"], set())])
def test_clang_writes_in_its_folder_alone_and_connects_to_nothing(rnncc, model, tmp_path, curious, listener, by_name, options, does):
    """By default one that RNNCC_CLANG names is free: it may be a cache."""
    named = {"PATH": f"{curious.parent}:{os.environ['PATH']}"} if by_name else {"RNNCC_CLANG": str(curious)}
    done = rnncc(model, "-o", tmp_path / "m.so", *options, env=plain_environment(**named))
    assert done.returncode == 0, done.stderr
    assert what_it_did(tmp_path / "outside", listener) == does
    assert (tmp_path / "m.so").read_bytes() == (tmp_path / "asked.so").read_bytes()


def test_a_clang_that_cannot_do_without_says_what_lifts_it(rnncc, model, tmp_path):
    clang = tmp_path / "clang"
    clang.write_text(f"#!/bin/sh\necho kept >{tmp_path}/cache && exec clang-19 \"$@\"\n")
    clang.chmod(0o755)
    done = rnncc(model, "-o", tmp_path / "m.so", "--sandbox=always",
                 env={**os.environ, "RNNCC_CLANG": str(clang)})
    assert done.returncode == EXIT_ENVIRONMENT and not (tmp_path / "m.so").exists()
    assert re.search(r"note: it may write only in \S+ and open no connection; --sandbox=never lifts that", done.stderr)


@pytest.mark.unsanitized
@pytest.mark.parametrize("options, code", [([], 0), (["--sandbox=always"], EXIT_ENVIRONMENT)])
def test_without_landlock_it_is_done_without_or_refused(rnncc, model, tmp_path, options, code):
    done = rnncc(model, "-o", tmp_path / "m.so", *options,
                 env=plain_environment(LD_PRELOAD=preloaded("no_system_calls", tmp_path)))
    assert done.returncode == code, done.stderr
    assert (tmp_path / "m.so").exists() == (code == 0)
    assert not code or "cannot be confined: Function not implemented" in done.stderr
