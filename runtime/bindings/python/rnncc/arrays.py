# SPDX-License-Identifier: MIT
"""Arrays of the caller: where their elements are, without a copy, by NumPy, the buffer protocol or DLPack; and new ones
for results, of the kind that the inputs are of.

Inputs that are not row-major, or not aligned, are copied; outputs must be row-major, as a copy would be lost. Nothing is
converted to another type or moved from another device."""
from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, Structure, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from math import prod
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from .describe import Slot
from .dtypes import fits_buffer, fits_dlpack, fits_numpy, numpy, numpy_dtype
from .errors import ArgumentError, DTypeError

Shape = Tuple[int, ...]


class View(NamedTuple):
    """Elements in memory, row-major."""

    address: int
    shape: Shape
    bytes: int
    keep: Any  # what holds them


# ---- DLPack, as its header dlpack.h has it ----

class _DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device", c_int32), ("ndim", c_int32), ("code", c_uint8),
                ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _DLManagedTensorVersioned(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("tensor", _DLTensor)]


CPU, CUDA_HOST = 1, 3  # memory that the CPU reads
DEVICES = {2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 13: "cuda's managed memory", 14: "oneapi"}
READ_ONLY = 1
DL_CODES = {0: "int", 1: "uint", 2: "float", 3: "opaque", 4: "bfloat", 5: "complex", 6: "bool"}

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]
_capsule_is = ctypes.pythonapi.PyCapsule_IsValid
_capsule_is.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _capsule(label: str, array: Any) -> Any:
    try:
        device, index = array.__dlpack_device__()
        if device in (CPU, CUDA_HOST):
            try:
                return array.__dlpack__(max_version=(1, 0))
            except TypeError:  # of before DLPack 1.0
                return array.__dlpack__()
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ArgumentError(f"{label}: {error}") from error
    raise ArgumentError(f"{label}: expected a tensor in the CPU's memory, found one on "
                        f"{DEVICES.get(int(device), f'device {int(device)} of DLPack')}:{index}")


def _row_major(shape: Shape, strides: Sequence[int]) -> bool:
    """Strides are in elements."""
    due = 1
    for extent, stride in reversed(list(zip(shape, strides))):
        if extent != 1 and stride != due:
            return prod(shape) == 0
        due *= extent
    return True


def _dlpack(slot: Slot, array: Any, writable: bool) -> View:
    capsule = _capsule(slot.label, array)
    read_only = False
    if _capsule_is(capsule, b"dltensor_versioned"):
        managed = _DLManagedTensorVersioned.from_address(_capsule_pointer(capsule, b"dltensor_versioned"))
        tensor, read_only = managed.tensor, bool(managed.flags & READ_ONLY)
    else:
        tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    if not fits_dlpack(slot.dtype, tensor.code, tensor.bits, tensor.lanes):
        found = getattr(array, "dtype", f"{DL_CODES.get(tensor.code, f'code {tensor.code} of ')}{tensor.bits}")
        raise _other_dtype(slot, found)
    shape = tuple(tensor.shape[:tensor.ndim])
    if tensor.strides and not _row_major(shape, tensor.strides[:tensor.ndim]):
        if writable:
            raise _other_order(slot, tuple(tensor.strides[:tensor.ndim]), "elements")
        return view(slot, array.contiguous() if hasattr(array, "contiguous") else numpy.from_dlpack(array).copy("C"))
    if writable and read_only:
        raise ArgumentError(f"{slot.label}: expected an array that may be written, found a read-only one")
    # The capsule was not consumed: its own destructor gives the tensor back.
    return View((tensor.data or 0) + tensor.byte_offset, shape, prod(shape) * slot.dtype.size, (array, capsule))


# ---- NumPy, and the buffer protocol ----

def _other_dtype(slot: Slot, found: object) -> DTypeError:
    return DTypeError(f"{slot.label}: expected {slot.dtype.name}, found {found}")


def _other_order(slot: Slot, strides: Any, unit: str = "bytes") -> ArgumentError:
    return ArgumentError(f"{slot.label}: expected a row-major array, found strides of {strides} {unit}")


def _of_numpy(slot: Slot, array: Any, writable: bool) -> View:
    if not fits_numpy(slot.dtype, array.dtype):
        raise _other_dtype(slot, array.dtype.str if not array.dtype.isnative else array.dtype)
    if writable and not array.flags.writeable:
        raise ArgumentError(f"{slot.label}: expected an array that may be written, found a read-only one")
    if not (array.flags.c_contiguous and array.flags.aligned):
        if writable:
            raise _other_order(slot, array.strides)
        array = array.copy("C")
    return View(array.ctypes.data, array.shape, array.nbytes, array)


class _Buffer(Structure):
    _fields_ = [("data", c_void_p), ("owner", ctypes.py_object), ("bytes", ctypes.c_ssize_t), ("rest", c_void_p * 12)]


def _address(memory: memoryview) -> int:
    buffer = _Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(memory), ctypes.byref(buffer), 0)
    address = buffer.data or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))  # `memory` still holds it
    return address


def _of_buffer(slot: Slot, memory: memoryview, writable: bool) -> View:
    if not fits_buffer(slot.dtype, memory.format, memory.itemsize):
        raise _other_dtype(slot, f"a buffer of format {memory.format!r}, of {memory.itemsize} bytes each")
    if writable and memory.readonly:
        raise ArgumentError(f"{slot.label}: expected a buffer that may be written, found a read-only one")
    shape: Shape = tuple(memory.shape or ())
    if not memory.c_contiguous:
        if writable:
            raise _other_order(slot, memory.strides)
        memory = memoryview(memory.tobytes())
    return View(_address(memory), shape, memory.nbytes, memory)


def _of_torch(slot: Slot, array: Any, torch: Any) -> Optional[View]:
    """Of a plain tensor, sooner than by DLPack; None: it is not plain."""
    if array.requires_grad or not array.is_cpu or array.layout is not torch.strided:
        return None
    if array.dtype is not getattr(torch, TORCH.get(slot.dtype.name, "-"), None) or not array.is_contiguous():
        return None
    return View(array.data_ptr(), tuple(array.shape), array.numel() * slot.dtype.size, array)


def _negated(slot: Slot, array: Any, writable: bool) -> Any:
    """Of a tensor that is only marked as negative, of which neither its memory nor DLPack says so."""
    if writable:
        raise ArgumentError(f"{slot.label}: expected a tensor of memory of its own, found the negative of another's")
    return array.resolve_neg()


def view(slot: Slot, array: Any, writable: bool = False) -> View:
    """The elements of an array that a tensor of the module may be."""
    found = _view(slot, array, writable)
    if writable or found.address % slot.dtype.size == 0:  # the module refuses an output that is not aligned
        return found
    memory = memoryview((ctypes.c_char * found.bytes).from_address(found.address).raw)
    return found._replace(address=_address(memory), keep=memory)


def _view(slot: Slot, array: Any, writable: bool) -> View:
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None)
    if tensor is not None and isinstance(array, tensor):
        if array.is_neg():
            array = _negated(slot, array, writable)
        plain = _of_torch(slot, array, torch) if type(array) is tensor else None
        if plain is not None:
            return plain
    if numpy is not None and isinstance(array, (numpy.ndarray, numpy.generic)):
        if hasattr(type(array), "mask"):  # numpy.ma is imported when it is first named: never in a call, while others fork
            raise ArgumentError(f"{slot.label}: expected an array without a mask, found a masked one")
        return _of_numpy(slot, numpy.asarray(array), writable)
    if hasattr(array, "__dlpack__"):
        return _dlpack(slot, array, writable)
    try:
        memory = memoryview(array)
    except TypeError:
        raise DTypeError(f"{slot.label}: expected an array of {slot.dtype.name} (NumPy, DLPack or a buffer), found "
                         f"{type(array).__name__}") from None
    return _of_buffer(slot, memory, writable)


# ---- results ----

TORCH = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32",
         "i16": "int16", "i8": "int8", "u8": "uint8", "bool": "bool", "u64": "uint64", "u32": "uint32", "u16": "uint16",
         "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e4m3fnuz": "float8_e4m3fnuz",
         "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0": "float8_e8m0fnu"}


def torch_of(inputs: Sequence[Any]) -> Optional[Any]:
    """The package torch, if any of these is its tensor."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and any(isinstance(it, torch.Tensor) for it in inputs) else None


def as_numpy(inputs: Sequence[Any], torch: Optional[Any]) -> Optional[List[Any]]:
    """NumPy's arrays of the same elements; None where an input is neither NumPy's nor PyTorch's, or has no such array."""
    try:
        found = [it.numpy() if torch is not None and type(it) is torch.Tensor else it for it in inputs]
    except (RuntimeError, TypeError):
        return None
    return found if all(type(it) is numpy.ndarray for it in found) else None


def numpy_has(slots: Sequence[Slot]) -> bool:
    """Are all of types that NumPy has itself, so that PyTorch takes its arrays?"""
    return all(slot.dtype.ml_dtypes is None for slot in slots)


def empty(slot: Slot, shape: Shape, torch: Optional[Any] = None) -> Any:
    """A new array: PyTorch's, NumPy's, or where there is neither a memoryview."""
    if torch is not None and hasattr(torch, TORCH.get(slot.dtype.name, "-")):
        return torch.empty(shape, dtype=getattr(torch, TORCH[slot.dtype.name]))
    if numpy is not None:
        return numpy.empty(shape, numpy_dtype(slot.dtype))
    return _shaped(memoryview(bytearray(prod(shape) * slot.dtype.size)), slot, shape)


def _shaped(memory: memoryview, slot: Slot, shape: Shape) -> memoryview:
    """A memoryview has no extents of 0, and no formats of some types: then it is one of bytes."""
    if not memory.nbytes or slot.dtype.format is None:
        return memory
    cast: Any = memory.cast
    try:
        result: memoryview = cast(slot.dtype.format, shape)
        return result
    except ValueError:  # f16, before Python 3.12
        return memory


def leading(slot: Slot, array: Any, shape: Shape) -> Any:
    """The array's first elements, in the shape of the run."""
    if isinstance(array, memoryview):
        return _shaped(array.cast("B")[:prod(shape) * slot.dtype.size], slot, shape)
    if not hasattr(array, "reshape"):
        return leading(slot, numpy.from_dlpack(array) if hasattr(array, "__dlpack__") else memoryview(array), shape)
    return array.reshape(-1)[:prod(shape)].reshape(shape)


def owned(array: Any) -> Any:
    """A copy that keeps no more memory than it needs."""
    if isinstance(array, memoryview):
        cast: Any = memoryview(bytearray(array)).cast
        return cast(array.format, array.shape) if array.nbytes else array
    return array.clone() if hasattr(array, "clone") else array.copy()
