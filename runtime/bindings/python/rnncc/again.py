# SPDX-License-Identifier: MIT
"""A run on NumPy's arrays, or PyTorch's tensors, of the types and shapes that the last one had, with as little around it as
Python allows."""
from __future__ import annotations

import ctypes
from math import prod
from typing import Any, Callable, List, Optional, Sequence, Tuple

from .dtypes import numpy

Run = Callable[[Sequence[Any], Any], Optional[List[Any]]]
Place = Tuple[Any, Any, Tuple[int, ...]]  # the ABI's tensor, the type and the shape of its array


def again(call: Callable[[], int], ins: List[Place], outs: List[Place]) -> Run:
    """A function of the inputs and `out` that returns the results; None: it is another run, or went wrong. `call`: runs on
    the tensors. What is known of the arrays is in its own variables, where Python finds it fastest."""
    for tensor, dtype, shape in outs:
        tensor.bytes = prod(shape) * dtype.itemsize
    tensors, dtypes, shapes = zip(*ins, *outs) if ins or outs else ((), (), ())
    made, n_ins, n_outs = [(shape, dtype) for _tensor, dtype, shape in outs], len(ins), len(outs)
    array_type, empty, address = numpy.ndarray, numpy.empty, ctypes.addressof
    at: Any = (ctypes.c_char * 0).from_buffer  # refuses what is read-only or not row-major

    def run(inputs: Sequence[Any], out: Any) -> Optional[List[Any]]:
        results: Sequence[Any]
        if out is None:
            results = [empty(shape, dtype) for shape, dtype in made]
        else:
            results = out if type(out) is list or type(out) is tuple else [out]
        if len(inputs) != n_ins or len(results) != n_outs:
            return None
        try:
            for tensor, dtype, shape, array in zip(tensors, dtypes, shapes, (*inputs, *results)):
                if type(array) is not array_type or array.dtype is not dtype or array.shape != shape:
                    return None
                tensor.data = address(at(array))
        except (TypeError, ValueError, BufferError):
            return None
        return None if call() else list(results)

    return run


def with_torch(run: Run, torch: Any) -> Run:
    """The same for calls with a tensor of PyTorch's: NumPy's arrays of the same elements are made of tensors, and back.
    Results must be of the run's shapes."""
    tensor_type, from_numpy = torch.Tensor, torch.from_numpy

    def run_tensors(inputs: Sequence[Any], out: Any) -> Optional[List[Any]]:
        given = out if out is None or type(out) is list or type(out) is tuple else [out]
        if tensor_type not in map(type, inputs):
            return None
        try:
            arrays = [it.numpy() if type(it) is tensor_type else it for it in inputs]
            rooms = given and [it.numpy() if type(it) is tensor_type else it for it in given]
        except (RuntimeError, TypeError):  # such as one that requires its gradient: _run_on() says so
            return None
        results = run(arrays, rooms)
        if results is None:
            return None
        return list(given) if given is not None else [from_numpy(it) for it in results]

    return run_tensors
