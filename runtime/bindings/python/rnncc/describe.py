# SPDX-License-Identifier: MIT
"""What a module says of itself, as Python's own values."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple, Union

from . import abi
from .dtypes import BY_CODE, DType

Extent = Union[int, str, None]


@dataclass(frozen=True)
class Dim:
    """A dimension that is known only at run time."""

    name: str
    min: int
    opt: int
    max: int
    multiple: int  # every extent is one of it


@dataclass(frozen=True)
class Tensor:
    """An input or output, or the value of a state."""

    name: str
    dtype: str  # "f32", as in models
    shape: Tuple[Extent, ...]  # the name of a dim, or None, where only the run knows
    max_shape: Tuple[int, ...]  # the same where every dim is at its maximum


@dataclass(frozen=True)
class State(Tensor):
    """What the context carries from run to run."""

    batch_axis: Optional[int]  # the axis that is cut into slots
    slots: int


@dataclass(frozen=True)
class Info:
    """What a network is, and how it was built."""

    name: str
    model_version: str
    isa: str
    target: str
    weights_sha256: str
    build: str
    weights_bytes: int
    arena_bytes: int
    dims: Tuple[Dim, ...]
    inputs: Tuple[Tensor, ...]
    outputs: Tuple[Tensor, ...]
    states: Tuple[State, ...]
    weights: Tuple[Tensor, ...]  # those that can change: Module.weights
    # What calls take of a thread's stack at most; 0: not known.
    run_stack_bytes: int
    call_stack_bytes: int
    worker_stack_bytes: int


@dataclass(frozen=True)
class ProfileEntry:
    """A kernel of the schedule, over the runs since profiling began."""

    kernel: str
    node: str
    calls: int
    seconds: float
    flops: float  # of one call at the dims' optimum
    bytes: float
    flops_done: float  # of all these calls, at the extents that the runs had
    bytes_done: float


@dataclass(frozen=True)
class Slot:
    """A place in the list of inputs, outputs or states, as calls need it."""

    label: str  # "input x"
    name: str
    dtype: DType
    max_shape: Tuple[int, ...]
    shape: Tuple[int, ...]  # abi.DYNAMIC where only the run knows
    dim: Tuple[int, ...]  # the index of the dim that an axis is, else -1

    @property
    def fixed(self) -> bool:
        """Does the shape follow from the dims alone?"""
        return all(extent != abi.DYNAMIC or dim >= 0 for extent, dim in zip(self.shape, self.dim))


def _text(value: Optional[bytes]) -> str:
    return (value or b"").decode("utf-8", "replace")


def slot(kind: str, info: Any) -> Slot:
    name = _text(info.name)
    rank = info.rank
    return Slot(f"{kind} {name}", name, BY_CODE[info.dtype], tuple(info.max_shape[:rank]), tuple(info.shape[:rank]),
                tuple(info.dim[:rank]))


def _tensor(info: Any, dims: List[Dim]) -> Dict[str, Any]:
    axes = zip(info.shape[:info.rank], info.dim[:info.rank])
    shape = tuple(extent if extent != abi.DYNAMIC else dims[dim].name if dim >= 0 else None for extent, dim in axes)
    return {"name": _text(info.name), "dtype": BY_CODE[info.dtype].name, "shape": shape,
            "max_shape": tuple(info.max_shape[:info.rank])}


def info_of(info: Any) -> Info:
    dims = [Dim(_text(dim.name), dim.min, dim.opt, dim.max, dim.multiple) for dim in abi.dims(info)]
    states = tuple(State(**_tensor(state.tensor.contents, dims), slots=state.slots,
                         batch_axis=state.batch_axis if state.batch_axis >= 0 else None) for state in abi.states(info))
    return Info(name=_text(info.name), model_version=_text(info.model_version), isa=_text(info.isa),
                target=_text(info.target), weights_sha256=_text(info.weights_sha256), build=_text(info.build),
                weights_bytes=info.weights_bytes, arena_bytes=info.arena_bytes, dims=tuple(dims),
                inputs=tuple(Tensor(**_tensor(it, dims)) for it in abi.inputs(info)),
                outputs=tuple(Tensor(**_tensor(it, dims)) for it in abi.outputs(info)), states=states,
                weights=tuple(Tensor(**_tensor(it, dims)) for it in abi.weights(info)), **_stack(info))


def _stack(info: Any) -> Dict[str, int]:
    fields = ("run_stack_bytes", "call_stack_bytes", "worker_stack_bytes")
    return {field: getattr(info, field) if abi.has(info, field) else 0 for field in fields}


def profile_of(entries: List[Any]) -> List[ProfileEntry]:
    return [ProfileEntry(_text(it.kernel), _text(it.node), it.calls, it.nanoseconds * 1e-9, it.flops, it.bytes, *_done(it))
            for it in entries]


def _done(entry: Any) -> Tuple[float, float]:
    """A module that was built before it counted that knows what a call does at the optimum."""
    if entry.struct_size < abi.ProfileEntry.products.offset:
        return entry.flops * entry.calls, entry.bytes * entry.calls
    return entry.flops_done, entry.bytes_done
