# SPDX-License-Identifier: MIT
"""Arithmetic, reductions and products on every element type: the reference interpreter and the emitted kernels equal
NumPy, bit for bit except for NaN's payload and the sign of zero."""
import numpy
import pytest

from conftest import build_directory
from graphs.narrow_models import narrow_casts
from graphs.op_models import one_op
from graphs.type_models import cases, casts, functions, whole_tensors
from support.emitted import TARGETS, run_module, run_by
from support.merge import merged
from support.reference import Reference

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


# A module of all cases takes minutes to compile. Kernels of one type differ between targets only by clang's output, so
# each target gets a share of them.
SHARES = {"x86-64-v4": 0, "x86-64-v3": 1, "x86-64": 2, "aarch64-linux-gnu": 3}


def everything(target=None):
    parts, expected = [], {}
    for op, arrays, attributes, result in [*cases(), *whole_tensors()]:
        parts.append((op, *one_op(op, arrays, **attributes), result))
    for x, to, result in casts():
        parts.append((f"Cast to {to}", *one_op("Cast", [x], to=to), result))
    for x, attributes, result in narrow_casts():
        parts.append((f"Cast to {attributes}", *one_op("Cast", [x], **attributes), result))
    if target:
        parts = parts[SHARES[target]::len(SHARES)]
    for k, (_, model, _, result) in enumerate(parts):
        expected[f"p{k}_{model.outputs[0]}"] = result
    model, feeds = merged([(model, feeds) for _, model, feeds, _ in parts])
    return model, feeds, expected, [op for op, *_ in parts]


def are_flushed(got, want):
    """Within a run denormal f32 and f64 numbers count as zero."""
    tiny = numpy.finfo(want.dtype).tiny if want.dtype in ("f4", "f8") else 0
    return (numpy.abs(want) < tiny) & (numpy.abs(got) < tiny)


def check(got, expected, names):
    for (name, want), op in zip(expected.items(), names, strict=True):
        array = got[name]
        assert array.dtype == want.dtype and array.shape == want.shape, (op, name, array.dtype, want.dtype)
        wrong = ~((array == want) | ((array != array) & (want != want)) | are_flushed(array, want))
        assert not wrong.any(), f"{op} of {want.dtype} ({name}): {array[wrong][:8]} for {want[wrong][:8]}"


def test_the_reference_computes_as_numpy(tmp_path):
    model, feeds, expected, names = everything()
    reference = Reference(build_directory() / "tests" / "support" / "reference_run")
    check(reference.run(model, model.write(tmp_path), feeds), expected, names)


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_compute_as_numpy(compile, tmp_path, target):
    model, feeds, expected, names = everything(target)
    check(run_module(compile(model.write(tmp_path), f"--target={target}"), feeds, threads=(1, 2)), expected, names)


def test_aarch64_kernels_compute_as_numpy(aarch64_rnnrun, compile, tmp_path):
    model, feeds, expected, names = everything("aarch64-linux-gnu")
    module = compile(model.write(tmp_path), "--target=aarch64-linux-gnu")
    check(run_by(aarch64_rnnrun, module, feeds, expected, tmp_path), expected, names)


@pytest.mark.optimised_here
@pytest.mark.parametrize("target", TARGETS)
def test_functions_of_f64_keep_their_bounds(compile, tmp_path, target):
    """Errors are relative to the largest result: if terms cancel, the errors are those of the terms."""
    parts = list(functions())
    models = [one_op(op, arrays, **attributes) for op, arrays, attributes, _, _ in parts]
    model, feeds = merged(models)
    got = run_module(compile(model.write(tmp_path), f"--target={target}"), feeds, threads=(1, 2))
    for k, (op, _, _, want, ulps) in enumerate(parts):
        result = got[f"p{k}_{models[k][0].outputs[0]}"]
        scale = numpy.abs(want) if not op.startswith("Reduce") else numpy.abs(want).max()
        assert (numpy.abs(result - want) <= ulps * numpy.spacing(scale)).all(), f"{op}: {result} for {want}"
