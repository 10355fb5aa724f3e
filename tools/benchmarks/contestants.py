# SPDX-License-Identifier: MIT
"""One interface for rnncc's modules and their peers.

    contestant = CONTESTANTS["onnxruntime"]()    its library is loaded, no thread runs
    runner = contestant.open(job, threads)       ready to run: this and the first run are the cost of a start
    runner.run() -> outputs by name              runner.times(n) -> seconds of n runs

Each contestant gets its input in place, writes its output in place if it can, and is called by its fastest interface: C,
except for PyTorch, whose users call it from Python, and ncnn, whose package has no C interface.
"""
import ctypes
import importlib.metadata
import importlib.util
import time
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_ssize_t, c_uint32
from ctypes import c_void_p
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import networks
from benchmarks.cases import GATES
from benchmarks.environment import BUILD, OWN, ROOT
from support.module import tensors


class Failed(Exception):
    """A contestant is missing, or does not run a case. The message names it."""


def timing_loops():
    return ctypes.CDLL(str(BUILD / "tools" / "benchmarks" / "timed_calls.so"))


class CRunner:
    """Runs and times through the loops in C. `call` is the structure of timed_calls.c that `loop` takes."""

    def __init__(self, name, loop, call, outputs, keep):
        self.name, self.loop, self.call, self.outputs, self.keep = name, loop, call, outputs, keep
        loop.restype, loop.argtypes = c_ssize_t, [c_void_p, c_int, POINTER(c_double)]

    def times(self, runs):
        seconds = (c_double * runs)()
        status = self.loop(byref(self.call), runs, seconds)
        if status:
            raise Failed(f"{self.name}: a run failed with status {status}")
        return list(seconds)

    def run(self):
        self.times(1)
        return self.outputs


class Job:
    """A recurrent case, the folder of its model files, its input, memory for its output, and the expected output."""
    near = 1.2  # a thread count that is slower than the best by this factor is measured no further

    def __init__(self, case, folder):
        self.case, self.folder, self.feeds = case, folder, networks.feeds(case)
        self.outputs = {name: np.full(networks.output_shape(case), np.nan, np.float32)
                        for name in networks.output_names(case)}
        self.torch_weights = torch_weights(case)
        self.weight_bytes, self.bound = case.weight_bytes, networks.tolerance(case)

    def reference(self):
        return networks.reference(self.case)

    def error(self, outputs, expected):
        return networks.error(outputs, expected)

    def bound_of(self, contestant):
        return self.bound + (0 if contestant in OWN else networks.PEER_COARSENESS)


# rnncc


class ModuleCall(Structure):
    _fields_ = [("library", c_void_p * 2), ("model", c_void_p), ("context", c_void_p), ("inputs", c_void_p),
                ("n_inputs", c_size_t), ("outputs", c_void_p), ("n_outputs", c_size_t)]


class Contestant:
    def own_output_bytes(self, job):
        """Bytes of outputs that it allocates itself; other contestants get them from their caller."""
        return 0


# In the job's folder:
MODULES = {"rnncc": "module.so", "untuned": "untuned.so", "f32": "f32.so", "bf16_weights": "bf16.so",
           "int8_weights": "int8.so", "bf16_products": "products.so"}
QUANTISED = "quantised.onnx"


class Rnncc(Contestant):
    title = "rnncc"

    def __init__(self, file=MODULES["rnncc"]):
        """file: of the job's folder."""
        self.file, self.loops = file, timing_loops()
        self.version = (ROOT / "meson.build").read_text().split("version: '")[1].split("'")[0]

    def open(self, job, threads):
        """A module's inputs and outputs have the order of the model file, which is the job's."""
        sides = [tensors(list(arrays.values())) for arrays in (job.feeds, job.outputs)]
        call = ModuleCall(inputs=ctypes.addressof(sides[0]), n_inputs=len(job.feeds),
                          outputs=ctypes.addressof(sides[1]), n_outputs=len(job.outputs))
        error = ctypes.create_string_buffer(256)
        path = c_char_p(bytes(job.folder / self.file))
        if self.loops.open_module(byref(call), path, c_int(threads), error, c_size_t(len(error))):
            raise Failed(f"{self.title}: {error.value.decode()}")
        runner = CRunner(self.title, self.loops.time_module, call, job.outputs, (job, sides))
        runner.close = lambda: self.loops.close_module(byref(call))
        return runner


# ONNX Runtime, by its C API


class OrtCall(Structure):
    _fields_ = [("run", c_void_p), ("session", c_void_p), ("input_names", POINTER(c_char_p)),
                ("inputs", POINTER(c_void_p)), ("n_inputs", c_size_t), ("output_names", POINTER(c_char_p)),
                ("outputs", POINTER(c_void_p)), ("n_outputs", c_size_t)]


# Places in OrtApi, a table that only ever grows at its end.
ORT = {"GetErrorMessage": 2, "CreateEnv": 3, "CreateSession": 7, "Run": 9, "CreateSessionOptions": 10,
       "SetIntraOpNumThreads": 24, "SetInterOpNumThreads": 25, "CreateTensorWithDataAsOrtValue": 49,
       "CreateCpuMemoryInfo": 69, "ReleaseEnv": 92, "ReleaseMemoryInfo": 94, "ReleaseSession": 95, "ReleaseValue": 96,
       "ReleaseSessionOptions": 100}
ORT_API_VERSION, ORT_WARNINGS, ORT_ARENA, ORT_DEFAULT_MEMORY = 4, 2, 1, 0
ORT_TYPES = {"float32": 1, "int64": 7}


def package_file(package, pattern):
    spec = importlib.util.find_spec(package)
    found = spec and sorted(Path(spec.submodule_search_locations[0]).glob(pattern))
    if not found:
        raise Failed(f"{package}: no {pattern} in the Python package")
    return found[0]


class OnnxRuntime(Contestant):
    title = "ONNX Runtime"

    def __init__(self, file="model.onnx"):
        """file: of the job's folder."""
        self.file, self.loop = file, timing_loops().time_ort
        self.version = importlib.metadata.version("onnxruntime")
        base = ctypes.CDLL(str(package_file("onnxruntime", "capi/libonnxruntime.so.*"))).OrtGetApiBase
        base.restype = POINTER(c_void_p)
        get_api = ctypes.CFUNCTYPE(POINTER(c_void_p), c_uint32)(base()[0])
        self.table = get_api(ORT_API_VERSION)

    def call(self, name, *arguments):
        kind = ctypes.CFUNCTYPE(c_void_p, *[type(argument) for argument in arguments])
        status = kind(self.table[ORT[name]])(*arguments)
        if status:
            message = ctypes.CFUNCTYPE(c_char_p, c_void_p)(self.table[ORT["GetErrorMessage"]])(status)
            raise Failed(f"ONNX Runtime: {name}: {message.decode()}")

    def made(self, name, *arguments):
        """The value that the function writes to its last argument."""
        result = c_void_p()
        self.call(name, *arguments, ctypes.pointer(result))
        return result

    def release(self, name, what):
        ctypes.CFUNCTYPE(None, c_void_p)(self.table[ORT[name]])(what)

    def value(self, memory, array):
        shape = (c_int64 * array.ndim)(*array.shape)
        return self.made("CreateTensorWithDataAsOrtValue", memory, c_void_p(array.ctypes.data), c_size_t(array.nbytes),
                         shape, c_size_t(array.ndim), c_int(ORT_TYPES[array.dtype.name]))

    def open(self, job, threads):
        feeds, outputs = job.feeds, job.outputs
        environment = self.made("CreateEnv", c_int(ORT_WARNINGS), c_char_p(b"bench"))
        options = self.made("CreateSessionOptions")
        self.call("SetIntraOpNumThreads", options, c_int(threads))
        self.call("SetInterOpNumThreads", options, c_int(1))
        session = self.made("CreateSession", environment, c_char_p(bytes(job.folder / self.file)), options)
        memory = self.made("CreateCpuMemoryInfo", c_int(ORT_ARENA), c_int(ORT_DEFAULT_MEMORY))
        values = [[self.value(memory, array) for array in arrays.values()] for arrays in (feeds, outputs)]
        names = [(c_char_p * len(arrays))(*map(str.encode, arrays)) for arrays in (feeds, outputs)]
        pointers = [(c_void_p * len(side))(*[value.value for value in side]) for side in values]
        call = OrtCall(self.table[ORT["Run"]], session, names[0], pointers[0], len(feeds), names[1], pointers[1],
                       len(outputs))

        def close():
            for value in values[0] + values[1]:
                self.release("ReleaseValue", value)
            for name, what in (("Session", session), ("SessionOptions", options), ("MemoryInfo", memory),
                               ("Env", environment)):
                self.release("Release" + name, what)

        runner = CRunner(self.title, self.loop, call, outputs, (feeds, names, pointers))
        runner.close = close
        return runner


# OpenVINO, by its C API


class OpenVinoCall(Structure):
    _fields_ = [("infer", c_void_p), ("request", c_void_p)]


class OvShape(Structure):
    _fields_ = [("rank", c_int64), ("dims", POINTER(c_int64))]


OV_TYPES = {"float32": 4, "int64": 10}  # of ov_element_type_e


class OpenVino(Contestant):
    title = "OpenVINO"

    def __init__(self, file="model.onnx", precision="f32"):
        """file: of the job's folder. precision: of sums and products of floats; on some CPUs the default is bf16."""
        self.file, self.precision, self.loop = file, precision, timing_loops().time_openvino
        self.version = importlib.metadata.version("openvino")
        self.library = ctypes.CDLL(str(package_file("openvino", "libs/libopenvino_c.so.*")))

    def call(self, name, *arguments):
        if getattr(self.library, name)(*arguments):
            message = self.library.ov_get_last_err_msg
            message.restype = c_char_p
            raise Failed(f"OpenVINO: {name}: {(message() or b'').decode()}")

    def compiled(self, folder, threads):
        core, model, compiled = c_void_p(), c_void_p(), c_void_p()
        self.call("ov_core_create", byref(core))
        self.call("ov_core_read_model", core, c_char_p(bytes(folder / self.file)), None, byref(model))
        properties = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
                      "INFERENCE_PRECISION_HINT": self.precision}
        flat = [c_char_p(str(part).encode()) for pair in properties.items() for part in pair]
        self.call("ov_core_compile_model", core, model, c_char_p(b"CPU"), c_size_t(len(flat)), byref(compiled), *flat)
        return core, model, compiled

    def tensor(self, array):
        tensor, dims = c_void_p(), (c_int64 * array.ndim)(*array.shape)
        self.call("ov_tensor_create_from_host_ptr", c_int(OV_TYPES[array.dtype.name]), OvShape(array.ndim, dims),
                  c_void_p(array.ctypes.data), byref(tensor))
        return tensor

    def open(self, job, threads):
        feeds, outputs = job.feeds, job.outputs
        core, model, compiled = self.compiled(job.folder, threads)
        request = c_void_p()
        self.call("ov_compiled_model_create_infer_request", compiled, byref(request))
        bound = [(name, array, self.tensor(array)) for side in (feeds, outputs) for name, array in side.items()]
        for name, _, tensor in bound:
            self.call("ov_infer_request_set_tensor", request, c_char_p(name.encode()), tensor)
        call = OpenVinoCall(ctypes.cast(self.library.ov_infer_request_infer, c_void_p), request)

        def close():
            self.library.ov_infer_request_free(request)
            for _, _, tensor in bound:
                self.library.ov_tensor_free(tensor)
            self.library.ov_compiled_model_free(compiled)
            self.library.ov_model_free(model)
            self.library.ov_core_free(core)

        runner = CRunner(self.title, self.loop, call, outputs, bound)
        runner.close = close
        return runner


# PyTorch, eager

TORCH_GATES = {"RNN": [0], "GRU": [1, 0, 2], "LSTM": [0, 2, 3, 1]}  # positions of PyTorch's r z n, i f g o in ONNX's order


def torch_weights(case):
    """PyTorch's name -> array, gates in PyTorch's order."""
    weights = {}
    for number, (W, R, bias) in enumerate(networks.layers(case)):
        for d in range(case.D):
            place = f"l{number}{'_reverse' if d else ''}"
            Wb, Rb = np.split(bias[d], 2)
            for name, array in (("weight_ih", W[d]), ("weight_hh", R[d]), ("bias_ih", Wb), ("bias_hh", Rb)):
                gates = np.split(array, GATES[case.op])
                weights[f"{name}_{place}"] = np.concatenate([gates[k] for k in TORCH_GATES[case.op]])
    return weights


class TorchRunner:
    def __init__(self, torch, network, job, threads):
        self.torch, self.network, self.case, self.threads = torch, network, job.case, threads
        x, *states = (torch.from_numpy(array) for array in job.feeds.values())
        self.arguments = [x, *([tuple(states) if job.case.op == "LSTM" else states[0]] if states else [])]

    def times(self, runs):
        network, arguments, clock, times = self.network, self.arguments, time.perf_counter, []
        self.torch.set_num_threads(self.threads)
        with self.torch.inference_mode():
            for _ in range(runs):
                start = clock()
                network(*arguments)
                times.append(clock() - start)
        return times

    def run(self):
        self.torch.set_num_threads(self.threads)
        with self.torch.inference_mode():
            steps, last = self.network(*self.arguments)
        case = self.case
        if case.streaming:
            last = last if case.op == "LSTM" else (last,)
            return {name: value.numpy() for name, value in zip(networks.output_names(case), last)}
        return {"Y": steps.numpy().reshape(case.T, case.B, case.D, case.H).transpose(0, 2, 1, 3)}

    def close(self):
        pass


class PyTorch(Contestant):
    title = "PyTorch"

    def __init__(self):
        try:
            import torch
        except ImportError as missing:
            raise Failed(f"torch: {missing}") from missing
        self.torch, self.version = torch, torch.__version__

    def own_output_bytes(self, job):
        return sum(array.nbytes for array in job.outputs.values())

    def open(self, job, threads):
        case = job.case
        self.torch.set_num_threads(threads)
        layer = getattr(self.torch.nn, case.op)
        network = layer(case.H, case.H, case.layers, bidirectional=case.bidirectional)
        network.load_state_dict({name: self.torch.from_numpy(array) for name, array in job.torch_weights.items()})
        return TorchRunner(self.torch, network.eval(), job, threads)


# ncnn, whose Python package has no C interface; its calls take milliseconds


class NcnnRunner:
    def __init__(self, ncnn, net, job):
        (self.output_name,) = job.outputs
        self.net, self.image = net, ncnn.Mat(job.feeds["image"][0])

    def infer(self):
        extractor = self.net.create_extractor()
        extractor.input("in0", self.image)
        status, result = extractor.extract("out0")
        if status:
            raise Failed(f"ncnn: a run failed with status {status}")
        return result

    def times(self, runs):
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            self.infer()
            times.append(time.perf_counter() - start)
        return times

    def run(self):
        return {self.output_name: np.array(self.infer())[np.newaxis]}

    def close(self):
        self.net.clear()


class Ncnn(Contestant):
    title = "ncnn"

    def __init__(self):
        try:
            import ncnn
        except ImportError as missing:
            raise Failed(f"ncnn: {missing}") from missing
        self.ncnn, self.version = ncnn, ncnn.__version__

    def open(self, job, threads):
        if len(job.feeds["image"]) > 1:
            raise Failed("ncnn: takes one image at a time")
        net = self.ncnn.Net()
        net.opt.num_threads = threads
        for half in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage"):
            setattr(net.opt, half, False)  # f32 as given
        for load, suffix in ((net.load_param, "param"), (net.load_model, "bin")):
            if load(str(job.folder / f"model.ncnn.{suffix}")):
                raise Failed(f"ncnn: cannot load model.ncnn.{suffix}")
        return NcnnRunner(self.ncnn, net, job)


CONTESTANTS = {**{name: partial(Rnncc, MODULES[name]) for name in MODULES},
               "onnxruntime": OnnxRuntime,
               "openvino": OpenVino, "torch": PyTorch, "ncnn": Ncnn,
               "onnxruntime_int8": partial(OnnxRuntime, QUANTISED), "openvino_int8": partial(OpenVino, QUANTISED),
               "openvino_bf16": partial(OpenVino, precision="bf16")}
