# SPDX-License-Identifier: MIT
"""Attention, rotary positions, gates, causal convolutions and linear attention compute what ONNX's own implementation does:
by their kernels and by the reference."""
import numpy
import pytest
from onnx.reference import ReferenceEvaluator

from conftest import build_directory
from graphs.attention_models import ATTENTION, NEWEST, attention
from support.emitted import run_module
from support.merge import merged
from support.model_builder import Model
from support.module import Module, ModuleError
from support.reference import Reference

# Sums of at most 14 products of numbers below 4, weighed by softmax; each step of LinearAttention adds such sums to a
# state that it scales by less than 1.
BOUND = 2.0**-18
FAMILIES = {  # clang optimises the first, a small one
    "turns": [name for name in ATTENTION if "turned" in name],
    "convolutions": [name for name in ATTENTION if "conv" in name],
    "linear attention": [name for name in ATTENTION if "linear" in name],
    "attention": [name for name in ATTENTION if "turned" not in name and "linear" not in name and "conv" not in name],
}


def cases(family):
    return [ATTENTION[name](numpy.random.default_rng(list(name.encode()))) for name in FAMILIES[family]]


def onnx_run(model, feeds):
    model.opset = NEWEST
    return dict(zip(model.outputs, ReferenceEvaluator(model.onnx()).run(model.outputs, feeds)))


def alike(parts):
    """The parts in groups whose run-time extents agree."""
    groups = {}
    for model, feeds in parts:
        extents = {axis: extent for i in model.inputs for axis, extent in zip(i["shape"], feeds[i["name"]].shape)
                   if isinstance(axis, str)}
        groups.setdefault(tuple(sorted(extents.items())), []).append((model, feeds))
    return groups.values()


def assert_near(found, expected, by):
    for output, due in expected.items():
        assert found[output].shape == due.shape and found[output].dtype == due.dtype, (by, output)
        largest = max(1, abs(due[numpy.isfinite(due)]).max(initial=0))
        numpy.testing.assert_allclose(found[output], due, rtol=0, atol=BOUND * largest, err_msg=f"{by}: {output}")


@pytest.mark.every_case
@pytest.mark.parametrize("family", FAMILIES)
def test_attention_agrees_with_onnx(compile, tmp_path, family):
    reference = Reference(build_directory() / "tests" / "support" / "reference_run")
    for group in alike(cases(family)):
        model, feeds = merged(group)
        path = model.write(tmp_path)
        expected = {f"p{k}_{name}": due for k, part in enumerate(group) for name, due in onnx_run(*part).items()}
        assert_near(run_module(compile(path), feeds, threads=(1, 3)), expected, "module")
        if family != "linear attention":  # its steps are a loop, which the reference does not run
            assert_near(reference.run(model, path, feeds), expected, "reference")


@pytest.mark.parametrize("heads, options", [((4, 4), {}), ((4, 2), {}), ((4, 2), {"is_causal": 1}), ((4, 1), {"is_causal": 1})])
def test_attention_of_heads_that_share_keys_is_one_kernel(rnncc, tmp_path, heads, options):
    model, _ = attention(numpy.random.default_rng(0), packed=True, B=1, S=64, T=64, heads=heads, head=32, v_head=32, **options)
    done = rnncc(model.write(tmp_path), "--emit=c", "-o", tmp_path / "out", "--target=x86-64-v3", "--dump-after=fuse_attention")
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "FusedAttention(" in said and "Softmax(" not in said, said


def turned(numbers):
    rng, model = numpy.random.default_rng(3), Model()
    x, positions = model.input("x", "f32", [1, 2, 3, 8]), model.input("numbers", "i64", [1, 3])
    tables = [model.constant(rng.uniform(-1, 1, (16, 4)).astype("f")) for _ in range(2)]
    model.output(model.node("RotaryEmbedding", [x, *tables, positions]))
    return model, {"x": rng.uniform(-1, 1, (1, 2, 3, 8)).astype("f"), "numbers": numpy.array([numbers])}


def written(numbers):
    model = Model()
    past, block, first = model.input("past", "f32", [2, 8, 3]), model.input("block", "f32", [2, 2, 3]), model.input("numbers", "i64", [2])
    model.output(model.node("TensorScatter", [past, block, first], axis=1))
    return model, {"past": numpy.zeros((2, 8, 3), "f"), "block": numpy.ones((2, 2, 3), "f"), "numbers": numpy.array(numbers)}


def of_lengths(numbers, causal=0):
    rng, model = numpy.random.default_rng(4), Model()
    shapes = {"q": (2, 2, 3, 4), "k": (2, 2, 6, 4), "v": (2, 2, 6, 4)}
    inputs = [model.input(name, "f32", shape) for name, shape in shapes.items()]
    model.output(model.node("Attention", [*inputs, None, None, None, model.input("numbers", "i64", [2])], is_causal=causal))
    return model, {**{name: rng.uniform(-1, 1, shape).astype("f") for name, shape in shapes.items()}, "numbers": numpy.array(numbers)}


@pytest.mark.every_case
@pytest.mark.parametrize("build, good, bad", [
    (turned, [0, 15, 2], [[0, -1, 2], [0, 16, 2]]), (written, [0, 6], [[-1, 0], [0, 7]]),
    (of_lengths, [0, 6], [[-1, 2], [3, 7]]), (lambda numbers: of_lengths(numbers, 1), [1, 6], [[-1, 2], [3, 99]])])
def test_positions_and_lengths_are_counted_from_the_start(compile, tmp_path, build, good, bad):
    """Of ONNX Runtime's kernels, too, none counts them from the end, as Gather does."""
    model, feeds = build(good)
    model.opset = NEWEST
    with Module(compile(model.write(tmp_path))) as module, module.context(2) as context:
        got, expected = context.run(feeds), onnx_run(model, feeds)
        for name in model.outputs:
            numpy.testing.assert_allclose(got[name], expected[name], rtol=0, atol=1e-5)
        for numbers in bad:
            with pytest.raises(ModuleError) as refused:
                context.run(build(numbers)[1])
            assert refused.value.status == "value"
