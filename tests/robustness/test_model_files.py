# SPDX-License-Identifier: MIT
"""Weights files with wrong contents, and paths that lead elsewhere."""
import hashlib
import json
import os
import struct
import subprocess
import sys

import numpy
import pytest

from support.refusal import (GOOD_WEIGHTS, accepted, refused, safetensors_bytes, safetensors_of, small_model,
                             with_weights, write)


def entry(dtype="F32", shape=(3,), offsets=(0, 12)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


DATA = bytes(12)
FILES = {
    "empty": (b"", 2, ["0 bytes"]),
    "shorter than the length": (b"1234567", 2, ["7 bytes"]),
    "header longer than the file": (struct.pack("<Q", 100) + b"{}", 2, ["100 bytes", "10"]),
    "header length that wraps": (struct.pack("<Q", 2**64 - 8) + b"{}", 2, ["18446744073709551608"]),
    "header that is no object": (safetensors_bytes(b"[]"), 2, ["byte 8", "expected an object, found an array"]),
    "header cut short": (safetensors_bytes(b'{"c":'), 2, ["byte 13"]),
    "duplicate tensor": (safetensors_bytes(b'{"c":{},"c":{}}'), 2, ["given twice"]),
    "unknown key": (safetensors_bytes({"c": {**entry(), "stride": 1}}, DATA), 2, ["c.stride"]),
    "missing key": (safetensors_bytes({"c": {"dtype": "F32", "shape": [3]}}, DATA), 2, ['"data_offsets" is missing']),
    "metadata that is no text": (safetensors_bytes({"__metadata__": {"a": 1}, "c": entry()}, DATA), 2, ["__metadata__.a"]),
    "end before begin": (safetensors_bytes({"c": entry(offsets=(12, 0))}, DATA), 2, ["c.data_offsets[1]", "12 to 12"]),
    "end past the file": (safetensors_bytes({"c": entry(offsets=(0, 16))}, DATA), 2, ["c.data_offsets[1]", "0 to 12"]),
    "negative begin": (safetensors_bytes({"c": entry(offsets=(-4, 8))}, DATA), 2, ["c.data_offsets[0]"]),
    "begin past 2^64": (safetensors_bytes({"c": entry(offsets=(2**64, 2**64 + 12))}, DATA), 2, ["c.data_offsets[0]"]),
    "one offset": (safetensors_bytes({"c": entry(offsets=(0,))}, DATA), 2, ["[begin, end]"]),
    "three offsets": (safetensors_bytes({"c": entry(offsets=(0, 6, 12))}, DATA), 2, ["[begin, end]"]),
    "length other than the shape's": (safetensors_bytes({"c": entry(shape=(4,))}, DATA), 2, ["12 bytes", "16 bytes"]),
    "shape whose product wraps to it": (safetensors_bytes({"c": entry(shape=(2**32, 2**32, 3))}, DATA), 4, ["c.shape"]),
    "shape whose bytes wrap to it": (safetensors_bytes({"c": entry(shape=(2**62 + 3,))}, DATA), 4, ["c.shape"]),
    "negative axis": (safetensors_bytes({"c": entry(shape=(-3,))}, DATA), 2, ["c.shape[0]"]),
    "overlapping tensors": (safetensors_bytes({"c": entry(), "d": entry(shape=(1,), offsets=(8, 12))}, DATA), 2, ["inside"]),
    "the same data twice": (safetensors_bytes({"c": entry(), "d": entry()}, DATA), 2, ["inside"]),
    "a gap before": (safetensors_bytes({"c": entry(offsets=(4, 16))}, bytes(16)), 2, ["with a gap after"]),
    "a gap between": (safetensors_bytes({"c": entry(), "d": entry(shape=(1,), offsets=(16, 20))}, bytes(20)), 2, ["gap"]),
    "bytes after the last": (safetensors_bytes({"c": entry()}, bytes(13)), 2, ["1 bytes after the last tensor"]),
    "dtype without meaning": (safetensors_bytes({"c": entry(dtype="Q7")}, DATA), 3, ['"Q7"', "supported are f64, f32"]),
    "dtype C64 of what is read": (safetensors_bytes({"c": entry("C64", (1,), (0, 8))}, bytes(8)), 3, ["c: ", "C64"]),
    "rank 9 of what is read": (safetensors_bytes({"c": entry(shape=[1] * 8 + [3])}, DATA), 3, ["rank 9"]),
    "BOOL that is neither": (safetensors_bytes({"c": entry("BOOL", (3,), (0, 3))}, b"\0\1\2"), 2, ["element 2, found 2"]),
}


@pytest.mark.parametrize("name", FILES)
def test_a_weights_file_that_lies_is_refused(rnncc, tmp_path, name):
    content, code, texts = FILES[name]
    (tmp_path / "w.safetensors").write_bytes(content)
    refused(rnncc, tmp_path, with_weights(), code, "w.safetensors", *texts)


@pytest.mark.parametrize("length", range(0, len(GOOD_WEIGHTS), 13))
def test_a_weights_file_cut_short_is_refused(rnncc, tmp_path, length):
    """tests/unit/load_model_test.c cuts at every byte."""
    (tmp_path / "w.safetensors").write_bytes(GOOD_WEIGHTS[:length])
    refused(rnncc, tmp_path, with_weights(), 2, "w.safetensors")


def test_an_unread_tensor_may_have_any_type(rnncc, tmp_path):
    header = {"c": entry(), "unused": entry("C64", (1,), (12, 20)), "deep": entry("U8", [1] * 20, (20, 21))}
    (tmp_path / "w.safetensors").write_bytes(safetensors_bytes(header, bytes(21)))
    written = accepted(rnncc, tmp_path, with_weights())
    assert written["nodes"][0]["inputs"] == ["x", "c"]


def test_unaligned_data_is_read_right(rnncc, tmp_path):
    text = json.dumps({"c": entry()}).encode()
    text += b" " * ((3 - len(text)) % 8)
    (tmp_path / "w.safetensors").write_bytes(safetensors_bytes(text, numpy.array([1, 2, 3], numpy.float32).tobytes()))
    accepted(rnncc, tmp_path, with_weights())
    assert (tmp_path / "out.graph.safetensors").read_bytes().endswith(numpy.array([1, 2, 3], numpy.float32).tobytes())


def test_nan_and_infinity_are_weights_like_any_other(rnncc, tmp_path):
    weights = numpy.array([numpy.nan, numpy.inf, -numpy.inf], numpy.float32)
    (tmp_path / "w.safetensors").write_bytes(safetensors_of(c=weights))
    accepted(rnncc, tmp_path, with_weights())
    assert (tmp_path / "out.graph.safetensors").read_bytes().endswith(weights.tobytes())


def test_one_name_in_two_files_is_refused(rnncc, tmp_path):
    for name in ("w.safetensors", "v.safetensors"):
        (tmp_path / name).write_bytes(GOOD_WEIGHTS)
    model = with_weights()
    model["weights"].append({"file": "v.safetensors"})
    refused(rnncc, tmp_path, model, 2, "v.safetensors: c:", "already declared at w.safetensors: c")


def test_another_hash_is_refused_with_the_right_one(rnncc, tmp_path):
    (tmp_path / "w.safetensors").write_bytes(GOOD_WEIGHTS)
    right = hashlib.sha256(GOOD_WEIGHTS).hexdigest()
    model = with_weights()
    model["weights"][0]["sha256"] = right.upper()
    accepted(rnncc, tmp_path, model)
    model["weights"][0]["sha256"] = right[:-1] + ("0" if right[-1] != "0" else "1")
    refused(rnncc, tmp_path, model, 2, "weights[0].sha256", right)


@pytest.mark.parametrize("file, text", [
    ("/etc/passwd", "absolute"),
    ("../w.safetensors", '".."'),
    ("sub/../../w.safetensors", '".."'),
    ("..", '".."'),
    ("", "empty"),
    (".", "leads out"),
    ("sub", "a folder"),
    ("nowhere.safetensors", "No such file"),
    ("w.safetensors/x", "Not a directory"),
    ("x" * 300, "too long"),
    ("out_link.safetensors", "leads out"),
    ("folder_link/w.safetensors", "leads out"),
    ("zero_link", "leads out"),
    ("loop", "symbolic links"),
    ("pipe", "a pipe"),
])
def test_a_path_that_leads_elsewhere_is_refused(rnncc, tmp_path, file, text):
    outside, folder = tmp_path / "outside", tmp_path / "model"
    outside.mkdir(), folder.mkdir()
    for path in (outside / "w.safetensors", folder / "w.safetensors", tmp_path / "w.safetensors"):
        path.write_bytes(GOOD_WEIGHTS)
    (folder / "sub").mkdir()
    (folder / "out_link.safetensors").symlink_to(outside / "w.safetensors")
    (folder / "folder_link").symlink_to(outside)
    (folder / "zero_link").symlink_to("/dev/zero")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe")
    refused(rnncc, folder, with_weights(file), 2, "weights[0].file", text)


def test_a_device_as_weights_is_refused(rnncc, tmp_path):
    """If the user may make one; otherwise only a link reaches a device, and links out of the folder are refused."""
    try:
        os.mknod(tmp_path / "zero", 0o600 | 0o020000, os.makedev(1, 5))
    except OSError:
        pytest.skip("this user may make no device")
    refused(rnncc, tmp_path, with_weights("zero"), 2, "a character device")


@pytest.mark.parametrize("kind", ["symbolic link within the folder", "hard link", "in a subfolder"])
def test_a_path_within_the_folder_is_read(rnncc, tmp_path, kind):
    (tmp_path / "sub").mkdir()
    real = tmp_path / "sub" / "real.safetensors"
    real.write_bytes(GOOD_WEIGHTS)
    if kind == "symbolic link within the folder":
        (tmp_path / "w.safetensors").symlink_to("sub/real.safetensors")
    if kind == "hard link":
        os.link(real, tmp_path / "w.safetensors")
    accepted(rnncc, tmp_path, with_weights("sub/real.safetensors" if kind == "in a subfolder" else "w.safetensors"))


@pytest.mark.parametrize("weights, good", [("blobs/2", True), ("blobs/sub/2", True), ("2", False), ("outside/2", False)])
def test_a_linked_models_weights_may_lead_to_the_folder_of_its_file(rnncc, tmp_path, weights, good):
    """As in the cache of Hugging Face's downloads: snapshots of names, which are links to blobs."""
    snapshot = tmp_path / "snapshots" / "main"
    for folder in (snapshot, tmp_path / "blobs" / "sub", tmp_path / "outside"):
        folder.mkdir(parents=True)
    (tmp_path / "blobs" / "1").write_text(json.dumps(with_weights()))
    (tmp_path / weights).write_bytes(GOOD_WEIGHTS)
    (snapshot / "model.json").symlink_to("../../blobs/1")
    (snapshot / "w.safetensors").symlink_to(f"../../{weights}")
    done = rnncc(snapshot / "model.json", "-o", tmp_path / "m.so")
    assert done.returncode == (0 if good else 2), done.stderr
    assert good or "leads out of the model's folder" in done.stderr


@pytest.mark.parametrize("path, text", [
    ("/dev/zero", "model"),
    ("/dev/null", "model"),
    ("nowhere.json", "No such file"),
    ("zero.json", "a character device"),
    ("folder.json", "a folder"),
    ("pipe.json", "a pipe"),
])
def test_a_model_that_is_no_file_is_refused(rnncc, tmp_path, path, text):
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    done = rnncc(path, "-o", tmp_path / "out.so", cwd=tmp_path, timeout=20)
    assert done.returncode in (2, 3), done.stderr
    assert text in done.stderr
    assert not (tmp_path / "out.so").exists()


def test_a_file_whose_size_lies_is_refused(rnncc, tmp_path):
    """Like one that grows or shrinks while it is read: files of /proc have size 0, those of /sys a page."""
    (tmp_path / "proc.json").symlink_to("/proc/version")
    done = rnncc(tmp_path / "proc.json", "-o", tmp_path / "out.so")
    assert done.returncode == 5 and "changed while being read" in done.stderr, done.stderr


def test_a_file_shorter_than_its_size_is_refused(rnncc, tmp_path):
    lying = next((path for path in ("/sys/kernel/profiling", "/sys/kernel/mm/transparent_hugepage/enabled")
                  if os.path.exists(path)), None)
    if not lying:
        pytest.skip("this kernel has no /sys")
    (tmp_path / "sys.json").symlink_to(lying)
    done = rnncc(tmp_path / "sys.json", "-o", tmp_path / "out.so")
    assert done.returncode == 5 and "changed while being read" in done.stderr, done.stderr


def test_the_model_is_found_from_any_folder(rnncc, tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    (tmp_path / "w.safetensors").write_bytes(GOOD_WEIGHTS)
    write(tmp_path, with_weights())
    for folder, path in ((tmp_path, "model.json"), (tmp_path / "sub", "../model.json"), ("/", tmp_path / "model.json")):
        done = rnncc(path, "--emit=graph", "-o", tmp_path / "again.json", cwd=folder)
        assert done.returncode == 0, done.stderr


def test_an_unused_weights_file_is_still_checked(rnncc, tmp_path):
    (tmp_path / "w.safetensors").write_bytes(b"")
    refused(rnncc, tmp_path, {**small_model(), "weights": [{"file": "w.safetensors"}]}, 2, "w.safetensors")


@pytest.mark.parametrize("name", ["exported.pt2", "weights.pt", "weights.pth"])
def test_a_file_of_pytorch_is_refused_with_what_to_do(rnncc, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"PK\x03\x04")
    refused(rnncc, tmp_path, path, 3, "state dicts", "torch.onnx.export", "tools/from_torch")


def test_from_torch_says_in_one_line_that_torch_is_missing(root, tmp_path):
    (tmp_path / "net.py").write_text("import torch")
    done = subprocess.run([sys.executable, "-S", root / "tools" / "from_torch", f"{tmp_path}/net.py:build", "-o", tmp_path / "m.so"],
                          capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == "" and done.stderr == (
        "tools/from_torch: expected Python with torch, onnx, onnxscript, found none with torch; `tools/venv torch` makes "
        ".venv-torch/bin/python\n")
