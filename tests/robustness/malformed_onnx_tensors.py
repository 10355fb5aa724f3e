# SPDX-License-Identifier: MIT
"""Tensors of ONNX files that lie: the constant c of malformed_onnx.py's small model with other extents, types, elements, or
elements in a file beside the model, as external_files() writes them."""
import os

from malformed_onnx import changed
from onnx import TensorProto


def tensor(**fields):
    def change(model):
        found = model.graph.initializer[0]
        for name, value in fields.items():
            if isinstance(value, (list, tuple)):
                found.ClearField(name)
                getattr(found, name).extend(value)
            else:
                setattr(found, name, value)

    return change


def listed(data_type, **lists):
    """With its elements in a list, instead of in bytes."""
    def change(model):
        model.graph.initializer[0].ClearField("raw_data")
        tensor(data_type=data_type, **lists)(model)

    return change


def external(**entries):
    def change(model):
        found = model.graph.initializer[0]
        found.ClearField("raw_data")
        found.data_location = TensorProto.EXTERNAL
        for key, value in entries.items():
            found.external_data.add(key=key, value=value)

    return change


def external_files(folder):
    """What entries may name, in a folder of `folder` which is returned: 12 bytes, a folder, a pipe, and a way out."""
    within = folder / "model"
    (within / "sub").mkdir(parents=True)
    (folder / "secret.bin").write_bytes(bytes(12))
    (within / "w.bin").write_bytes(bytes(12))
    (within / "link.bin").symlink_to(folder / "secret.bin")
    os.mkfifo(within / "pipe")
    return within


TENSORS = [
    ("bytes of another length", tensor(raw_data=bytes(8)), 2, ["c: the tensor has 8 bytes where its shape and type f32 take 12"]),
    ("more axes than bytes", tensor(dims=[2**20, 2**20]), 2,
     ["c: the tensor has 12 bytes where its shape and type f32 take 4398046511104"]),
    ("more axes than numbers", listed(TensorProto.FLOAT, dims=[4], float_data=[1, 2, 3]), 2,
     ["c: the tensor has 3 elements where its shape and type f32 take 4"]),
    ("numbers in the list of another type", listed(TensorProto.INT64, int32_data=[1, 2, 3]), 2,
     ["c: the tensor has 0 elements where its shape and type i64 take 3"]),
    ("no elements at all", listed(TensorProto.FLOAT), 2, ["c: the tensor has 0 elements where its shape and type f32 take 3"]),
    ("a product that wraps", tensor(dims=[2**32, 2**32, 3]), 4, ["c: the tensor's shape has more elements than memory can hold"]),
    ("a negative axis", tensor(dims=[-3]), 2, ["c: axis 0 of the tensor is -3 long; expected 0 or more"]),
    ("rank 9", tensor(dims=[1] * 8 + [3]), 3, ["c: the tensor has rank 9; at most 8 is supported"]),
    ("elements of a type that is none", tensor(data_type=99), 3,
     ["c: the tensor is of element type 99, which ONNX does not have"]),
    ("elements of no type", tensor(data_type=0), 2, ["c: the tensor has no element type"]),
    ("elements of strings", tensor(data_type=TensorProto.STRING), 3,
     ['the element type string of a constant is not supported (1 time: "c")']),
    ("elements of complex numbers", tensor(data_type=TensorProto.COMPLEX64, raw_data=bytes(24)), 3,
     ['the element type complex64 of a constant is not supported (1 time: "c")']),
    ("bools that are neither", tensor(data_type=TensorProto.BOOL, raw_data=b"\0\1\2"), 2,
     ["c: expected 0 or 1 as bool element 2, found 2"]),
    ("a bool in a list that is neither", listed(TensorProto.BOOL, int32_data=[1, 2, 0]), 2,
     ["c: expected bool elements, 0 to 1; element 1 is 2"]),
    ("a number past i8", listed(TensorProto.INT8, int32_data=[1, 200, 3]), 2,
     ["c: expected i8 elements, -128 to 127; element 1 is 200"]),
    ("a number below u8", listed(TensorProto.UINT8, int32_data=[1, 2, -3]), 2,
     ["c: expected u8 elements, 0 to 255; element 2 is -3"]),
    ("a number past u16", listed(TensorProto.UINT16, int32_data=[1, 65536, 3]), 2,
     ["c: expected u16 elements, 0 to 65535; element 1 is 65536"]),
    ("a number past u32", listed(TensorProto.UINT32, uint64_data=[1, 2**33, 3]), 2,
     ["c: expected u32 elements, 0 to 4294967295; element 1 is 8589934592"]),
    ("a number past 4 bits", listed(TensorProto.INT4, int32_data=[1, 300]), 2,
     ["c: expected bytes of i4 elements, -128 to 255; `int32_data` has 300 at 1"]),
    ("one of 4 bits too few", listed(TensorProto.UINT4, int32_data=[1]), 2,
     ["c: the tensor has 1 elements of `int32_data` where its shape and type u4 take 2"]),
    ("external data in no file", external(), 2, ["c: the tensor's data is said to be external, without a location"]),
    ("external data in a file that is not there", external(location="gone.bin"), 2,
     ['c: cannot read "gone.bin": No such file or directory']),
    ("external data in a file of no name", external(location=""), 2, ["c: the file name is empty"]),
    ("external data in a folder that is not there", external(location="gone/w.bin"), 2,
     ['c: cannot read "gone/w.bin": No such file or directory']),
    ("external data at an absolute path", external(location="/etc/passwd"), 2,
     ["c: \"/etc/passwd\" is an absolute path; give one relative to the model's folder"]),
    ("external data in the parent folder", external(location="../secret.bin"), 2,
     ["c: \"../secret.bin\" leaves the model's folder through \"..\"; put the file in it"]),
    ("external data in the parent folder by a folder", external(location="sub/../../secret.bin"), 2,
     ["c: \"sub/../../secret.bin\" leaves the model's folder through \"..\"; put the file in it"]),
    ("external data behind a link that leads out", external(location="link.bin"), 2,
     ["c: \"link.bin\" leads out of the model's folder; put the file in it"]),
    ("external data in a folder", external(location="sub"), 2, ['c: "sub" is a folder; a regular file is needed']),
    ("external data in a pipe", external(location="pipe"), 2, ['c: "pipe" is a pipe; a regular file is needed']),
    ("external data from past the end", external(location="w.bin", offset="99"), 2,
     ['c: the data begins at byte 99 of "w.bin", which has 12 bytes']),
    ("external data to past the end", external(location="w.bin", offset="4", length="12"), 2,
     ['c: the data is 12 bytes from byte 4 of "w.bin" on, which has 12 bytes']),
    ("external data whose end wraps", external(location="w.bin", offset=str(2**64 - 4), length="16"), 2,
     ["c: expected a number of 1 to 19 digits as the external data's offset, found \"18446744073709551612\""]),
    ("external data from a negative offset", external(location="w.bin", offset="-1"), 2,
     ["c: expected a number of 1 to 19 digits as the external data's offset, found \"-1\""]),
    ("external data from an offset that is none", external(location="w.bin", offset="4x"), 2,
     ["c: expected a number of 1 to 19 digits as the external data's offset, found \"4x\""]),
    ("external data of a length that is none", external(location="w.bin", length=""), 2,
     ["c: expected a number of 1 to 19 digits as the external data's length, found \"\""]),
    ("external data of another length", external(location="w.bin", length="8"), 2,
     ["c: the tensor has 8 bytes where its shape and type f32 take 12"]),
]

# Name, model, exit code, what is said.
ROWS = [(name, changed(change), code, lines) for name, change, code, lines in TENSORS]
