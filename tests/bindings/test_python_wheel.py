# SPDX-License-Identifier: MIT
"""The wheel of the Python package: installed by pip in a fresh venv, for a user who is not root, it compiles and runs
from any folder with nothing of the source tree."""
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from conftest import ROOT, build_directory, sanitized
from support.user import User

pytestmark = pytest.mark.skipif(sanitized(), reason="a build with sanitizers is for no wheel")
FIRST_RESULT = """
import numpy, rnncc
m = rnncc.compile("digits_rnn.json")
y = m(numpy.zeros((1, 8, 8), numpy.float32))
print(rnncc.__file__, y.shape)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run([ROOT / "tools" / "wheel", "--build", build_directory(), "-o", folder], capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert [Path(done.stdout.strip())] == list(folder.iterdir())
    return Path(done.stdout.strip())


@pytest.fixture(scope="module")
def user(wheel):
    with User() as user:
        for path in (wheel, ROOT / "models" / "digits_rnn.json", ROOT / "models" / "digits_rnn.safetensors"):
            shutil.copy(path, user.folder)
        user.bin, user.packages = user.venv("venv")
        user.must(user.bin / "pip", "install", "--no-index", "--no-deps", wheel.name)
        yield user


def test_from_the_wheel_to_a_first_result_it_takes_three_lines(user):
    assert user.must(user.bin / "python", "-c", FIRST_RESULT) == f"{user.packages}/rnncc/__init__.py (1, 10)\n"


def test_its_programs_are_commands(user):
    assert "rnncc 0" in user.must(user.bin / "rnncc", "--version")
    user.must(user.bin / "rnncc", "digits_rnn.json", "-o", "d.so")
    assert "probabilities" in user.must(user.bin / "rnnrun", "inspect", "d.so")
    refused = user.run(user.bin / "rnncc", "no.onnx")
    assert refused.returncode == 2 and "no.onnx" in refused.stderr


def test_all_that_it_reads_is_its_own(user):
    """The libraries and the data: where a file is missing it is looked for in the wheel."""
    program = user.packages / "rnncc" / "bin" / "rnncc"
    libraries = user.must("ldd", program)
    assert libraries.count(f"{user.packages}/rnncc/") == 2 and "not found" not in libraries
    data = user.packages / "rnncc" / "share" / "rnncc"
    (data / "templates").rename(data / "away")
    try:
        refused = user.run(user.bin / "python", "-c", FIRST_RESULT)
    finally:
        (data / "away").rename(data / "templates")
    assert refused.returncode == 1 and "rnncc.errors.ToolchainError" in refused.stderr
    assert str(user.packages) in refused.stderr and "templates" in refused.stderr


def test_where_llvm_is_missing_it_says_so(user):
    """A program that finds no libclang: here one of another name."""
    program = user.packages / "rnncc" / "bin" / "rnncc"
    kept = program.read_bytes()
    program.write_bytes(kept.replace(b"libclang-19.so.19\0", b"libclang-19.so.xx\0"))
    try:
        told, refused = user.run(user.bin / "rnncc", "digits_rnn.json"), user.run(user.bin / "python", "-c", FIRST_RESULT)
    finally:
        program.write_bytes(kept)
    for done in (told, refused):
        assert "libclang-19.so.xx" in done.stderr and "apt-get install libclang1-19 clang-19 lld-19" in done.stderr
    assert told.returncode == 5 and "ToolchainError" in refused.stderr
    refused = user.run(user.bin / "python", "-c", FIRST_RESULT, RNNCC_CLANG="/nowhere/clang-19")
    assert "ToolchainError" in refused.stderr and "apt-get install clang-19 lld-19" in refused.stderr


@pytest.mark.long
def test_it_is_removed_whole(user):
    binaries, packages = user.venv("other")
    before = {path for path in (user.folder / "other").rglob("*") if "__pycache__" not in path.parts}
    (file,) = user.folder.glob("*.whl")
    user.must(binaries / "pip", "install", "--no-index", "--no-deps", file.name)
    assert (packages / "rnncc").exists() and (binaries / "rnnrun").exists()
    user.must(binaries / "pip", "uninstall", "-y", "rnncc")
    assert {path for path in (user.folder / "other").rglob("*") if "__pycache__" not in path.parts} == before


def test_its_record_is_of_its_files_and_the_same_build_gives_the_same_bytes(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as file:
        names = [name for name in file.namelist() if not name.endswith("/RECORD")]
        (record,) = [name for name in file.namelist() if name.endswith(".dist-info/RECORD")]
        for name, line in zip(names, file.read(record).decode().splitlines()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(file.read(name)).digest()).rstrip(b"=").decode()
            assert line == f"{name},sha256={digest},{len(file.read(name))}"
    again = subprocess.run([ROOT / "tools" / "wheel", "--build", build_directory(), "-o", tmp_path], capture_output=True,
                           text=True, timeout=300, check=True)
    assert Path(again.stdout.strip()).read_bytes() == wheel.read_bytes()


def test_auditwheel_gives_it_the_same_tag(wheel, tmp_path):
    """auditwheel puts other copies of the small libraries in, by patchelf."""
    here = Path(sys.executable).parent
    done = subprocess.run([here / "auditwheel", "repair", "-w", tmp_path, wheel],
                          capture_output=True, text=True, timeout=120, env={**os.environ, "PATH": f"{here}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr
    (repaired,) = tmp_path.glob("*.whl")
    assert repaired.name == wheel.name and "-manylinux_2_" in wheel.name


def test_without_a_build_it_says_what_makes_one(tmp_path):
    done = subprocess.run([ROOT / "tools" / "wheel", "--build", tmp_path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 5 and done.stderr == f"tools/wheel: {tmp_path}: expected a build, found none; tools/build makes one\n"
