# SPDX-License-Identifier: MIT
"""`rnnrun inspect` of modules for other machines: what it prints is read from the file, which is not loaded."""
import random
import struct

import numpy as np
import pytest

from conftest import ROOT
from support.amount import some
from support.model_builder import Model
from support.noted import noted

E_CLASS, E_DATA, E_MACHINE, HEADERS = 4, 5, 18, 64 + 9 * 56
S390, POWERPC, UNKNOWN = 22, 21, 0x7777


def changed(module, path, **bytes_at):
    """A copy of the module, for another machine by its header."""
    image = bytearray(module.read_bytes())
    struct.pack_into("<H", image, E_MACHINE, bytes_at.get("machine", S390))
    for place, value in ((E_CLASS, bytes_at.get("width")), (E_DATA, bytes_at.get("order"))):
        if value:
            image[place] = value
    path.write_bytes(image)
    return path


def odd(folder):
    """Names that must not reach a terminal as they are, a state, an extent that only the data tells."""
    model = Model("odd")
    model.dim("T\t1", 1, 5, 20)
    model.output(model.node("NonZero", [model.input("x\\\u00e9", "f32", ["T\t1", 3])]))
    total = model.node("Add", ["held", model.input("y", "f32", [2])])
    model.output(total)
    model.state("held", total, "f32", [2])
    path = model.write(folder)
    path.write_text(path.read_text().replace('"odd"', r'"odd\n\"name\u001b"', 1))
    return path


@pytest.mark.parametrize("name, options", [("digits_rnn", []), ("digits_cnn", ["--weights=mutable"]), ("odd", [])])
def test_the_note_says_what_the_loaded_module_does(rnnrun, compile, tmp_path, name, options):
    module = compile(odd(tmp_path) if name == "odd" else ROOT / "models" / f"{name}.json", *options)
    loaded, read = rnnrun("inspect", module), rnnrun("inspect", changed(module, tmp_path / "other.so"))
    assert (loaded.returncode, read.returncode) == (0, 0), loaded.stderr + read.stderr
    machine, *lines = read.stdout.splitlines()
    assert machine.startswith("machine  s390, 64 bits, little-endian; this is ")
    assert lines == noted(loaded) and len(lines) >= 8
    assert any(line.startswith("weight   ") for line in lines) == ("--weights=mutable" in options)


def by_type(text):
    """{type: bytes} of the line of types, or {} without one."""
    lines = [line for line in text.splitlines() if line.startswith("types")]
    assert len(lines) <= 1
    words = lines[0].removeprefix("types").replace(" bytes", "").split(", ") if lines else []
    return {dtype: int(count) for count, dtype in (word.split(" of ") for word in words)}


def test_weights_are_listed_by_type(rnncc, rnnrun, compile, tmp_path):
    """Kernels read these constants as they are: a table of f32 and one of bytes, and the indices of both."""
    model = Model("tables")
    indices = model.constant(np.array([3, 0, 2], np.int64))
    for name, table in (("floats", np.ones((5, 16), np.float32)), ("bytes", np.ones((5, 64), np.int8))):
        rows = model.node("Gather", [model.input(f"{name}_in", {"floats": "f32", "bytes": "i8"}[name], list(table.shape)), indices])
        model.output(model.node("Concat", [rows, model.constant(table)], axis=0))
    path = model.write(tmp_path)
    expected = {"f32": 5 * 16 * 4, "i64": 3 * 8, "i8": 5 * 64}
    assert by_type(rnnrun("inspect", compile(path)).stdout) == expected
    assert by_type(rnncc("inspect", path).stdout) == expected


def test_no_types_of_no_weights(rnncc, rnnrun, compile, tmp_path):
    model = Model("bare")
    model.output(model.node("Relu", [model.input("x", "f32", [4])]))
    path = model.write(tmp_path)
    assert by_type(rnnrun("inspect", compile(path)).stdout) == by_type(rnncc("inspect", path).stdout) == {}


def test_a_module_that_was_built_for_another_machine(rnncc, aarch64_rnnrun, rnnrun, tmp_path):
    done = rnncc(ROOT / "models" / "digits_rnn.json", "--target=aarch64-linux-gnu", "-o", tmp_path / "m.so")
    assert done.returncode == 0, done.stderr
    here, there = rnnrun("inspect", tmp_path / "m.so"), aarch64_rnnrun("inspect", tmp_path / "m.so")
    assert (here.returncode, there.returncode) == (0, 0), here.stderr + there.stderr
    assert here.stdout.startswith("machine  aarch64, 64 bits, little-endian; this is x86_64")
    assert here.stdout.splitlines()[1:] == noted(there)
    done = rnnrun("run", tmp_path / "m.so", "--input", "x=random")
    assert done.returncode == 5 and "m.so: for aarch64, 64 bits, little-endian; this is x86_64 with glibc" in done.stderr


def test_a_module_that_was_built_with_another_libc(compile, rnnrun, rnnrun_of):
    by_musl = rnnrun_of("x86_64-linux-musl")
    module = compile(ROOT / "models" / "digits_rnn.json", "--target=x86_64-linux-musl")
    machine, *lines = rnnrun("inspect", module).stdout.splitlines()
    assert machine == ("machine  x86_64, 64 bits, little-endian, musl; this is x86_64 with glibc, so the module is read, not "
                       "loaded")
    assert lines == noted(by_musl("inspect", module)) and "target   x86_64-linux-musl" in lines
    for verb, *words in (["run"], ["bench"], ["profile"], ["verify", "--expect", "probabilities=@absent.npy"]):
        done = rnnrun(verb, module, *words)
        assert done.returncode == 5 and "for x86_64, 64 bits, little-endian, musl; this is x86_64 with glibc" in done.stderr, verb


@pytest.mark.parametrize("form, said", [
    ({"machine": UNKNOWN}, "machine 30583, 64 bits, little-endian"),
    ({"machine": POWERPC << 8, "order": 2}, "ppc64, 64 bits, big-endian"),
    ({"machine": S390, "width": 1}, "s390, 32 bits, little-endian")], ids=str)
def test_a_file_without_a_note_is_told_apart(rnnrun, compile, tmp_path, form, said):
    """In the other forms no field is where this module has it."""
    done = rnnrun("inspect", changed(compile(ROOT / "models" / "digits_rnn.json"), tmp_path / "m.so", **form))
    if form == {"machine": UNKNOWN}:
        assert done.returncode == 0 and done.stdout.startswith(f"machine  {said}; this is ")
    else:
        assert (done.returncode, done.stdout) == (5, "")
        assert f"for {said}; not a module of rnncc" in done.stderr


def test_very_many_notes_are_each_told_once(rnnrun, tmp_path):
    """20,000 networks, each for two targets, in notes that each of 1,000 segments has."""
    count, segments, image = 20000, 1000, bytearray()
    for i in range(2 * count):
        text = f"model    n{i % count}\ninput    x f32 [2]\ntarget   t{i // count}\n".encode() + b"\0"
        image += struct.pack("<III8s", 6, len(text), 1, b"rnncc") + text + bytes(-len(text) % 4)
    start = 64 + 56 * segments
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, S390, 1, 0, 64, 0, 0, 64, 56, segments, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 4, 4, start, 0, 0, len(image), len(image), 4)
    (tmp_path / "many.so").write_bytes(header + segments * segment + image)
    done = rnnrun("inspect", tmp_path / "many.so")
    assert done.returncode == 0, done.stderr
    _, *lines = [line for line in done.stdout.splitlines() if line and not line.startswith("file")]
    assert lines == [line for i in range(count) for line in (f"model    n{i}", "input    x f32 [2]", "target   t0", "target   t1")]


def test_damaged_headers_do_no_harm(rnnrun, compile, tmp_path):
    image = bytearray(changed(compile(ROOT / "models" / "digits_rnn.json"), tmp_path / "m.so").read_bytes())
    random.seed(17)
    statuses = set()
    for _ in some(range(1000), 60):
        damaged = bytearray(image[:random.choice([len(image), random.randrange(HEADERS)])])
        for _ in range(random.randrange(1, 6)):
            at = random.randrange(min(HEADERS, len(damaged) or 1))
            damaged[at:at + 1] = bytes([random.choice([0, 1, 0x7f, 0xff, random.randrange(256)])])
        (tmp_path / "damaged.so").write_bytes(damaged)
        statuses.add(rnnrun("inspect", tmp_path / "damaged.so", errors="replace").returncode)
    assert statuses == {0, 5}
