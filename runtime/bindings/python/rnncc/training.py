# SPDX-License-Identifier: MIT
"""Training: the context of a module that `rnncc --train` made."""
from __future__ import annotations

import ctypes
from fnmatch import fnmatchcase
from operator import index
from typing import Any, Dict, Iterable, List, Mapping, Optional

from . import abi, arrays, native
from .context import Context, set_tensor
from .describe import Slot, slot as slot_of
from .errors import ArgumentError, ShapeError, UnsupportedError, of_status

RULES = ("sgd", "adam", "adamw")
ROOM = 1024  # of a message


class Trainer(Context):
    """A context that also computes gradients, and changes the model's weights by them.

        trainer = rnncc.load("step.so").trainer()
        for x, labels in batches:
            loss = trainer(x, labels)
            trainer.backward()
            trainer.step("adam", learning_rate=1e-3)
        weights = trainer.weights()
    """

    def __init__(self, model: native.Model):
        table = model.api
        if not abi.has(table, "training") or not table.training:
            raise UnsupportedError(f"{model.library.path}: expected a module that `rnncc --train` made")
        super().__init__(model)
        self._training, self._model = table.training.contents, model.handle
        info = self._training.info.contents
        self._trained = {it.name.decode(): slot_of("weight", it) for it in abi.parameters(info)}
        self._weights = {**self._trained, **{it.name.decode(): slot_of("weight", it) for it in abi.statistics(info)}}
        self._held: Optional[List[arrays.View]] = None  # the last run's inputs, for backward(); None: it has none
        given, results = abi.outer_gradients(self._training)
        self._given, self._results = [self._outputs[i] for i in given], [self._inputs[i] for i in results]

    def _run_on(self, inputs: List[Any], outs: Optional[List[Any]]) -> List[Any]:
        self._held = None  # as in C, a run that is refused leaves no way back
        return super()._run_on(inputs, outs)

    def _remember(self, _inputs: List[Any], views: List[arrays.View], _shapes: List[arrays.Shape]) -> None:
        self._held = views

    def _inputs_held(self) -> List[arrays.View]:
        if self._held is None:
            raise ArgumentError("backward: expected a run() that succeeded before it, whose inputs were not released")
        return self._held

    @property
    def names(self) -> List[str]:
        """Of the weights that are trained."""
        return list(self._trained)

    def backward(self) -> None:
        """The gradients of the last run's loss."""
        with self._use():
            _held = self._inputs_held()  # C reads them
            self._check(self._training.backward(self._memory.handle))

    def backward_from(self, gradients: Mapping[str, Any]) -> Dict[str, Any]:
        """Of a module of --outer-loss: the program computed a loss of the last run's outputs, and these are its gradients
        for them, by name; one that is None or missing is zero. Returns those for the inputs, by name, of the kind that
        these are of. gradients() then has the weights'."""
        names = [slot.name for slot in self._given]
        unknown = [name for name in gradients if name not in names]
        if unknown:
            raise ArgumentError(f"output {unknown[0]} has no gradient; expected some of {', '.join(names) or 'none'}")
        with self._use():
            held = self._inputs_held()  # C reads them
            torch = arrays.torch_of(list(gradients.values()))
            found = {slot.name: arrays.empty(slot, shape, torch) for slot, shape in self._input_shapes(held)}
            views = [arrays.view(slot, self._gradient(slot, gradients)) for slot in self._given]  # they hold copies, too
            given = _tensors(self._given, views)
            rooms = [arrays.view(slot, found[slot.name], writable=True) for slot in self._results]
            results = _tensors(self._results, rooms)
            self._check(self._training.backward_from(self._memory.handle, ctypes.addressof(given), len(given),
                                                     ctypes.addressof(results), len(results)))
        return found

    def _input_shapes(self, held: List[arrays.View]) -> List["tuple[Slot, arrays.Shape]"]:
        """Of the last run."""
        shapes = {slot.name: view.shape for slot, view in zip(self._inputs, held)}
        return [(slot, shapes[slot.name]) for slot in self._results]

    def _gradient(self, slot: Slot, gradients: Mapping[str, Any]) -> Any:
        if gradients.get(slot.name) is not None:
            return gradients[slot.name]
        tensor = self._out[self._outputs.index(slot)]
        zeros = arrays.empty(slot, tuple(tensor.shape[:tensor.rank]))
        view = arrays.view(slot, zeros, writable=True)
        ctypes.memset(view.address, 0, view.bytes)
        return zeros

    def gradients(self) -> Dict[str, Any]:
        """Copies, by the weights' names."""
        with self._use():
            return {name: self._read(name, self._training.gradient, self._memory.handle) for name in self._trained}

    def gradient(self, name: str) -> Any:
        """A copy of one."""
        if name not in self._trained:
            raise _unknown(name, self._trained)
        with self._use():
            return self._read(name, self._training.gradient, self._memory.handle)

    def release_inputs(self) -> None:
        """Those of the last run are not held any more, so that it has no way back."""
        with self._use():
            self._held = None

    def close(self) -> None:
        """Gives its memory back, and releases inputs. It is not for runs any more."""
        super().close()
        self._held = None

    def gradient_norm(self) -> float:
        """Of all gradients together, before a step scales them."""
        norm = ctypes.c_double()
        with self._use():
            self._check(self._training.gradient_norm(self._memory.handle, ctypes.byref(norm)))
        return norm.value

    def weights(self) -> Dict[str, Any]:
        """Copies, by their names: of those that are trained, and of the running statistics of BatchNormalization."""
        with self._use():
            return {name: self._read(name, self._training.weights_get, self._model) for name in self._weights}

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """Of these names, all at once, in a module of an older rnncc one by one; the others stay. Runs of other threads end
        with those that they began with."""
        views = {name: self._view(name, array) for name, array in weights.items()}
        if not abi.has(self._training, "weights_update"):
            self._set_one_by_one(views)
            return
        given = (abi.Weight * len(views))()
        for one, (name, view) in zip(given, views.items()):
            one.struct_size, one.dtype = ctypes.sizeof(abi.Weight), self._weights[name].dtype.code
            one.name, one.data, one.bytes = name.encode(), view.address, view.bytes
        why = ctypes.create_string_buffer(ROOM)
        with self._use():
            status = self._training.weights_update(self._model, given, len(views), why, ROOM)
        if status:
            raise of_status(status, why.value.decode("utf-8", "replace"))

    def _set_one_by_one(self, views: Dict[str, arrays.View]) -> None:
        with self._use():
            for name, view in views.items():
                status = self._training.weights_set(self._model, name.encode(), view.address, view.bytes)
                if status:
                    raise of_status(status, f"weight {name} was not set")

    def keep_gradients(self) -> None:
        """Those of the last backward() are added to those of the next ones, until a step: so a batch may be run in parts."""
        self._need("gradients_keep")
        with self._use():
            self._check(self._training.gradients_keep(self._memory.handle, 1))

    def drop_gradients(self) -> None:
        """What was kept is not added any more."""
        self._need("gradients_keep")
        with self._use():
            self._check(self._training.gradients_keep(self._memory.handle, 0))

    def factors(self, names: str, learning_rate: float = 1, weight_decay: float = 1) -> None:
        """From the next step on each step's learning rate and weight decay are multiplied by these, for the weights whose
        names fit, with * and ?. A learning rate of 0 freezes them: means, and their counts of steps, stand still, too."""
        self._need("weight_factors")
        fitting = [name for name in self._trained if fnmatchcase(name, names)]
        if not fitting:
            raise ArgumentError(f"no weight that is trained fits {names}; there are {', '.join(self._trained)}")
        factors = _number("learning_rate", learning_rate), _number("weight_decay", weight_decay)
        with self._use():
            for name in fitting:
                status = self._training.weight_factors(self._model, name.encode(), *factors)
                if status:
                    raise of_status(status, f"factors: expected numbers that are finite and not negative, found {learning_rate}"
                                            f" and {weight_decay}")

    def checkpoint(self) -> bytes:
        """All that training goes on from: weights and running statistics, what the optimiser keeps, its count of steps, the
        states of this context and what Dropout draws next. Gradients are not in it, nor are learning rates and the like.
        DataError where weights or means are not finite: restore() would refuse it."""
        self._need("checkpoint_get")
        with self._use():
            data = ctypes.create_string_buffer(self._training.checkpoint_bytes(self._memory.handle))
            self._check(self._training.checkpoint_get(self._memory.handle, data, len(data)))
            return data.raw

    def restore(self, checkpoint: Any) -> None:
        """Goes on from what checkpoint() gave, of this network; it may have been compiled for another machine. What is of
        another network, cut short or damaged, or has weights or means that are not finite, is refused, and nothing changes."""
        self._need("checkpoint_set")
        try:
            data = checkpoint if isinstance(checkpoint, bytes) else memoryview(checkpoint).tobytes()
        except TypeError:
            raise ArgumentError(f"restore: expected what checkpoint() gives, found {type(checkpoint).__name__}") from None
        with self._use():
            self._check(self._training.checkpoint_set(self._memory.handle, data, len(data)))

    def step(self, rule: str, learning_rate: float, *, momentum: float = 0, beta1: float = 0.9, beta2: float = 0.999,
             epsilon: float = 1e-8, weight_decay: float = 0, max_norm: float = 0, nesterov: bool = False,
             gradient_scale: float = 1) -> None:
        """Changes the weights by the last gradients, as PyTorch's optimizer of that name does: sgd, adam or adamw. Each step
        may have another learning rate. gradient_scale: gradients are multiplied by it before all else; 0: by 1. max_norm:
        larger gradients are scaled to this norm first; 0: they are not. DataError where a gradient is not finite: the weights are
        as before. Runs of other threads end with the weights that they began with."""
        if rule not in RULES:
            raise ArgumentError(f"rule: expected one of {', '.join(RULES)}, found {rule}")
        if gradient_scale != 1:
            self._need("gradients_keep")  # came with it
        numbers = {"learning_rate": learning_rate, "momentum": momentum, "beta1": beta1, "beta2": beta2, "epsilon": epsilon,
                   "weight_decay": weight_decay, "max_norm": max_norm, "gradient_scale": gradient_scale}
        optimizer = abi.Optimizer(struct_size=ctypes.sizeof(abi.Optimizer), rule=RULES.index(rule), nesterov=bool(nesterov),
                                  **{name: _number(name, value) for name, value in numbers.items()})
        with self._use():
            self._check(self._training.step(self._memory.handle, ctypes.byref(optimizer)))

    def seed(self, seed: int) -> None:
        """What the next runs draw, Dropout's masks, is that of this seed: a whole number from 0 to 2^64 - 1."""
        if not hasattr(seed, "__index__") or not 0 <= seed < 2**64:
            raise ArgumentError(f"seed: expected a whole number from 0 to 2^64 - 1, found {seed!r}")
        self._need("seed")
        with self._use():
            self._check(self._training.seed(self._memory.handle, index(seed)))

    def reset_optimizer(self) -> None:
        """Momentum and means are zero again; the weights stay."""
        with self._use():
            self._check(self._training.optimizer_reset(self._model))

    def _need(self, function: str) -> None:
        if not abi.has(self._training, function):
            raise UnsupportedError(f"the module is of an older rnncc, which had no {function}()")

    def _read(self, name: str, function: Any, handle: int) -> Any:
        slot = self._weights[name]
        array = arrays.empty(slot, slot.max_shape)
        view = arrays.view(slot, array, writable=True)
        self._check(function(handle, name.encode(), view.address, view.bytes))
        return array

    def _view(self, name: str, array: Any) -> arrays.View:
        if name not in self._weights:
            raise _unknown(name, self._weights)
        view = arrays.view(self._weights[name], array)
        if view.shape != tuple(self._weights[name].max_shape):
            raise ShapeError(f"weight {name}: expected the shape {tuple(self._weights[name].max_shape)}, found {view.shape}")
        return view


def _number(name: str, value: Any) -> float:
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ArgumentError(f"{name}: expected a number, found {value!r}")


def _unknown(name: str, names: Iterable[str]) -> ArgumentError:
    return ArgumentError(f"no weight {name} is trained; expected one of {', '.join(names)}")


def _tensors(slots: List[Slot], views: List[arrays.View]) -> Any:
    tensors = abi.tensors([slot.dtype.code for slot in slots])
    for tensor, slot, view in zip(tensors, slots, views):
        set_tensor(tensor, slot, view)
    return tensors
