# SPDX-License-Identifier: MIT
"""Modules of a stack of layers, one for each kind of call, and runs of them in autograd.

A run that may be differentiated has a context of its own until its backward pass, because what it computed stays there;
then the next run has it. Weights are set where they are not those that the module has: another tensor with other
elements, or another version of it, which each optimiser's step makes."""
from __future__ import annotations

import importlib
import threading
import weakref
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..context import Context
from ..errors import ArgumentError, UnsupportedError
from ..module import Module, load
from ..native import Path as AnyPath
from ..pool import Pool
from ..training import Trainer
from .cache import module_of
from .graph import Stack

torch: Any = importlib.import_module("torch")

STEPS, BATCH = 64, 16  # the least bounds of T and B
_pools: "weakref.WeakValueDictionary[int, Pool]" = weakref.WeakValueDictionary()  # by their number of threads


@dataclass(frozen=True)
class Settings:
    """What compile_rnn() was given."""

    threads: int
    cache: Optional[AnyPath]
    options: Tuple[str, ...]
    steps: int
    batch: int


class Kind(NamedTuple):
    """What a call asks of a module."""

    trains: bool
    lengths: bool
    states: bool
    wanted: Tuple[str, ...]  # inputs whose gradients it wants


def _at_least(extent: int, least: int) -> int:
    """A power of 2, so that few modules serve all lengths."""
    return max(least, 1 << (extent - 1).bit_length())


class Given(NamedTuple):
    """A weight that the module has."""

    view: Any  # it keeps the memory, and shares the tensor's version
    version: int

    def is_still(self, tensor: Any) -> bool:
        """Whether the tensor has the same elements: one that a parametrization computed anew may have."""
        if tensor.is_inference() or self.view.is_inference() or self.view._version != self.version:
            return False  # what inference_mode() makes counts no versions
        if self.view.data_ptr() != tensor.data_ptr():  # memory of a parameter may have changed without a version
            return not isinstance(tensor, torch.nn.Parameter) and bool(torch.equal(self.view, tensor))
        return bool(self.view.stride() == tensor.stride() and tensor._version == self.version)


class Runner:
    """A loaded module. Calls at once wait for each other."""

    def __init__(self, stack: Stack, kind: Kind, settings: Settings, most: Tuple[int, int], usual: Tuple[int, int]):
        options = [f"--dim={name}=1..{opt}..{top}" for name, opt, top in zip("TB", usual, most)]
        if kind.trains:
            left_out = [name for name in ("x", "h0", "c0") if name not in kind.wanted]
            options += ["--train=" + ",".join(["*", *(f"!{name}" for name in left_out)]), "--outer-loss"]
        else:
            options += ["--weights=mutable"]
        path = module_of(stack, [*options, *settings.options], settings.cache)
        self.most, self._names = most, list(stack.weights())
        self._pool = _pools.get(settings.threads)
        if self._pool is None:
            self._pool = _pools[settings.threads] = Pool(path, threads=settings.threads)
        self._module: Module = load(path, pool=self._pool)
        self.lock = threading.RLock()
        self._set: Dict[str, Given] = {}
        self._free: List[Trainer] = []

    def fits(self, extents: Tuple[int, int]) -> bool:
        return all(extent <= most for extent, most in zip(extents, self.most))

    # ---- contexts ----

    def take(self) -> Trainer:
        return self._free.pop() if self._free else self._module.trainer()

    def give(self, trainer: Trainer) -> None:
        trainer.release_inputs()
        self._free.append(trainer)

    # ---- weights ----

    def set_weights(self, context: Context, weights: Sequence[Any]) -> None:
        """Those that have changed."""
        changed = {}
        for name, tensor in zip(self._names, weights):
            has = self._set.get(name)
            if has is None or not has.is_still(tensor):
                changed[name] = tensor.detach()
        if not changed:
            return
        if isinstance(context, Trainer):
            context.set_weights(changed)
        else:
            self._module.weights.update(changed)
        self._set.update({name: Given(tensor, -1 if tensor.is_inference() else tensor._version)
                          for name, tensor in changed.items()})

    def infer(self, inputs: Sequence[Any], weights: Sequence[Any]) -> Tuple[Any, ...]:
        with self.lock:
            self.set_weights(self._module.default, weights)
            return tuple(self._module(*inputs))


class Lease:
    """A context that holds a run until its backward pass, or until nothing can ask for that any more."""

    trainer: Optional[Trainer] = None  # where taking one fails, too

    def __init__(self, runner: Runner):
        self.runner = runner
        with runner.lock:
            self.trainer = runner.take()

    def end(self) -> None:
        if self.trainer is None:
            return
        with self.runner.lock:
            if self.trainer is not None:
                self.runner.give(self.trainer)
            self.trainer = None

    def __del__(self) -> None:
        self.end()


class _Run(torch.autograd.Function):  # type: ignore[misc]
    """inputs: those of the module; then its weights. Returns y, hn and, of an LSTM, cn."""

    @staticmethod
    def forward(ctx: Any, runner: Runner, names: List[str], *tensors: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)  # so that PyTorch refuses where one was changed since
        given, weights = tensors[:len(names)], tensors[len(names):]
        ctx.names, ctx.lease = names, Lease(runner)
        with runner.lock:
            runner.set_weights(ctx.lease.trainer, weights)
            return tuple(ctx.lease.trainer(*(it.detach() for it in given)))

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        saved = ctx.saved_tensors
        with torch.no_grad():
            gradients = _gradients(ctx, given)
        # create_graph=True, which asks for gradients of these, too
        return _Once.apply(len(gradients), *gradients, *given, *saved) if torch.is_grad_enabled() else gradients


def _gradients(ctx: Any, given: Sequence[Any]) -> Tuple[Any, ...]:
    """Of what _Run.apply() was given. given: the gradients of what it returned."""
    lease: Lease = ctx.lease
    trainer = lease.trainer
    if trainer is None:
        raise ArgumentError("backward: a compiled layer goes back through each of its calls once; expected another call")
    if all(it is None for it in given):  # what follows has no gradient
        lease.end()
        return (None,) * len(ctx.needs_input_grad)
    with lease.runner.lock:
        gradients = {name: None if it is None else it.detach() for name, it in zip(("y", "hn", "cn"), given)}
        found: Dict[str, Any] = trainer.backward_from(gradients)
        wanted = ctx.needs_input_grad[2 + len(ctx.names):]
        weights = [torch.from_numpy(trainer.gradient(name)) if want else None
                   for name, want in zip(lease.runner._names, wanted)]
    lease.end()
    return (None, None, *(found.get(name) for name in ctx.names), *weights)


class _Once(torch.autograd.Function):  # type: ignore[misc]
    """The first `count` tensors as they are, which depend on all others. torch.autograd.function.once_differentiable would
    take gradients for constants where those that arrive are: a penalty on the gradients of a sum would be left out."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Any) -> Any:
        return tensors[:count]

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise UnsupportedError("backward: a compiled layer has no second derivative; expected a loss without its gradients, or "
                               "PyTorch's layer")


class Runners:
    """Those of a stack, compiled when a call first asks for one."""

    def __init__(self, stack: Stack, settings: Settings):
        self._stack, self._settings = stack, settings
        self._found: Dict[Kind, Runner] = {}
        self._lock = threading.Lock()

    def _runner(self, kind: Kind, extents: Tuple[int, int]) -> Runner:
        with self._lock:
            found = self._found.get(kind)
            if found is not None and found.fits(extents):
                return found
            least = (self._settings.steps, self._settings.batch) if found is None else found.most
            stack = replace(self._stack, lengths=kind.lengths, states=kind.states)
            most = tuple(_at_least(extent, bound) for extent, bound in zip(extents, least))
            usual = tuple(_at_least(extent, 1) for extent in extents)
            made = self._found[kind] = Runner(stack, kind, self._settings, (most[0], most[1]), (usual[0], usual[1]))
            return made

    def __call__(self, inputs: Mapping[str, Any], weights: Sequence[Any]) -> Tuple[Any, ...]:
        """inputs: by the model's names, in its order."""
        given = list(inputs.values())
        trains = torch.is_grad_enabled() and any(it.requires_grad for it in (*given, *weights))
        wanted = tuple(name for name, it in inputs.items() if trains and it.requires_grad)
        kind = Kind(trains, "lengths" in inputs, "h0" in inputs, wanted)
        runner = self._runner(kind, (given[0].shape[0], given[0].shape[1]))
        if trains:
            found: Tuple[Any, ...] = _Run.apply(runner, list(inputs), *given, *weights)
            return found
        return runner.infer([it.detach() for it in given], weights)
