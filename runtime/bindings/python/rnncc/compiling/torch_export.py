# SPDX-License-Identifier: MIT
"""PyTorch's modules, by way of ONNX. Needs torch, onnx and onnxscript."""
from __future__ import annotations

import importlib
import importlib.util
import tempfile
from pathlib import Path
from typing import Any, List, Mapping, Optional, Sequence

from .compiler import compile as compile_model
from ..errors import ArgumentError, ToolchainError
from ..module import Module

Axes = Sequence[Mapping[int, str]]
PACKAGES = ("torch", "onnx", "onnxscript")


def missing_package() -> Optional[str]:
    return next((name for name in PACKAGES if importlib.util.find_spec(name) is None), None)


def names_of(inputs: Sequence[Any]) -> List[str]:
    return [f"x{k}" for k in range(len(inputs))]


def export(module: Any, inputs: Sequence[Any], axes: Axes, path: Any, exporter: str = "dynamo",
           opset: Optional[int] = None, outputs: Optional[Sequence[str]] = None) -> None:
    """Writes ONNX. axes: for each input, {axis: name}. The inputs are called x0, x1, ... Without `opset` and `outputs`, the
    names of what the module returns, the exporter chooses."""
    torch: Any = importlib.import_module("torch")
    names = names_of(inputs)
    options: Any
    if exporter == "dynamo":
        dims = {name: torch.export.Dim.DYNAMIC for of_input in axes for name in of_input.values()}
        options = {"dynamic_shapes": tuple({axis: dims[name] for axis, name in of_input.items()} for of_input in axes)}
    else:
        options = {"dynamic_axes": {name: dict(of_input) for name, of_input in zip(names, axes)}}
        torch.backends.mha.set_fastpath_enabled(False)  # its fused attention has no counterpart in ONNX
    module.eval()
    with torch.no_grad():
        torch.onnx.export(module, tuple(inputs), str(path), input_names=names, output_names=outputs,
                          dynamo=exporter == "dynamo", opset_version=opset, verbose=False, **options)
    if exporter == "dynamo":
        name_axes(path, names, axes)


def name_axes(path: Any, names: Sequence[str], axes: Axes) -> None:
    """This exporter calls an axis as it likes (s77): inputs get the caller's names."""
    onnx: Any = importlib.import_module("onnx")
    model = onnx.load(path, load_external_data=False)
    of_input = dict(zip(names, axes))
    for value in model.graph.input:
        for axis, name in of_input.get(value.name, {}).items():
            dim = value.type.tensor_type.shape.dim[axis]
            if dim.dim_param:
                dim.dim_param = name
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")  # in the exporter's names; rnncc infers it
    del model.graph.value_info[:]
    onnx.save(model, path)


def from_torch(module: Any, example: Any, output: Any = None, *, axes: Optional[Axes] = None, exporter: str = "dynamo",
               opset: Optional[int] = None, outputs: Optional[Sequence[str]] = None, **compiling: Any) -> Module:
    """Compiles a PyTorch module.

        m = rnncc.from_torch(network, torch.randn(50, 1, 40), axes=[{0: "T"}], dims={"T": (1, 50, 400)})

    example: its input, or a tuple of several; they become x0, x1, ... axes: for each input, names of the axes that are
    known only at run time. outputs: names of what the module returns. The rest is for compile()."""
    absent = missing_package()
    if absent:
        raise ToolchainError(f"from_torch: expected the packages {', '.join(PACKAGES)}, found none called {absent}")
    inputs = example if isinstance(example, (tuple, list)) else (example,)
    named = axes if axes is not None else [{} for _ in inputs]
    if len(named) != len(inputs):
        raise ArgumentError(f"axes: expected one entry for each of {len(inputs)} inputs, found {len(named)}")
    with tempfile.TemporaryDirectory(prefix="rnncc-") as folder:
        path = Path(folder) / "model.onnx"
        export(module, inputs, named, path, exporter, opset, outputs)
        return compile_model(path, output, **compiling)
