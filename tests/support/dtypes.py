# SPDX-License-Identifier: MIT
"""The element types, read from runtime/dtypes.def."""
import re
from pathlib import Path
from typing import NamedTuple

import ml_dtypes
import numpy

TABLE = Path(__file__).resolve().parents[2] / "runtime" / "dtypes.def"


ML_DTYPES = {"bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2",
             "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn", "i4": "int4",
             "u4": "uint4", "i2": "int2", "u2": "uint2"}


class DType(NamedTuple):
    code: int  # of the ABI
    name: str  # in models
    onnx: int  # TensorProto.DataType
    numpy: numpy.dtype
    bits: int
    safetensors: bool  # has a name for it


def _rows():
    for row in re.findall(r"^DTYPE\((.*)\)$", TABLE.read_text(), re.MULTILINE):
        columns = [column.strip().strip('"') for column in row.split(",")]
        name = columns[3]
        kind = getattr(ml_dtypes, ML_DTYPES[name]) if name in ML_DTYPES else columns[10]
        yield DType(int(columns[1]), name, int(columns[8]), numpy.dtype(kind), int(columns[4]), columns[7] != "NULL")


DTYPES = tuple(_rows())
BY_NAME = {dtype.name: dtype for dtype in DTYPES}
NARROW = tuple(dtype.name for dtype in DTYPES if dtype.bits < 8 or (dtype.name in ML_DTYPES and dtype.bits == 8))


def is_float(name):
    return name[0] == "f" or name == "bf16"


def limits(name):
    """numpy.finfo or numpy.iinfo of the type."""
    kind = BY_NAME[name].numpy
    of = ml_dtypes if name in ML_DTYPES else numpy
    return of.finfo(kind) if is_float(name) else of.iinfo(kind)


def bits_of(array):
    """The bytes of the elements, without bits that do not count."""
    dtype = next(dtype for dtype in DTYPES if dtype.numpy == array.dtype)
    data = numpy.ascontiguousarray(array).view(numpy.uint8)
    return (data & (2 ** min(dtype.bits, 8) - 1)).tobytes()
