# SPDX-License-Identifier: MIT
"""ONNX files whose bytes are no model: as Protocol Buffers encodes fields, or of another kind of file."""


# ---- bytes ----

def varint(value):
    data = b""
    while value > 0x7f:
        data, value = data + bytes([value & 0x7f | 0x80]), value >> 7
    return data + bytes([value])


def field(number, wire, payload=b""):
    return varint(number << 3 | wire) + payload


def message(number, payload):
    return field(number, 2, varint(len(payload)) + payload)


def nested(depth):
    """A body in a body in ..., by the fields attribute (5) and g (6)."""
    heads, length = [], 0
    for number in (6, 5, 1) * depth:  # from within
        heads.append(field(number, 2, varint(length)))
        length += len(heads[-1])
    return message(7, b"".join(reversed(heads)))


OPSET = message(8, b"\x10\x11")
# Of the default of a function's attribute (field 11 of FunctionProto, field 25 of ModelProto), which is read when it is needed.
BAD_DEFAULT = message(25, message(1, b"Own") + message(5, b"y") + message(10, b"local") + message(11, b"\x0a\x7f") + message(
    7, message(2, b"y") + message(4, b"Constant") + message(5, message(1, b"value_int") + message(21, b"v"))))

# Name, file, exit code, what is said.
ROWS = [
    ("text", b"this is no model at all", 2, ["byte 0: this is no ONNX model: a field is not encoded as its kind is"]),
    ("nothing", b"", 2, ["expected an ONNX model, found an empty file"]),
    ("a pointer of Git LFS", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n", 2,
     ["expected an ONNX model, found a Git LFS pointer (`git lfs pull` fetches the file that it stands for)"]),
    ("what torch.save() writes", b"PK\x03\x04" + bytes(26), 2,
     ["expected an ONNX model, found a zip archive, as torch.save() writes (torch.onnx.export() writes ONNX)"]),
    ("what gzip writes", b"\x1f\x8b\x08" + bytes(20), 2,
     ["expected an ONNX model, found a file that gzip made (gunzip unpacks it)"]),
    ("what Keras writes", b"\x89HDF\r\n\x1a\n" + bytes(20), 2,
     ["expected an ONNX model, found an HDF5 file, as Keras writes (tf2onnx writes ONNX)"]),
    ("a page of HTML", b"<!DOCTYPE html><html></html>", 2, ["expected an ONNX model, found a page of HTML or XML"]),
    ("a model in JSON", b'{"format": "rnncc", "version": 1}', 2,
     ["expected an ONNX model, found JSON (a model in rnncc's own format is called NAME.json)"]),
    ("a model of TensorFlow Lite", b"\x1c\0\0\0TFL3" + bytes(20), 2,
     ["expected an ONNX model, found a TensorFlow Lite model (tf2onnx writes ONNX)"]),
    ("a model of ONNX Runtime's own format", b"\x1c\0\0\0ORTM" + bytes(20), 2,
     ["expected an ONNX model, found a model in ONNX Runtime's own format (the ONNX file that it was made from is read)"]),
    ("a length past the end", message(7, b"") + b"\x3a\x7f", 2,
     ["byte 4: this is no ONNX model: a field is longer than what holds it"]),
    ("a length past the end of what holds it", message(7, b"\x0a\x05") + OPSET, 2,
     ["byte 4: this is no ONNX model: a field is longer than what holds it"]),
    ("a length of 64 bits", field(7, 2, varint(2**63)), 2,
     ["byte 6: this is no ONNX model: a length has more than 5 bytes"]),
    ("a length of six bytes", b"\x3a" + b"\x80" * 5 + b"\0", 2,
     ["byte 6: this is no ONNX model: a length has more than 5 bytes"]),
    ("a field number of six bytes", b"\xba" + b"\x80" * 4 + b"\0\0", 2,
     ["byte 5: this is no ONNX model: a field number has more than 5 bytes"]),
    ("a number of 80 bits", field(1, 0, b"\xff" * 11 + b"\x01"), 2,
     ["byte 11: this is no ONNX model: a number has more than 64 bits"]),
    ("a number that is cut off", field(1, 0, b"\xff"), 2, ["byte 2: this is no ONNX model: a number is cut off"]),
    ("a number in a list that is cut off", message(7, message(5, message(1, b"\xff"))) + OPSET, 2,
     ["byte 7: this is no ONNX model: a number is cut off"]),
    ("8 bytes that are cut off", field(99, 1, b"\0" * 7), 2,
     ["byte 2: this is no ONNX model: a field is longer than what holds it"]),
    ("4 bytes that are cut off", field(99, 5, b"\0" * 3), 2,
     ["byte 2: this is no ONNX model: a field is longer than what holds it"]),
    ("field number 0", b"\x00\x00", 2, ["byte 1: this is no ONNX model: there is no such field number"]),
    ("a field number past 2^29", varint(2**32) + b"\0", 2, ["byte 5: this is no ONNX model: there is no such field number"]),
    ("a group", field(99, 3), 2, ["byte 2: this is no ONNX model: a field is of an unknown encoding"]),
    ("the end of a group", field(99, 4), 2, ["byte 2: this is no ONNX model: a field is of an unknown encoding"]),
    ("encoding 7", field(99, 7), 2, ["byte 2: this is no ONNX model: a field is of an unknown encoding"]),
    ("another wire type", field(7, 0, b"\x00"), 2, ["byte 0: this is no ONNX model: a field is not encoded as its kind is"]),
    ("a name that is no UTF-8", message(7, message(2, b"a\xff")), 2, ["byte 5: this is no ONNX model: a text is not UTF-8"]),
    ("a name with a NUL", message(7, message(2, b"a\0b")), 2, ["byte 5: this is no ONNX model: a text has a NUL in it"]),
    ("bodies in bodies", nested(100), 4, ["byte 192: the model has more than 64 messages inside each other"]),
    ("bodies in bodies without end", nested(20000), 4, ["byte 256: the model has more than 64 messages inside each other"]),
    ("a type that is given twice, and empty", message(7, message(11, message(1, b"x") + message(2, b"") * 2)) + OPSET, 2,
     ["this is no ONNX model: a type is given twice, both times empty"]),
    ("no graph", field(1, 0, b"\x08"), 2, ["this is no ONNX model: it has no graph"]),
    ("no opset", message(7, b""), 2, ["the model names no opset"]),
    ("a default of a function's attribute", message(7, message(1, message(2, b"y") + message(3, b"call") + message(4, b"Own") + message(
        7, b"local")) + message(12, message(1, b"y"))) + OPSET + BAD_DEFAULT, 2,
     ["byte 56: this is no ONNX model: a field is longer than what holds it"]),
]
