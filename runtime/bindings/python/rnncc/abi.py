# SPDX-License-Identifier: MIT
"""The structs of rnncc.h, by ctypes. What else there is of the package reads them through this file alone."""
from __future__ import annotations

import ctypes
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint32,
                    c_uint64, c_void_p, cast, sizeof)
from operator import index
from typing import Any, List, Optional, Type

from .errors import ArgumentError

ABI = 2
MAX_RANK = 8
DYNAMIC = -1  # an extent that only the run knows


class Tensor(Structure):
    _fields_ = [("struct_size", c_uint32), ("dtype", c_int32), ("data", c_void_p), ("bytes", c_size_t),
                ("rank", c_int32), ("shape", c_int64 * MAX_RANK)]


class DimInfo(Structure):
    _fields_ = [("name", c_char_p), ("min", c_int64), ("opt", c_int64), ("max", c_int64), ("multiple", c_int64)]


class TensorInfo(Structure):
    _fields_ = [("name", c_char_p), ("dtype", c_int32), ("rank", c_int32), ("shape", c_int64 * MAX_RANK),
                ("max_shape", c_int64 * MAX_RANK), ("dim", c_int32 * MAX_RANK)]


class StateInfo(Structure):
    _fields_ = [("tensor", POINTER(TensorInfo)), ("batch_axis", c_int32), ("slots", c_int32)]


class Info(Structure):
    _fields_ = [("struct_size", c_uint32), ("name", c_char_p), ("model_version", c_char_p), ("isa", c_char_p),
                ("target", c_char_p), ("weights_sha256", c_char_p), ("build", c_char_p), ("weights_bytes", c_size_t),
                ("arena_bytes", c_size_t), ("n_dims", c_int32), ("n_inputs", c_int32), ("n_outputs", c_int32),
                ("n_states", c_int32), ("dim_size", c_uint32), ("tensor_size", c_uint32), ("state_size", c_uint32),
                ("dims", POINTER(DimInfo)), ("inputs", POINTER(TensorInfo)),
                ("outputs", POINTER(TensorInfo)), ("states", POINTER(StateInfo)), ("weights", POINTER(TensorInfo)),
                ("n_weights", c_int32), ("unused", c_int32), ("run_stack_bytes", c_size_t),
                ("call_stack_bytes", c_size_t), ("worker_stack_bytes", c_size_t)]


class Weight(Structure):
    _fields_ = [("struct_size", c_uint32), ("dtype", c_int32), ("name", c_char_p), ("data", c_void_p),
                ("bytes", c_size_t)]


class Options(Structure):
    _fields_ = [("struct_size", c_uint32), ("threads", c_int32), ("bind_threads", c_int32),
                ("parallel_for", c_void_p), ("host", c_void_p), ("steer_threads", c_int32), ("pool_of", c_void_p),
                ("share_all", c_int32), ("unused", c_int32), ("thread_start", c_void_p), ("pool", c_void_p),
                ("by_steps", c_int32), ("waits", c_int32), ("priority", c_int32), ("unused_too", c_int32),
                ("check_weights", c_int32), ("unused_last", c_int32)]


THREAD_START = CFUNCTYPE(None, c_void_p, c_int32)  # Options.thread_start


class Pool(Structure):
    _fields_ = [("struct_size", c_uint32), ("threads", c_int32), ("by_steps", c_int32), ("crowded", c_int32),
                ("share", c_void_p), ("release", c_void_p), ("take", c_void_p), ("give_back", c_void_p),
                ("for_each", c_void_p), ("narrowed", c_void_p), ("waiting", CFUNCTYPE(c_int32, c_void_p))]


class ProfileEntry(Structure):
    _fields_ = [("struct_size", c_uint32), ("kernel", c_char_p), ("node", c_char_p), ("calls", c_uint64),
                ("nanoseconds", c_uint64), ("flops", c_double), ("bytes", c_double),
                ("flops_done", c_double), ("bytes_done", c_double), ("products", c_int32)]


class TrainingInfo(Structure):
    _fields_ = [("struct_size", c_uint32), ("tensor_size", c_uint32), ("n_parameters", c_int32), ("loss", c_int32),
                ("parameters", POINTER(TensorInfo)), ("n_output_gradients", c_int32), ("n_input_gradients", c_int32),
                ("output_gradients", POINTER(c_int32)), ("input_gradients", POINTER(c_int32)),
                ("n_statistics", c_int32), ("unused", c_int32), ("statistics", POINTER(TensorInfo))]


class Optimizer(Structure):
    _fields_ = [("struct_size", c_uint32), ("rule", c_int32), ("learning_rate", c_float), ("momentum", c_float),
                ("beta1", c_float), ("beta2", c_float), ("epsilon", c_float), ("weight_decay", c_float),
                ("max_norm", c_float), ("nesterov", c_int32), ("gradient_scale", c_float)]


class Training(Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("unused", c_uint32), ("info", POINTER(TrainingInfo)),
        ("backward", CFUNCTYPE(c_int32, c_void_p)),
        ("gradient", CFUNCTYPE(c_int32, c_void_p, c_char_p, c_void_p, c_size_t)),
        ("step", CFUNCTYPE(c_int32, c_void_p, POINTER(Optimizer))),
        ("gradient_norm", CFUNCTYPE(c_int32, c_void_p, POINTER(c_double))),
        ("weights_get", CFUNCTYPE(c_int32, c_void_p, c_char_p, c_void_p, c_size_t)),
        ("weights_set", CFUNCTYPE(c_int32, c_void_p, c_char_p, c_void_p, c_size_t)),
        ("optimizer_reset", CFUNCTYPE(c_int32, c_void_p)),
        ("backward_from", CFUNCTYPE(c_int32, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t)),
        ("seed", CFUNCTYPE(c_int32, c_void_p, c_uint64)),
        ("weights_update", CFUNCTYPE(c_int32, c_void_p, POINTER(Weight), c_size_t, c_char_p, c_size_t)),
        ("gradients_keep", CFUNCTYPE(c_int32, c_void_p, c_int32)),
        ("weight_factors", CFUNCTYPE(c_int32, c_void_p, c_char_p, c_float, c_float)),
        ("checkpoint_bytes", CFUNCTYPE(c_size_t, c_void_p)),
        ("checkpoint_get", CFUNCTYPE(c_int32, c_void_p, c_void_p, c_size_t)),
        ("checkpoint_set", CFUNCTYPE(c_int32, c_void_p, c_char_p, c_size_t)),
    ]


class Api(Structure):
    pass


Api._fields_ = [
    ("abi", c_uint32), ("struct_size", c_uint32), ("info", POINTER(Info)),
    ("model_create", CFUNCTYPE(c_int32, POINTER(Options), POINTER(c_void_p), POINTER(c_char_p))),
    ("model_destroy", CFUNCTYPE(None, c_void_p)),
    ("model_threads", CFUNCTYPE(c_int32, c_void_p)),
    ("context_size", CFUNCTYPE(c_size_t, c_void_p)),
    ("context_create", CFUNCTYPE(c_int32, c_void_p, c_void_p, c_size_t, POINTER(c_void_p), POINTER(c_char_p))),
    ("context_destroy", CFUNCTYPE(None, c_void_p)),
    ("warmup", CFUNCTYPE(c_int32, c_void_p)),
    ("run", CFUNCTYPE(c_int32, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t)),
    ("state_reset", CFUNCTYPE(c_int32, c_void_p, c_int32)),
    ("state_get", CFUNCTYPE(c_int32, c_void_p, c_int32, c_int32, c_void_p, c_size_t)),
    ("state_set", CFUNCTYPE(c_int32, c_void_p, c_int32, c_int32, c_void_p, c_size_t)),
    ("profile", CFUNCTYPE(c_int32, c_void_p, c_int32, POINTER(POINTER(ProfileEntry)), POINTER(c_size_t))),
    ("last_error", CFUNCTYPE(c_char_p, c_void_p)),
    ("model_narrowed", CFUNCTYPE(c_int32, c_void_p)),
    ("networks", POINTER(POINTER(Api))), ("n_networks", c_int32),
    ("output_shapes", CFUNCTYPE(c_int32, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t)),
    ("trace", c_void_p),
    ("pool_create", CFUNCTYPE(c_int32, POINTER(Options), POINTER(c_void_p), POINTER(c_char_p))),
    ("pool_destroy", CFUNCTYPE(None, c_void_p)),
    ("training", POINTER(Training)),
    ("weights_set", CFUNCTYPE(c_int32, c_void_p, POINTER(Weight), c_size_t, c_char_p, c_size_t)),
    ("weights_get", CFUNCTYPE(c_int32, c_void_p, c_char_p, c_void_p, c_size_t, c_char_p, c_size_t)),
]


def has(table: Any, field: str) -> bool:
    """Does the struct, which says its own size, have this field? A module of an older rnncc may not."""
    place = getattr(type(table), field)
    return bool(table.struct_size >= place.offset + place.size)


def query(library: ctypes.CDLL, why: c_char_p) -> Optional[Any]:
    """The first network's table; None: `why` says what is in the way."""
    function = library.rnncc_module_query
    function.restype, function.argtypes = POINTER(Api), [c_uint32, POINTER(c_char_p)]
    table = function(ABI, byref(why))
    if table and not (table.contents.abi == ABI and has(table.contents, "output_shapes") and
                      has(table.contents.info.contents, "states")):
        why.value = b"its table of functions is shorter than the first of this ABI: the file is damaged"
        return None
    return table.contents if table else None


def networks(table: Any) -> List[Any]:
    """The tables of all networks."""
    return [table.networks[i].contents for i in range(table.n_networks)]


def _elements(pointer: Any, count: int, kind: Type[Structure], size: int) -> List[Any]:
    start = cast(pointer, c_void_p).value or 0
    return [kind.from_address(start + i * size) for i in range(count)]


def dims(info: Any) -> List[Any]:
    return _elements(info.dims, info.n_dims, DimInfo, info.dim_size)


def inputs(info: Any) -> List[Any]:
    return _elements(info.inputs, info.n_inputs, TensorInfo, info.tensor_size)


def outputs(info: Any) -> List[Any]:
    return _elements(info.outputs, info.n_outputs, TensorInfo, info.tensor_size)


def states(info: Any) -> List[Any]:
    return _elements(info.states, info.n_states, StateInfo, info.state_size)


def parameters(info: Any) -> List[Any]:
    """Of a TrainingInfo."""
    return _elements(info.parameters, info.n_parameters, TensorInfo, info.tensor_size)


def outer_gradients(training: Any) -> "tuple[List[int], List[int]]":
    """Which outputs have gradients that backward_from() takes, and which inputs have some that it gives."""
    info = training.info.contents
    if not has(training, "backward_from"):
        return [], []
    return info.output_gradients[:info.n_output_gradients], info.input_gradients[:info.n_input_gradients]


def statistics(info: Any) -> List[Any]:
    """Of a TrainingInfo; a module of an older rnncc has none."""
    return _elements(info.statistics, info.n_statistics, TensorInfo, info.tensor_size) if has(info, "statistics") else []


def weights(info: Any) -> List[Any]:
    """Those that can change; a module of an older rnncc has none."""
    return _elements(info.weights, info.n_weights, TensorInfo, info.tensor_size) if has(info, "n_weights") else []


def tensors(dtypes: List[int]) -> Any:
    """An array of tensors of these types, without data or shapes."""
    array = (Tensor * len(dtypes))()
    for one, dtype in zip(array, dtypes):
        one.struct_size, one.dtype = sizeof(Tensor), dtype
    return array


def int32(label: str, number: Any) -> int:
    """The number, which ctypes would cut to 32 bits."""
    if not isinstance(number, int) and not hasattr(number, "__index__") or not -2**31 <= number < 2**31:
        raise ArgumentError(f"{label}: expected a whole number of 32 bits, found {number!r}")
    return index(number)


def options(**fields: Any) -> Options:
    for name in ("threads", "priority"):
        fields[name] = int32(f"options.{name}", fields.get(name, 0))
    return Options(sizeof(Options), **fields)


def context_create(api: Any, model: int, out: c_void_p) -> "tuple[int, str]":
    """Its status and, on failure, why."""
    why = c_char_p()
    status = api.context_create(model, None, 0, byref(out), byref(why))
    return status, (why.value or b"").decode()


def output_shapes(api: Any, context: int, dims: List[int], ranks: List[int]) -> Optional[List["tuple[int, ...]"]]:
    """What the outputs' buffers must have room for; None where the dims are out of bounds."""
    shapes = (c_int64 * MAX_RANK * len(ranks))()
    if api.output_shapes(context, (c_int64 * len(dims))(*dims), len(dims), shapes, len(ranks)):
        return None
    return [tuple(shape[:rank]) for shape, rank in zip(shapes, ranks)]


def profile(api: Any, context: int, on: bool) -> "tuple[int, List[Any]]":
    """Its status, and the entries so far; these are read at once, before another call on the context."""
    entries, count = POINTER(ProfileEntry)(), c_size_t()
    status = api.profile(context, on, byref(entries), byref(count))
    if status or not count.value:
        return status, []
    return status, _elements(entries, count.value, ProfileEntry, entries[0].struct_size)
