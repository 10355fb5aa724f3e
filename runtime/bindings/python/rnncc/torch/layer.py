# SPDX-License-Identifier: MIT
"""compile_rnn(): an RNN, GRU or LSTM of PyTorch whose calls run compiled modules."""
from __future__ import annotations

import importlib
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ..errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ..native import Path as AnyPath
from .graph import GATES, Stack
from .runs import BATCH, STEPS, Runners, Settings

torch: Any = importlib.import_module("torch")
rnn_utils: Any = importlib.import_module("torch.nn.utils.rnn")
PackedSequence = rnn_utils.PackedSequence
_is_exporting: Any = getattr(torch.compiler, "is_exporting", bool)  # older releases have none: false
_NARROW = torch.bfloat16, torch.float16  # what autocast makes of float32


class CompiledRNN:
    """What the compiled forms of RNN, GRU and LSTM have in common. They are layers of PyTorch's classes: parameters,
    state_dict(), options and calls are PyTorch's. Copies, and what comes from a file, compile for themselves."""

    def __init__(self, *_: Any, **__: Any):
        raise ArgumentError("expected compile_rnn(layer), which makes it of a layer of PyTorch")

    def __getstate__(self) -> Dict[str, Any]:
        return {name: value for name, value in torch.nn.RNNBase.__getstate__(self).items() if name != "_stacks"}

    def _weights_of(self, stack: Stack) -> List[Any]:
        """As they are now: a parametrization may compute them anew."""
        return [_checked(name, getattr(self, name)) for name in stack.weights()]

    def _runs(self) -> List[Tuple[Stack, Runners]]:
        """All layers at once; with dropout between them, each alone."""
        apart = bool(self._layer.dropout) and self._layer.training
        found = self.__dict__.setdefault("_stacks", {})
        if apart not in found:
            found[apart] = [(stack, Runners(stack, self._settings)) for stack in _stacks(self._layer, apart)]
        runs: List[Tuple[Stack, Runners]] = found[apart]
        return runs

    @property
    def _layer(self) -> Any:
        return self

    _settings: Settings

    # ---- calls ----

    def forward(self, input: Any, hx: Any = None) -> Any:
        if torch.jit.is_tracing() or _is_exporting():  # what is written is PyTorch's layer
            return super().forward(input, hx)  # type: ignore[misc]
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        input = _checked("input", input)
        batched = input.dim() == 3
        if input.dim() not in (2, 3):
            raise ShapeError(f"input: expected [T, B, I] or [T, I], found the shape {list(input.shape)}")
        axis = 0 if self._layer.batch_first else 1
        x = input if batched else input.unsqueeze(axis)
        x = x.transpose(0, 1) if self._layer.batch_first else x
        states = [it if batched else it.unsqueeze(1) for it in self._states(hx)]
        y, *last = self._run(x, states, None)
        y = y.transpose(0, 1) if self._layer.batch_first else y
        if not batched:
            y, last = y.squeeze(axis), [it.squeeze(1) for it in last]
        return y, self._as_given(last)

    def _packed(self, given: Any, hx: Any) -> Any:
        """Rows are in the order of their lengths, as the packing has put them."""
        packing = PackedSequence(_checked("input", given.data), given.batch_sizes)
        x, lengths = rnn_utils.pad_packed_sequence(packing)
        states = [_ordered(it, given.sorted_indices) for it in self._states(hx)]
        y, *last = self._run(x, states, lengths)
        data = rnn_utils.pack_padded_sequence(y, lengths).data
        last = [_ordered(it, given.unsorted_indices) for it in last]
        return PackedSequence(data, given.batch_sizes, given.sorted_indices, given.unsorted_indices), self._as_given(last)

    def _states(self, hx: Any) -> List[Any]:
        """h0 and, of an LSTM, c0; none where they are zero."""
        if hx is None:
            return []
        if self._layer.mode != "LSTM":
            return [_checked("h0", hx)]
        if not (isinstance(hx, (tuple, list)) and len(hx) == 2):
            raise ArgumentError(f"hx: expected (h0, c0), found {type(hx).__name__}")
        return [_checked(name, it) for name, it in zip(("h0", "c0"), hx)]

    def _as_given(self, last: Sequence[Any]) -> Any:
        return tuple(last) if self._layer.mode == "LSTM" else last[0]

    def _run(self, x: Any, states: Sequence[Any], lengths: Any) -> List[Any]:
        """x is [T, B, I]. Returns y and the last states."""
        self._check(x, states)
        runs, last = self._runs(), []
        for k, (stack, runners) in enumerate(runs):
            rows = slice(k * stack.layers * stack.directions, (k + 1) * stack.layers * stack.directions)
            inputs = {"x": x if k == 0 else _dropped(x, lengths, self._layer.dropout)}
            if lengths is not None:
                inputs["lengths"] = lengths.int()
            inputs.update({name: state[rows] for name, state in zip(("h0", "c0"), states)})
            x, *ends = runners(inputs, self._weights_of(stack))
            last.append(ends)
        return [x, *(ends[0] if len(ends) == 1 else torch.cat(ends) for ends in zip(*last))]

    def _check(self, x: Any, states: Sequence[Any]) -> None:
        """What the module's own words would not tell in PyTorch's terms."""
        layer = self._layer
        if x.shape[2] != layer.input_size:
            raise ShapeError(f"input: expected {layer.input_size} features (input_size), found {x.shape[2]}")
        if not x.shape[0] or not x.shape[1]:
            raise ShapeError(f"input: expected at least one step and one row, found {x.shape[0]} and {x.shape[1]}")
        due = [layer.num_layers * (2 if layer.bidirectional else 1), x.shape[1], layer.hidden_size]
        for name, state in zip(("h0", "c0"), states):
            if list(state.shape) != due:
                raise ShapeError(f"{name}: expected the shape {due} (layers and directions, batch, hidden_size), found "
                                 f"{list(state.shape)}")


class RNN(CompiledRNN, torch.nn.RNN):  # type: ignore[misc]
    pass


class GRU(CompiledRNN, torch.nn.GRU):  # type: ignore[misc]
    pass


class LSTM(CompiledRNN, torch.nn.LSTM):  # type: ignore[misc]
    pass


COMPILED = {torch.nn.RNN: RNN, torch.nn.GRU: GRU, torch.nn.LSTM: LSTM}


def _checked(name: str, tensor: Any) -> Any:
    """The tensor, of floats in the CPU's memory. Where autocast is on, what it has narrowed is widened."""
    if not isinstance(tensor, torch.Tensor):
        raise ArgumentError(f"{name}: expected a tensor, found {type(tensor).__name__}")
    if tensor.device.type != "cpu":
        raise ArgumentError(f"{name}: expected a tensor on the CPU, found one on {tensor.device}")
    if tensor.dtype in _NARROW and torch.is_autocast_enabled("cpu"):
        return tensor.float()
    if tensor.dtype != torch.float32:
        raise DTypeError(f"{name}: expected float32, found {str(tensor.dtype).split('.')[-1]}")
    return tensor


def _ordered(state: Any, order: Any) -> Any:
    return state if order is None else state.index_select(1, order)


def _dropped(x: Any, lengths: Any, p: float) -> Any:
    """The elements that nn.LSTM would drop, by the same random numbers."""
    if lengths is None:
        return torch.nn.functional.dropout(x, p)
    packed = rnn_utils.pack_padded_sequence(x, lengths)
    dropped = PackedSequence(torch.nn.functional.dropout(packed.data, p), packed.batch_sizes)
    return rnn_utils.pad_packed_sequence(dropped)[0]


def _stacks(layer: Any, apart: bool) -> List[Stack]:
    directions = 2 if layer.bidirectional else 1
    step = 1 if apart else layer.num_layers
    return [Stack(layer.mode, directions * layer.hidden_size if first else layer.input_size, layer.hidden_size, first, step,
                  directions, layer.bias, False, False) for first in range(0, layer.num_layers, step)]


def compile_rnn(layer: Any, *, threads: Optional[int] = None, cache: Optional[AnyPath] = None, options: Sequence[str] = (),
                steps: int = STEPS, batch: int = BATCH) -> Any:
    """The layer, torch.nn.RNN, GRU or LSTM, as one whose calls, forward and backward, run compiled modules.

        layer = rnncc.torch.compile_rnn(torch.nn.LSTM(40, 64, bidirectional=True))
        y, (h, c) = layer(x)

    It has the given layer's parameters themselves: an optimiser of either changes both. Modules are compiled when a call
    first asks for them, and kept in a folder: cache.py says how. threads: by default as many as torch.get_num_threads().
    steps, batch: the least upper bounds of T and B; longer calls compile again, for the next power of two. options: more
    words for rnncc."""
    kind = COMPILED.get(type(layer)) or next((it for it in COMPILED.values() if type(layer) is it), None)
    if kind is None:
        raise ArgumentError(f"expected a torch.nn.RNN, GRU or LSTM, found {type(layer).__name__}")
    if layer.proj_size:
        raise UnsupportedError(f"proj_size={layer.proj_size}: a compiled LSTM has no projection; expected proj_size=0")
    if layer.mode not in GATES:
        raise UnsupportedError(f"mode {layer.mode}: expected one of {', '.join(GATES)}")
    for name, parameter in layer.named_parameters():
        _checked(name, parameter)
    made = kind.__new__(kind)
    made.__dict__.update({name: value.copy() if isinstance(value, (dict, list)) else value
                          for name, value in layer.__dict__.items() if name != "_stacks"})
    folder = None if cache is None else os.path.abspath(cache)  # also when the program goes to another folder
    made._settings = Settings(torch.get_num_threads() if threads is None else threads, folder, tuple(options), steps, batch)
    return made
