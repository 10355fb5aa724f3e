# SPDX-License-Identifier: MIT
"""--emit=wheel: a module that pip installs, which needs NumPy and no compiler."""
import base64
import hashlib
import json
import keyword
import shutil
import zipfile

import numpy
import onnx
import pytest

from conftest import ROOT
from support.module import rnncc as package
from support.user import User

DIGITS = ROOT / "models" / "digits_rnn.json"
RUN = """
import sys, numpy, {name}
m = {name}.load({network!r}, threads=1)
y = m(numpy.ones((2, 8, 8), numpy.float32))
try:
    m(numpy.ones((2, 8, 8)))
except {name}.Error as error:
    print(error)
assert not [name for name in sys.modules if name.split(".")[0] == "rnncc"]
print({name}.__file__, y.tobytes().hex())
"""


def copy_of(folder, name, **fields):
    """digits_rnn as a file of another name, with these fields."""
    shutil.copy(DIGITS.with_suffix(".safetensors"), folder)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**json.loads(DIGITS.read_text()), **fields}))
    return path


@pytest.fixture(scope="module")
def user():
    with User() as user:
        user.bin, user.packages = user.venv("venv")
        yield user


@pytest.mark.parametrize("networks, words", [(None, ["--name=reader"]), ("second", [])], ids=["model", "bundle"])
def test_it_is_installed_and_runs_from_any_folder(rnncc, compile, user, tmp_path, networks, words):
    given = ["bundle", f"first={DIGITS}", f"second={DIGITS}"] if networks else [DIGITS]
    name = "readers" if networks else "reader"
    done = rnncc(*given, "--emit=wheel", "-o", tmp_path / name, *words)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / name).iterdir()
    assert done.stdout == f"{wheel}\n"
    shutil.copy(wheel, user.folder)
    user.must(user.bin / "pip", "install", "--no-index", "--no-deps", "--force-reinstall", wheel.name)
    said = user.must(user.bin / "python", "-c", RUN.format(name=name, network=networks)).split("\n")
    with package.load(compile(DIGITS), threads=1) as module:
        expected = module(numpy.ones((2, 8, 8), numpy.float32))
    assert said[0] == "input x: expected f32, found float64"
    place, found = said[1].split()
    assert place == f"{user.packages}/{name}/__init__.py"
    numpy.testing.assert_allclose(numpy.frombuffer(bytes.fromhex(found), "f4").reshape(2, 10), expected, atol=1e-6)


def test_its_record_is_of_its_files_and_the_same_model_gives_the_same_bytes(rnncc, tmp_path):
    for folder in ("a", "b"):
        assert rnncc(DIGITS, "--emit=wheel", "-o", tmp_path / folder).returncode == 0
    (first,), (second,) = (tmp_path / "a").iterdir(), (tmp_path / "b").iterdir()
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as file:
        assert file.testzip() is None
        (record,) = [name for name in file.namelist() if name.endswith(".dist-info/RECORD")]
        lines = []
        for name in file.namelist():
            digest = base64.urlsafe_b64encode(hashlib.sha256(file.read(name)).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(file.read(name))}" if name != record else f"{name},,")
        assert file.read(record).decode().splitlines() == lines


@pytest.mark.parametrize("target, tag", [("x86-64", "manylinux_2_17_x86_64"), ("x86-64-v3,x86-64", "manylinux_2_17_x86_64"),
                                         ("aarch64-linux-gnu", "manylinux_2_17_aarch64"),
                                         ("riscv64-linux-gnu", "manylinux_2_27_riscv64"),
                                         ("x86_64-linux-musl", "musllinux_1_2_x86_64")])
def test_its_name_says_what_it_is_for(rnncc, tmp_path, target, tag):
    done = rnncc(DIGITS, "--emit=wheel", "-o", tmp_path, f"--target={target}")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [f"digits_rnn-0-py3-none-{tag}.whl"]


@pytest.mark.parametrize("name, fields, wheel", [
    ("Net", {"x-model": "y"}, "net-0"), ("__my__net_", {}, "my_net-0"), ("_", {}, "model-0"), ("a b-c", {}, "a_b_c-0")])
def test_names_are_those_that_pip_takes(rnncc, tmp_path, name, fields, wheel):
    assert rnncc(copy_of(tmp_path, name, **fields), "--emit=wheel", "-o", tmp_path / "out").returncode == 0
    (path,) = (tmp_path / "out").iterdir()
    assert path.name.startswith(f"{wheel}-py3-none-")


@pytest.mark.parametrize("version, said", [(7, "7"), (0, "0")])
def test_its_version_is_the_models(rnncc, tmp_path, version, said):
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [info("x", 1, [3])], [info("y", 1, [3])])
    onnx.save(onnx.helper.make_model(graph, model_version=version), tmp_path / "relu.onnx")
    done = rnncc(tmp_path / "relu.onnx", "--emit=wheel", "-o", tmp_path / "out")
    assert done.returncode == 0 and f"/relu-{said}-py3-none-" in done.stdout, done.stderr


@pytest.mark.parametrize("words, message", [
    (["-o", "x.whl"], "-o: expected the folder of the wheel, whose name says what it is for, found x.whl"),
    (["-o", "-"], "only --emit=h and --emit=dot go to stdout"),
    (["--name=class"], "--emit=wheel: no package can be called class, a word of Python; expected --name=NAME"),
    (["--name=or"], "no package can be called or"),
    (["--profile=edge", "--dim", "B=1"], "--profile=edge goes with --static, --emit=c and --emit=h"),
    (["--static"], "--static goes with no --emit but so"),
    (["--depfile=x.d"], "--depfile goes with outputs whose path is known, not with --emit=wheel")], ids=str)
def test_what_makes_no_wheel_is_refused(rnncc, tmp_path, words, message):
    done = rnncc(DIGITS, "--emit=wheel", *words, cwd=tmp_path)
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_said(rnncc, tmp_path):
    (tmp_path / "file").touch()
    done = rnncc(DIGITS, "--emit=wheel", "-o", tmp_path / "file" / "w")
    assert done.returncode == 5 and "file/w: error: cannot create the folder: Not a directory" in done.stderr, done.stderr


def test_words_of_python_are_those_that_python_has():
    said = (ROOT / "compiler" / "link" / "wheel.c").read_text().split("python_words[] = {")[1].split("}")[0]
    assert sorted(said.replace('"', " ").replace(",", " ").split()) == sorted(keyword.kwlist)
