# SPDX-License-Identifier: MIT
"""Files that are loaded or compiled from Python, and those that are no modules of this machine."""
import json
import os
import shutil
import stat

import numpy
import onnx
import pytest

from conftest import ROOT, build_directory
from support.module import rnncc

DIGITS = ROOT / "models" / "digits_rnn.json"
WHOLE = build_directory() / "tests" / "unit" / "runtime_fake_module.so"  # with the runtime
FAKE = build_directory() / "tests" / "modules" / "fake_module.so"
X = numpy.random.default_rng(3).random((4, 8, 8), numpy.float32)


# ---- loading ----

def changed(at, value):
    """The file with these bytes at this place."""

    def make(path):
        data = bytearray(FAKE.read_bytes())
        data[at:at + len(value)] = value
        path.write_bytes(data)

    return make


@pytest.mark.parametrize("make, words", [
    (lambda path: None, "m.so: No such file or directory"),
    (lambda path: path.mkdir(), "m.so: Is a directory"),
    (lambda path: path.write_bytes(b""), "not a module of rnncc, it is no shared object (ELF)"),
    (lambda path: path.write_text("no module\n" * 100), "not a module of rnncc, it is no shared object (ELF)"),
    (lambda path: path.write_bytes(FAKE.read_bytes()[:1000]), "m.so: cut short: expected at least "),
    (lambda path: path.write_bytes(FAKE.read_bytes()[:64]), "m.so: cut short: expected at least "),
    (changed(18, b"\x07\x01"), "found one for ELF machine 263"),
    (changed(18, b"\xf3\x00" if os.uname().machine != "riscv64" else b"\xb7\x00"), "expected a module for "),
    (changed(5, b"\x02"), ", big-endian"),
    (changed(54, b"\x00\x00"), "m.so"),
    (changed(54, b"\x01\x00"), "m.so"),
    (changed(32, b"\xff" * 8), "m.so: cut short: expected at least "),
    (changed(32, b"\xff" * 7 + b"\x7f"), "m.so: cut short: expected at least "),
    (changed(4, b"\x01"), " of 32 bits"),
    (lambda path: os.mkfifo(path), "m.so: expected a file, found a pipe or a device"),
    (lambda path: path.symlink_to("/dev/zero"), "m.so: expected a file, found a pipe or a device"),
], ids=["none", "folder", "empty", "text", "cut", "header alone", "machine", "architecture", "byte order", "no segments", "small segments",
        "segments past any file", "segments past the file", "bits", "pipe", "device"])
def test_what_is_no_module_for_this_machine_is_refused(tmp_path, make, words):
    make(tmp_path / "m.so")
    with pytest.raises(rnncc.LoadError) as refused:
        rnncc.load(tmp_path / "m.so")
    assert words in str(refused.value) and str(tmp_path / "m.so") in str(refused.value)


def test_a_path_with_a_nul_is_refused():
    with pytest.raises(rnncc.LoadError, match="null byte"):
        rnncc.load("m\0.so")


@pytest.mark.parametrize("options", [{"threads": 2**32}, {"threads": 1.5}, {"threads": 1, "priority": -2**40}], ids=str)
def test_numbers_that_no_option_holds_are_refused(options):
    name = list(options)[-1]
    with pytest.raises(rnncc.ArgumentError, match=rf"options\.{name}: expected a whole number of 32 bits, found "):
        rnncc.load(FAKE, **options)


def test_other_libraries_are_no_modules():
    import _ctypes
    with pytest.raises(rnncc.LoadError, match="not a module of rnncc, it has no symbol rnncc_module_query"):
        rnncc.load(_ctypes.__file__)


def test_a_module_of_another_abi_or_cpu_says_why(compile, monkeypatch):
    path = compile(DIGITS)
    with monkeypatch.context() as patch:
        patch.setattr(rnncc.abi, "ABI", 99)
        with pytest.raises(rnncc.UnsupportedError, match="rnncc.h"):
            rnncc.load(path)
    monkeypatch.setenv("FAKE_MODULE_REFUSES", "1")
    with pytest.raises(rnncc.UnsupportedError, match="fake_module.so: this CPU lacks avx512f"):
        rnncc.load(FAKE)


def test_a_file_that_replaces_another_is_loaded_beside_it(compile, tmp_path):
    """dlopen() finds what it has under a name. A file is given back with the last that uses it, as before."""
    path, digits = tmp_path / "m.so", compile(DIGITS)
    loaded = []
    for data in (FAKE.read_bytes(), digits.read_bytes(), FAKE.read_bytes()):
        (tmp_path / "new").write_bytes(data)
        (tmp_path / "new").rename(path)
        loaded += [rnncc.load(path, threads=1), rnncc.load(path, threads=1)]
    assert [it.name[:4] for it in loaded] == ["fake"] * 2 + ["digi"] * 2 + ["fake"] * 2
    assert loaded[0]._library.library._handle == loaded[1]._library.library._handle != loaded[4]._library.library._handle
    assert loaded[2](X).shape == (4, 10) and all(it.path == str(path) for it in loaded)
    loaded.clear()
    assert str(tmp_path) not in open("/proc/self/maps").read()


def test_networks_of_a_bundle_share_workers(rnncc_bundle):
    with rnncc.load(rnncc_bundle, threads=2) as first:
        assert first.networks == ["a", "b"] and first.name == "a"
        second = first.network("b")
        third = rnncc.load(rnncc_bundle, "b", pool_of=first)
        assert numpy.array_equal(first(X), second(X)) and numpy.array_equal(first(X), third(X)) and second.threads == 2
        first.close()
        assert second(X).shape == (4, 10)
    with pytest.raises(rnncc.ArgumentError, match="the module has no network c; it has a, b"):
        rnncc.load(rnncc_bundle, "c")
    with pytest.raises(rnncc.ArgumentError, match="pool_of: expected a model of .*, found one of "):
        rnncc.load(rnncc_bundle, pool_of=rnncc.load(FAKE))


def test_a_pool_is_for_several_files(tmp_path):
    started = []
    pool = rnncc.Pool(WHOLE, threads=3, thread_start=started.append)
    assert sorted(started) == [1, 2] and (pool.threads, pool.waiting, repr(pool)) == (3, 0, "<rnncc.Pool of 3 threads>")
    modules = [rnncc.load(shutil.copy(WHOLE, tmp_path / f"{i}.so"), pool=pool, waits=True, priority=i) for i in range(2)]
    assert [it.threads for it in modules] == [3, 3]
    del pool
    assert [it.threads for it in modules] == [3, 3]


def test_what_a_pool_refuses():
    with pytest.raises(ZeroDivisionError):
        rnncc.Pool(WHOLE, threads=2, thread_start=lambda number: number / 0)
    with pytest.raises(rnncc.ArgumentError, match="options.threads is negative"):
        rnncc.Pool(WHOLE, threads=-1)
    pool, older = rnncc.Pool(WHOLE, threads=2), WHOLE.with_name("runtime_older_module.so")
    told = "expected a module with pools, found one that an older rnncc compiled; compile it again"
    with pytest.raises(rnncc.UnsupportedError, match=told):
        rnncc.Pool(older)
    with pytest.raises(rnncc.UnsupportedError, match=told):
        rnncc.load(older, pool=pool)
    with pytest.raises(rnncc.ArgumentError, match="options.pool and options.pool_of are both given"):
        rnncc.load(WHOLE, pool=pool, pool_of=rnncc.load(WHOLE))


@pytest.fixture(scope="module")
def rnncc_bundle(rnncc, tmp_path_factory):
    path = tmp_path_factory.mktemp("bundle") / "two.so"
    done = rnncc("bundle", f"a={DIGITS}", f"b={DIGITS}", "-o", path)
    assert done.returncode == 0, done.stderr
    return path


# ---- compiling ----

@pytest.fixture
def by_this_rnncc(rnncc, monkeypatch):
    monkeypatch.setenv("RNNCC", str(rnncc.path))


def test_models_are_compiled_and_kept_as_long_as_they_are_used(by_this_rnncc, tmp_path):
    module = rnncc.compile(DIGITS, threads=1)
    path = module.path
    with rnncc.compile(DIGITS, tmp_path / "m.so", target="x86-64" if os.uname().machine == "x86_64" else None,
                       options=["--threads=1"]) as kept:
        numpy.testing.assert_allclose(kept(X), module(X), atol=1e-6)
        assert kept.path == str(tmp_path / "m.so") and "--threads=1" in kept.info.build
    assert os.path.exists(path)
    del module
    assert not os.path.exists(os.path.dirname(path))


def scaled():
    """y = x * factor, and a state that adds the x up."""
    make, info = onnx.helper, onnx.helper.make_tensor_value_info
    graph = make.make_graph(
        [make.make_node("Mul", ["x", "factor"], ["y"]), make.make_node("Add", ["sum", "x"], ["total"])], "scaled",
        [info("x", 1, ["T"]), info("factor", 1, []), info("sum", 1, ["T"])], [info("y", 1, ["T"]), info("total", 1, ["T"])])
    return make.make_model(graph, opset_imports=[make.make_opsetid("", 22)])


def test_dims_states_and_constants_are_words_for_rnncc(by_this_rnncc):
    module = rnncc.compile(scaled(), dims={"T": (4, 4, 4)}, states={"sum": "total"}, freeze={"factor": 2.5}, threads=1)
    x = numpy.arange(4, dtype="f4")
    assert numpy.array_equal(module(x), 2.5 * x) and numpy.array_equal(module(x), 2.5 * x)
    assert [it.name for it in module.states] == ["sum"] and numpy.array_equal(module.default.state("sum"), 2 * x)


@pytest.mark.parametrize("bounds", [8, numpy.int64(8), "2..8", (2, 8), (2, 4, 8)])
def test_bounds_of_dims_have_several_forms(by_this_rnncc, bounds):
    module = rnncc.compile(scaled(), dims={"T": bounds})
    dims = [(it.min, it.max) for it in module.dims.values()]
    assert dims == [(8, 8) if bounds == 8 else (2, 8)]
    assert module.run({"x": X[0, 0], "factor": numpy.array(2, "f4"), "sum": X[0, 0]})["y"].shape == (8,)


def test_a_model_may_be_called_as_an_option_is(by_this_rnncc, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-v.onnx").write_bytes(scaled().SerializeToString())
    for model in ("-v.onnx", {"net": "-v.onnx"}):
        assert list(rnncc.compile(model, dims={"T": 3}).dims) == ["T"]


def test_what_rnncc_remarks_is_a_warning(by_this_rnncc):
    with pytest.warns(rnncc.CompileWarning, match="--dim 'T=1..16..256'"):
        rnncc.compile(scaled())


def test_several_networks_become_a_bundle(by_this_rnncc):
    module = rnncc.compile({"one": DIGITS, "two": scaled()}, dims={"T": 3}, threads=1)
    assert module.networks == ["one", "two"] and module.network("two").run(
        {"x": X[0, 0, :3], "factor": numpy.array(1, "f4"), "sum": X[0, 0, :3]})["y"].shape == (3,)


@pytest.mark.parametrize("model, options, words", [
    ("nothing.onnx", {}, "cannot read \"nothing.onnx\": No such file or directory"),
    (DIGITS, {"dims": {"Z": 3}}, "Z"),
    (DIGITS, {"dims": {"B": ()}}, r"dims: expected N, \(min, max\) or \(min, opt, max\), found \(\)"),
    (DIGITS, {"dims": {"B": 1.5}}, r"dims: expected N, \(min, max\) or \(min, opt, max\), found 1.5"),
    (DIGITS, {"target": "z80"}, "z80"),
    (DIGITS, {"options": ["--no-such"]}, "unknown option --no-such"),
    (DIGITS, {"options": "--train"}, "options: expected a list of words, found '--train'"),
    (17, {}, "expected a path or an onnx.ModelProto, found int"),
    ({"a b": DIGITS}, {}, "expected a network's name of letters, digits and _, found 'a b'"),
], ids=str)
def test_what_rnncc_refuses_is_an_exception_with_its_words(by_this_rnncc, monkeypatch, tmp_path, model, options, words):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with pytest.raises(rnncc.CompileError, match=words):
        rnncc.compile(model, **options)
    assert list(tmp_path.glob("rnncc-*")) == []


def program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_where_llvm_is_missing_it_says_what_to_install(by_this_rnncc, monkeypatch, tmp_path):
    monkeypatch.setenv("RNNCC_CLANG", str(tmp_path / "clang-19"))
    with pytest.raises(rnncc.ToolchainError, match="apt-get install clang-19 lld-19"):
        rnncc.compile(DIGITS)


def test_where_libc_is_older_it_says_so(monkeypatch, tmp_path):
    """In the loader's words, which ends such a program with 1."""
    loader = "rnncc: /lib/libc.so.6: version `GLIBC_2.99' not found (required by rnncc)"
    monkeypatch.setenv("RNNCC", program(tmp_path / "rnncc", f"cat >&2 <<'END'\n{loader}\nEND\nexit 1"))
    with pytest.raises(rnncc.ToolchainError, match="(?s)GLIBC_2.99.*built on a machine with a newer libc; tools/wheel makes"):
        rnncc.compile(DIGITS)


@pytest.mark.parametrize("absent, words", [
    ("templates", "templates/[a-z_]+.c: error: cannot read this file of rnncc's own: No such file or directory; install"),
    ("templates/simd/simd.h", "templates/.*'simd/simd.h' file not found, which is rnncc's own.*install that again, whole"),
    ("runtime/rnncc.h", "templates/.*'rnncc.h' file not found, which is rnncc's own.*install that again, whole"),
    ("runtime", "'rnncc.h' file not found, which is rnncc's own")])
def test_where_a_file_of_rnncc_is_missing_it_says_which_and_where(by_this_rnncc, monkeypatch, tmp_path, absent, words):
    for name in ("templates", "runtime", "schedules"):
        shutil.copytree(ROOT / name, tmp_path / name)
    gone = tmp_path / absent
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    monkeypatch.setenv("RNNCC_DATA", str(tmp_path))
    with pytest.raises(rnncc.ToolchainError, match=f"(?s){tmp_path}.*{words}"):
        rnncc.compile(DIGITS)


def test_where_rnncc_is_missing_it_says_where_it_looked(monkeypatch, tmp_path):
    monkeypatch.setenv("RNNCC", str(tmp_path / "rnncc"))
    with pytest.raises(rnncc.ToolchainError, match=rf"\$RNNCC: expected a program, found {tmp_path}/rnncc"):
        rnncc.compile(DIGITS)
    monkeypatch.delenv("RNNCC")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(rnncc.ToolchainError, match=r"\$RNNCC is not set, .*/bin/rnncc is not there, and the PATH has none"):
        rnncc.compile(DIGITS)
    called = program(tmp_path / "rnncc", f"echo \"$@\" >{tmp_path}/words; exit 1")
    with pytest.raises(rnncc.CompileError, match="rnncc ended with status 1"):
        rnncc.compile(DIGITS, "m.so")
    assert (tmp_path / "words").read_text() == f"{DIGITS} -o m.so\n" and called


def test_json_is_what_constants_are_given_as():
    from rnncc.compiling.compiler import _words
    words = list(_words(None, None, {"a": numpy.arange(3), "b": True, "c": numpy.float32(0.5)}, None, ()))
    assert words[1::2] == ["a=[0, 1, 2]", "b=true", "c=0.5"] and json.loads(words[1][2:]) == [0, 1, 2]
