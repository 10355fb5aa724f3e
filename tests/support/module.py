# SPDX-License-Identifier: MIT
"""A compiled module from Python: the ABI of runtime/rnncc.h by ctypes, tensors as NumPy arrays.

    with Module(path) as module, module.context(threads=2) as context:
        outputs = context.run({"x": x})      # name -> array
        state = context.state_get("h0")

Of a module with several networks, Module(path, "decoder") is one of them.
"""
import _ctypes
import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32
from ctypes import c_uint64, c_void_p

import numpy

from support.dtypes import DTYPES

ABI = 2
MAX_RANK = 8
TYPES = {dtype.code: dtype.numpy for dtype in DTYPES}
CODES = {dtype: code for code, dtype in TYPES.items()}
STATUS = ("ok", "argument", "shape", "bound", "dtype", "size", "value", "memory", "unsupported")


class Tensor(Structure):
    _fields_ = [("struct_size", c_uint32), ("dtype", c_int32), ("data", c_void_p), ("bytes", c_size_t),
                ("rank", c_int32), ("shape", c_int64 * MAX_RANK)]


class DimInfo(Structure):
    _fields_ = [("name", c_char_p), ("min", c_int64), ("opt", c_int64), ("max", c_int64),
                ("multiple", c_int64)]


class TensorInfo(Structure):
    _fields_ = [("name", c_char_p), ("dtype", c_int32), ("rank", c_int32), ("shape", c_int64 * MAX_RANK),
                ("max_shape", c_int64 * MAX_RANK), ("dim", c_int32 * MAX_RANK)]


class StateInfo(Structure):
    _fields_ = [("tensor", POINTER(TensorInfo)), ("batch_axis", c_int32), ("slots", c_int32)]


class Info(Structure):
    _fields_ = [("struct_size", c_uint32), ("name", c_char_p), ("model_version", c_char_p), ("isa", c_char_p),
                ("target", c_char_p), ("weights_sha256", c_char_p), ("build", c_char_p), ("weights_bytes", c_size_t),
                ("arena_bytes", c_size_t), ("n_dims", c_int32), ("n_inputs", c_int32), ("n_outputs", c_int32),
                ("n_states", c_int32), ("dim_size", c_uint32), ("tensor_size", c_uint32), ("state_size", c_uint32), ("dims", POINTER(DimInfo)), ("inputs", POINTER(TensorInfo)),
                ("outputs", POINTER(TensorInfo)), ("states", POINTER(StateInfo))]


class Options(Structure):
    _fields_ = [("struct_size", c_uint32), ("threads", c_int32), ("bind_threads", c_int32),
                ("parallel_for", c_void_p), ("host", c_void_p), ("steer_threads", c_int32), ("pool_of", c_void_p),
                ("share_all", c_int32)]


class ProfileEntry(Structure):
    _fields_ = [("struct_size", c_uint32), ("kernel", c_char_p), ("node", c_char_p), ("calls", c_uint64), ("nanoseconds", c_uint64),
                ("flops", c_double), ("bytes", c_double)]


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
    ("run", CFUNCTYPE(c_int32, c_void_p, POINTER(Tensor), c_size_t, POINTER(Tensor), c_size_t)),
    ("state_reset", CFUNCTYPE(c_int32, c_void_p, c_int32)),
    ("state_get", CFUNCTYPE(c_int32, c_void_p, c_int32, c_int32, c_void_p, c_size_t)),
    ("state_set", CFUNCTYPE(c_int32, c_void_p, c_int32, c_int32, c_void_p, c_size_t)),
    ("profile", CFUNCTYPE(c_int32, c_void_p, c_int32, POINTER(POINTER(ProfileEntry)), POINTER(c_size_t))),
    ("last_error", CFUNCTYPE(c_char_p, c_void_p)),
    ("model_narrowed", CFUNCTYPE(c_int32, c_void_p)),
    ("networks", POINTER(POINTER(Api))), ("n_networks", c_int32),
    ("output_shapes", CFUNCTYPE(c_int32, c_void_p, POINTER(c_int64), c_size_t, c_void_p, c_size_t)),
]


class ModuleError(Exception):
    def __init__(self, status, message):
        super().__init__(f"{STATUS[status]}: {message}")
        self.status = STATUS[status]


class Described:
    """An input, output or state of the module."""

    def __init__(self, info):
        self.name = info.name.decode()
        self.dtype = TYPES[info.dtype]
        self.shape = tuple(info.shape[:info.rank])
        self.max_shape = tuple(info.max_shape[:info.rank])


class Module:
    def __init__(self, path, network=None):
        self.library = ctypes.CDLL(str(path))
        query = self.library.rnncc_module_query
        query.restype, query.argtypes = POINTER(Api), [c_uint32, POINTER(c_char_p)]
        why = c_char_p()
        table = query(ABI, byref(why))
        if not table:
            raise ModuleError(8, (why.value or b"").decode())
        tables = [it.contents for it in table.contents.networks[:table.contents.n_networks]] if network else [table.contents]
        (self.api,) = [it for it in tables if network in (None, it.info.contents.name.decode())]
        self.info = info = self.api.info.contents
        self.dims = {d.name.decode(): (d.min, d.opt, d.max) for d in info.dims[:info.n_dims]}
        self.inputs = [Described(i) for i in info.inputs[:info.n_inputs]]
        self.outputs = [Described(o) for o in info.outputs[:info.n_outputs]]
        self.states = [Described(s.tensor.contents) for s in info.states[:info.n_states]]
        self.slots = [s.slots for s in info.states[:info.n_states]]

    def context(self, threads=1, pool_of=None, share_all=True):
        return Context(self, threads, pool_of, share_all)

    def close(self):
        """Unloads it. All contexts must be closed."""
        handle, self.library = self.library._handle, None
        _ctypes.dlclose(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Context:
    """A model of its own, with one context; `pool_of`: one whose model's workers it has, too. Small models are shared by
    the workers as large ones are, unless `share_all` is false."""

    def __init__(self, module, threads, pool_of=None, share_all=True):
        self.module, self.api = module, module.api
        self.model, self.handle = c_void_p(), c_void_p()
        why = c_char_p()
        options = Options(ctypes.sizeof(Options), threads, pool_of=pool_of.model if pool_of else None, share_all=share_all)
        status = self.api.model_create(byref(options), byref(self.model), byref(why))
        if status:
            raise ModuleError(status, (why.value or b"").decode())
        status = self.api.context_create(self.model, None, 0, byref(self.handle), byref(why))
        if status:
            raise ModuleError(status, (why.value or b"").decode())

    def check(self, status):
        if status:
            raise ModuleError(status, self.api.last_error(self.handle).decode())

    def tensors(self, feeds):
        """(arrays, their tensors, output buffers, their tensors): the arrays own the memory of the tensors."""
        arrays = [numpy.ascontiguousarray(feeds[i.name]) for i in self.module.inputs]
        # ascontiguousarray makes a scalar one-dimensional: the rank is the caller's.
        shapes = [numpy.shape(feeds[i.name]) for i in self.module.inputs]
        inputs = (Tensor * len(arrays))(*[tensor(array, shape) for array, shape in zip(arrays, shapes)])
        buffers = [numpy.empty(max(1, int(numpy.prod(o.max_shape))), o.dtype) for o in self.module.outputs]
        outputs = (Tensor * len(buffers))(*[tensor(buffer, o.max_shape)
                                            for buffer, o in zip(buffers, self.module.outputs)])
        return arrays, inputs, buffers, outputs

    def run(self, feeds):
        """feeds: name -> array, one for each input. Returns name -> array; each is a copy."""
        _arrays, inputs, buffers, outputs = self.tensors(feeds)
        self.check(self.api.run(self.handle, inputs, len(inputs), outputs, len(outputs)))
        result = {}
        for described, buffer, output in zip(self.module.outputs, buffers, outputs):
            shape = tuple(output.shape[:output.rank])
            result[described.name] = buffer[:int(numpy.prod(shape))].reshape(shape).copy()
        return result

    def prepared(self, feeds):
        """A function that runs on these feeds with as little around it as Python allows. Its outputs are dropped."""
        arrays, inputs, buffers, outputs = self.tensors(feeds)
        run, handle, n_inputs, n_outputs = self.api.run, self.handle, len(inputs), len(outputs)

        def call(_keep=(arrays, buffers)):
            self.check(run(handle, inputs, n_inputs, outputs, n_outputs))

        return call

    def warmup(self):
        self.check(self.api.warmup(self.handle))

    def state_index(self, name):
        return [state.name for state in self.module.states].index(name)

    def state_get(self, name):
        index = self.state_index(name)
        state = self.module.states[index]
        array = numpy.empty(state.max_shape, state.dtype)
        self.check(self.api.state_get(self.handle, index, -1, array.ctypes.data, array.nbytes))
        return array

    def state_set(self, name, array):
        index = self.state_index(name)
        array = numpy.ascontiguousarray(array, self.module.states[index].dtype)
        self.check(self.api.state_set(self.handle, index, -1, array.ctypes.data, array.nbytes))

    def state_reset(self, slot=-1):
        self.check(self.api.state_reset(self.handle, slot))

    def close(self):
        self.api.context_destroy(self.handle)
        self.api.model_destroy(self.model)
        self.model = self.handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def tensor(array, shape):
    padded = (c_int64 * MAX_RANK)(*shape)
    return Tensor(ctypes.sizeof(Tensor), CODES[array.dtype], array.ctypes.data, array.nbytes, len(shape), padded)
