# SPDX-License-Identifier: MIT
"""The element types of runtime/dtypes.def, as Python's libraries call them.

Types of the package ml_dtypes are its arrays' where it is installed, else NumPy's raw bytes of that size ("V2")."""
from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any, Dict, NamedTuple, Optional

# None: results are memoryviews
numpy: Any = importlib.import_module("numpy") if importlib.util.find_spec("numpy") else None


class DType(NamedTuple):
    code: int  # of rnncc.h
    name: str  # "f32"
    kind: str  # NumPy's: f, i, u, b; V: of ml_dtypes
    size: int  # bytes that an element takes
    dlpack: Optional[int]  # DLDataTypeCode; None: an element of less than a byte has a byte here, there it has not
    ml_dtypes: Optional[str]  # the name of NumPy's type there
    format: Optional[str]  # of the buffer protocol; None: it has none


INT, UINT, FLOAT, BFLOAT, BOOL = 0, 1, 2, 4, 6  # DLPack's codes; those of floats of 8 bits follow

DTYPES = (
    DType(6, "f64", "f", 8, FLOAT, None, "d"),
    DType(1, "f32", "f", 4, FLOAT, None, "f"),
    DType(7, "f16", "f", 2, FLOAT, None, "e"),
    DType(13, "bf16", "V", 2, BFLOAT, "bfloat16", None),
    DType(3, "i64", "i", 8, INT, None, "q"),
    DType(2, "i32", "i", 4, INT, None, "i"),
    DType(9, "i16", "i", 2, INT, None, "h"),
    DType(8, "i8", "i", 1, INT, None, "b"),
    DType(12, "u64", "u", 8, UINT, None, "Q"),
    DType(11, "u32", "u", 4, UINT, None, "I"),
    DType(10, "u16", "u", 2, UINT, None, "H"),
    DType(4, "u8", "u", 1, UINT, None, "B"),
    DType(5, "bool", "b", 1, BOOL, None, "?"),
    DType(14, "f8e4m3fn", "V", 1, 10, "float8_e4m3fn", None),
    DType(15, "f8e4m3fnuz", "V", 1, 11, "float8_e4m3fnuz", None),
    DType(16, "f8e5m2", "V", 1, 12, "float8_e5m2", None),
    DType(17, "f8e5m2fnuz", "V", 1, 13, "float8_e5m2fnuz", None),
    DType(18, "f8e8m0", "V", 1, 14, "float8_e8m0fnu", None),
    DType(19, "f4e2m1", "V", 1, None, "float4_e2m1fn", None),
    DType(20, "i4", "V", 1, None, "int4", None),
    DType(21, "u4", "V", 1, None, "uint4", None),
    DType(22, "i2", "V", 1, None, "int2", None),
    DType(23, "u2", "V", 1, None, "uint2", None),
)
BY_CODE: Dict[int, DType] = {dtype.code: dtype for dtype in DTYPES}
KINDS = {**dict.fromkeys("efd", "f"), **dict.fromkeys("bhilqn", "i"), **dict.fromkeys("BHILQN", "u"), "?": "b", "s": "V"}
_numpy: Dict[int, Any] = {}


def numpy_dtype(dtype: DType) -> Any:
    """NumPy's type. Only called where there is NumPy."""
    if dtype.code not in _numpy:
        _numpy[dtype.code] = _ml_dtype(dtype) if dtype.ml_dtypes else numpy.dtype(f"{dtype.kind}{dtype.size}")
    return _numpy[dtype.code]


def _ml_dtype(dtype: DType) -> Any:
    try:
        return numpy.dtype(getattr(importlib.import_module("ml_dtypes"), str(dtype.ml_dtypes)))
    except (ImportError, AttributeError):
        return numpy.dtype(f"V{dtype.size}")


def fits_numpy(dtype: DType, found: Any) -> bool:
    """numpy.save() writes types of ml_dtypes as raw bytes: these are taken, too."""
    return bool(found == numpy_dtype(dtype) or (dtype.ml_dtypes and found == numpy.dtype(f"V{dtype.size}")))


def fits_buffer(dtype: DType, found: str, itemsize: int) -> bool:
    """Is this format of the buffer protocol, in this machine's byte order, the type's?"""
    plain = found.lstrip("@=<" if sys.byteorder == "little" else "@=>").lstrip("0123456789")
    return KINDS.get(plain) == dtype.kind and itemsize == dtype.size


def fits_dlpack(dtype: DType, code: int, bits: int, lanes: int) -> bool:
    return (code, bits, lanes) == (dtype.dlpack, 8 * dtype.size, 1)
