# SPDX-License-Identifier: MIT
"""The promises for every refused model: exit code, a message with the place, the output unchanged, nothing left behind."""
import copy
import json
import struct

import numpy

TYPES = {"float32": "F32", "int32": "I32", "int64": "I64", "uint8": "U8", "bool": "BOOL"}


def small_model():
    """A model that compiles: y = Relu(x + c)."""
    return copy.deepcopy({
        "format": "rnncc", "version": 1, "name": "small",
        "dims": {"T": {"min": 1, "opt": 4, "max": 8}},
        "inputs": [{"name": "x", "dtype": "f32", "shape": ["T", 3]}],
        "outputs": ["y"],
        "constants": {"c": {"dtype": "f32", "shape": [3], "data": [1, 2, 3]}},
        "nodes": [{"op": "Add", "name": "add", "inputs": ["x", "c"], "outputs": ["s"]},
                  {"op": "Relu", "name": "relu", "inputs": ["s"], "outputs": ["y"]}],
    })


def with_weights(file="w.safetensors"):
    """The same with c in a weights file."""
    model = small_model()
    del model["constants"]
    model["weights"] = [{"file": file}]
    return model


def safetensors_bytes(header, data=b""):
    """`header`: a dict, or the header's bytes."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def safetensors_of(**arrays):
    header, data = {}, b""
    for name, array in arrays.items():
        begin = len(data)
        data += array.tobytes()
        header[name] = {"dtype": TYPES[str(array.dtype)], "shape": list(array.shape), "data_offsets": [begin, len(data)]}
    return safetensors_bytes(header, data)


GOOD_WEIGHTS = safetensors_of(c=numpy.array([1, 2, 3], numpy.float32))


def write(folder, model, name="model.json"):
    """`model`: a dict, text or bytes."""
    path = folder / name
    text = model if isinstance(model, (bytes, str)) else json.dumps(model)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def listing(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def refused(rnncc, folder, model, code, *texts):
    """Compiles `model` and checks how it is refused. Returns the messages."""
    path = write(folder, model) if isinstance(model, (dict, bytes, str)) else model
    output = folder / "out.so"
    output.write_bytes(b"what was here before")
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    before = listing(folder)
    done = rnncc(path, "-o", output, env={"PATH": "/usr/bin:/bin", "TMPDIR": str(temporary)}, timeout=60, text=False)
    said = done.stderr.decode()
    assert done.returncode == code, f"exit {done.returncode}, expected {code}:\n{said}"
    for text in texts:
        assert text in said, f"{text!r} is not in:\n{said}"
    assert done.stdout == b""
    assert all(byte >= 0x20 or byte == 0x0a for byte in done.stderr), "control characters reach the terminal"
    assert output.read_bytes() == b"what was here before"
    assert listing(folder) == before
    return said


def accepted(rnncc, folder, model):
    """Loads `model` and returns it as rnncc writes it back."""
    path = write(folder, model) if isinstance(model, (dict, bytes, str)) else model
    output = folder / "out.graph.json"
    done = rnncc(path, "--emit=graph", "-o", output, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(output.read_text())
