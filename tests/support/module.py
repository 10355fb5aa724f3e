# SPDX-License-Identifier: MIT
"""A compiled module for tests: the package rnncc, runtime/bindings/python, with all results by name.

    with Module(path) as module, module.context(threads=2) as context:
        outputs = context.run({"x": x})      # name -> array
        state = context.state_get("h0")

Of a module with several networks, Module(path, "decoder") is one of them.
"""
import sys
from pathlib import Path

import numpy

from support.guarded import guarded_copy, unset

PACKAGE = Path(__file__).resolve().parents[2] / "runtime" / "bindings" / "python"
sys.path.insert(0, str(PACKAGE))

import rnncc  # noqa: E402 (in that folder)
from rnncc import abi, native  # noqa: E402
from rnncc.describe import slot  # noqa: E402
from rnncc.dtypes import DTYPES, numpy_dtype  # noqa: E402

ModuleError = rnncc.Error


class Module:
    """`api` and `info` are the structs of rnncc.h."""

    def __init__(self, path, network=None):
        self.library = native.Library(path)
        self.api = self.library.table(network)
        self.info = info = self.api.info.contents
        self.dims = {d.name.decode(): (d.min, d.opt, d.max) for d in abi.dims(info)}
        self.inputs = [described("input", it) for it in abi.inputs(info)]
        self.outputs = [described("output", it) for it in abi.outputs(info)]
        self.states = [described("state", it.tensor.contents) for it in abi.states(info)]
        self.slots = [it.slots for it in abi.states(info)]

    def context(self, threads=1, pool_of=None, share_all=True):
        return Context(self, threads, pool_of, share_all)

    def close(self):
        """It is unloaded when its contexts are closed, too."""
        self.library = self.api = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Described:
    """An input, output or state of the module."""

    def __init__(self, of):
        self.name, self.dtype, self.shape, self.max_shape = of.name, numpy_dtype(of.dtype), of.shape, of.max_shape


def described(kind, info):
    return Described(slot(kind, info))


class Context(rnncc.Context):
    """A context with a model of its own; `pool_of`: one whose model's workers it has, too. Small models are shared by the
    workers as large ones are, unless `share_all` is false."""

    def __init__(self, module, threads, pool_of=None, share_all=True):
        self.module = module
        self.model = native.Model(module.library, module.api, pool_of.model if pool_of else None, threads=threads,
                                  share_all=int(share_all))
        super().__init__(self.model)
        self.at_end = False

    def arrays_of(self, feeds):
        return {it.name: numpy.asarray(feeds[it.name]) for it in self.module.inputs}

    def run(self, feeds):
        """feeds: name -> array; of them those that are inputs. Inputs and outputs are flush with a page that may not be
        touched: behind them, and before them in every second run. Outputs hold noise before."""
        self.at_end = not self.at_end
        inputs = {name: guarded_copy(array, self.at_end) for name, array in self.arrays_of(feeds).items()}
        rooms = self._room([array.shape for array in inputs.values()])
        outputs = {it.name: unset(room, it.dtype, self.at_end) for it, room in zip(self.module.outputs, rooms)}
        return super().run(inputs, outputs)

    def prepared(self, feeds):
        """A function that runs on these feeds with as little around it as Python allows. Its outputs are dropped."""
        inputs = [array.copy("C") for array in self.arrays_of(feeds).values()]
        outputs = [numpy.empty(room, it.dtype)
                   for it, room in zip(self.module.outputs, self._room([array.shape for array in inputs]))]
        self._run_on(inputs, outputs)

        def call(_keep=(inputs, outputs)):
            self._check(self._call())

        return call

    def profiled(self, on):
        """The entries of the profile so far; `on` also resets it."""
        return self._profile(on)

    state_get = rnncc.Context.state
    state_set = rnncc.Context.set_state
    state_reset = rnncc.Context.reset

    def close(self):
        super().close()
        self._memory = self.model = None


def tensors(arrays):
    """The ABI's structs of NumPy arrays, which must outlive them."""
    structs = abi.tensors([next(it.code for it in DTYPES if numpy_dtype(it) == array.dtype) for array in arrays])
    for struct, array in zip(structs, arrays):
        struct.data, struct.bytes, struct.rank = array.ctypes.data, array.nbytes, array.ndim
        struct.shape[:array.ndim] = array.shape
    return structs
