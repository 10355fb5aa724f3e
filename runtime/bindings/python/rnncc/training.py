# SPDX-License-Identifier: MIT
"""Training: the context of a module that `rnncc --train` made."""
from __future__ import annotations

import ctypes
from typing import Any, Dict, List

from . import abi, arrays, native
from .context import Context
from .describe import slot as slot_of
from .errors import ArgumentError, ShapeError, UnsupportedError, of_status

RULES = ("sgd", "adam", "adamw")


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
        self._weights = {it.name.decode(): slot_of("weight", it) for it in abi.parameters(self._training.info.contents)}
        self._held: List[arrays.View] = []  # the run's inputs, until backward() has read them

    def _views(self, inputs: List[Any]) -> List[arrays.View]:
        self._held = super()._views(inputs)
        return self._held

    def _remember(self, inputs: List[Any], shapes: List[arrays.Shape]) -> None:
        """Each run goes by _views()."""

    @property
    def names(self) -> List[str]:
        """Of the weights that are trained."""
        return list(self._weights)

    def backward(self) -> None:
        """The gradients of the last run's loss."""
        with self._use():
            self._check(self._training.backward(self._memory.handle))

    def gradients(self) -> Dict[str, Any]:
        """Copies, by the weights' names."""
        with self._use():
            return {name: self._read(name, self._training.gradient, self._memory.handle) for name in self._weights}

    def gradient_norm(self) -> float:
        """Of all gradients together."""
        norm = ctypes.c_double()
        with self._use():
            self._check(self._training.gradient_norm(self._memory.handle, ctypes.byref(norm)))
        return norm.value

    def weights(self) -> Dict[str, Any]:
        """Copies, by their names."""
        with self._use():
            return {name: self._read(name, self._training.weights_get, self._model) for name in self._weights}

    def set_weights(self, weights: Dict[str, Any]) -> None:
        """Of these names; the others stay. Nothing else may use the model meanwhile."""
        views = {name: self._view(name, array) for name, array in weights.items()}
        with self._use():
            for name, view in views.items():
                status = self._training.weights_set(self._model, name.encode(), view.address, view.bytes)
                if status:
                    raise of_status(status, f"weight {name}")

    def step(self, rule: str, learning_rate: float, *, momentum: float = 0, beta1: float = 0.9, beta2: float = 0.999,
             epsilon: float = 1e-8, weight_decay: float = 0, max_norm: float = 0, nesterov: bool = False) -> None:
        """Changes the weights by the last gradients, as PyTorch's optimizer of that name does: sgd, adam or adamw.
        max_norm: larger gradients are scaled to this norm first; 0: they are not. DataError where a gradient is not
        finite: the weights are as before. Nothing else may use the model meanwhile."""
        if rule not in RULES:
            raise ArgumentError(f"rule: expected one of {', '.join(RULES)}, found {rule}")
        optimizer = abi.Optimizer(ctypes.sizeof(abi.Optimizer), RULES.index(rule), learning_rate, momentum, beta1, beta2,
                                  epsilon, weight_decay, max_norm, int(nesterov))
        with self._use():
            self._check(self._training.step(self._memory.handle, ctypes.byref(optimizer)))

    def reset_optimizer(self) -> None:
        """Momentum and means are zero again; the weights stay."""
        with self._use():
            self._check(self._training.optimizer_reset(self._model))

    def _read(self, name: str, function: Any, handle: int) -> Any:
        slot = self._weights[name]
        array = arrays.empty(slot, slot.max_shape)
        view = arrays.view(slot, array, writable=True)
        self._check(function(handle, name.encode(), view.address, view.bytes))
        return array

    def _view(self, name: str, array: Any) -> arrays.View:
        if name not in self._weights:
            raise ArgumentError(f"no weight {name} is trained; expected one of {', '.join(self._weights)}")
        view = arrays.view(self._weights[name], array)
        if view.shape != tuple(self._weights[name].max_shape):
            raise ShapeError(f"weight {name}: expected the shape {tuple(self._weights[name].max_shape)}, found {view.shape}")
        return view
