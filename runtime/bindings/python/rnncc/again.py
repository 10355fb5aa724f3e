# SPDX-License-Identifier: MIT
"""A run on NumPy's arrays, or PyTorch's tensors, of the types and shapes that the last one had, with as little around it as
Python allows."""
from __future__ import annotations

import ctypes
from functools import lru_cache
from math import prod
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from .dtypes import numpy

Run = Callable[[Sequence[Any], Any], Optional[Sequence[Any]]]
Place = Tuple[Any, Any, Tuple[int, ...]]  # the ABI's tensor, the type and the shape of its array

# Loops over two inputs and two outputs would take a quarter of the call. What is known of the arrays is in the function's
# own variables, where Python finds it fastest: of array k its tensor, type and shape, t{k}, d{k} and s{k}.
SOURCE = """
def make(call, ndarray, empty, address, at, {known}):
    def run(inputs, out):
        if len(inputs) != {n_ins}:
            return None
        {ins} = inputs
        if {ins_differ}:
            return None
        if out is None:
            {outs} = results = {made}
        else:
            results = out if type(out) is list or type(out) is tuple else [out]
            if len(results) != {n_outs}:
                return None
            {outs} = results
            if {outs_differ}:
                return None
        try:
            {set}
        except (TypeError, ValueError, BufferError):
            return None
        return None if call() else results
    return run
"""


def _differ(arrays: Sequence[int]) -> str:
    return " or ".join(f"type(a{k}) is not ndarray or a{k}.dtype is not d{k} or a{k}.shape != s{k}" for k in arrays) or "False"


@lru_cache(maxsize=None)
def _make(n_ins: int, n_outs: int) -> Callable[..., Run]:
    """Writes the function for so many inputs and outputs."""
    ins, outs = range(n_ins), range(n_ins, n_ins + n_outs)
    names: Dict[str, Any] = {}
    exec(SOURCE.format(
        n_ins=n_ins, n_outs=n_outs, known=", ".join(f"t{k}, d{k}, s{k}" for k in range(n_ins + n_outs)),
        ins=f"[{', '.join(f'a{k}' for k in ins)}]", outs=f"[{', '.join(f'a{k}' for k in outs)}]",
        ins_differ=_differ(ins), outs_differ=_differ(outs), made=f"[{', '.join(f'empty(s{k}, d{k})' for k in outs)}]",
        set="; ".join(f"t{k}.data = address(at(a{k}))" for k in range(n_ins + n_outs)) or "pass"), names)
    make: Callable[..., Run] = names["make"]
    return make


def again(call: Callable[[], int], ins: List[Place], outs: List[Place]) -> Run:
    """A function of the inputs and `out` that returns the results; None: it is another run, or went wrong. `call`: runs on
    the tensors."""
    for tensor, dtype, shape in outs:
        tensor.bytes = prod(shape) * dtype.itemsize
    at: Any = (ctypes.c_char * 0).from_buffer  # refuses what is read-only or not row-major
    known = [value for place in (*ins, *outs) for value in place]
    return _make(len(ins), len(outs))(call, numpy.ndarray, numpy.empty, ctypes.addressof, at, *known)


def with_torch(run: Run, torch: Any) -> Run:
    """The same for calls with a tensor of PyTorch's: NumPy's arrays of the same elements are made of tensors, and back.
    Results must be of the run's shapes."""
    tensor_type, from_numpy = torch.Tensor, torch.from_numpy

    def run_tensors(inputs: Sequence[Any], out: Any) -> Optional[Sequence[Any]]:
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
