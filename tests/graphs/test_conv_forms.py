# SPDX-License-Identifier: MIT
"""With any schedule that --conv forces, convolutions of integers equal the reference to the bit, with any number of
threads."""

import numpy
import pytest

from conftest import build_directory
from support.convolutional import random_convolution, signs, whole
from support.emitted import TARGETS, assert_same, run_module
from support.machine import WIDEST
from support.merge import merged
from support.model_builder import Model
from support.module import Module
from support.reference import Reference

FORMS = ["plain", "plain,flat=1,tiles=3", "plain,flat=0,w=1,k=3,tiles=1", "direct", "direct,oc=1,px=28",
         "direct,oc=3,px=2,unroll=1", "direct,oc=4,px=5,pass=1,tiles=3",
         "direct,oc=2,px=1,pass=2,groups=1,tiles=2,unroll=16", "direct,oc=9999,px=9999,unroll=9999,pass=9999",
         "depthwise,px=3,by_blocks=0", "depthwise,px=9999,by_blocks=9999", "plain,k=3,w=2", "plain,k=0,w=9999",
         "plain,k=5,w=1,flat=1,tiles=2"]


@pytest.mark.parametrize("form", FORMS)
def test_forced_convolutions_equal_the_reference(compile, tmp_path, form):
    rng = numpy.random.default_rng(FORMS.index(form))
    model, feeds = merged([random_convolution(rng) for _ in range(12)])
    path = model.write(tmp_path)
    expected = Reference(build_directory() / "tests" / "support" / "reference_run").run(model, path, feeds)
    module = compile(path, f"--conv={form}", "--no-winograd", optimised=form == "direct")
    assert_same(run_module(module, feeds), expected)


@pytest.mark.parametrize("form", ["plain", "plain,flat=1,w=2,tiles=2"])
@pytest.mark.parametrize("target", TARGETS)
def test_plain_convolutions_of_any_extents_equal_the_reference(reference, compile, tmp_path, target, form):
    """Extents known at run time, far from those for which schedules are chosen; with a residual and an activation."""
    rng, parts = numpy.random.default_rng(11), []
    for number, (kernel, stride, dilation, pad, groups) in enumerate([
            ([3, 3], [1, 1], [1, 1], 1, 1), ([3, 3], [2, 2], [1, 1], 1, 1), ([1, 1], [2, 3], [1, 1], 0, 1),
            ([5, 3], [3, 2], [2, 3], 2, 2), ([3, 1], [2, 1], [1, 1], 0, 1), ([2, 4], [1, 1], [1, 1], 0, 3)]):
        model = Model()
        for axis in "HW":
            model.dim(f"{axis}{number}", 13, 20, 70)
        x = model.input("x", "f32", [2, 6, f"H{number}", f"W{number}"])
        weights = model.constant(signs(rng, 18, 6 // groups, *kernel))
        attributes = {"strides": stride, "dilations": dilation, "pads": [pad] * 4, "group": groups}
        other = model.node("Conv", [x, model.constant(signs(rng, 18, 6 // groups, *kernel))], **attributes)
        made = model.node("Conv", [x, weights, model.constant(whole(rng, 18))], **attributes)
        model.output(model.node("Relu", [model.node("Add", [made, other])]))
        parts.append((model, {}))
    model, _ = merged(parts)
    path = model.write(tmp_path)
    module = compile(path, f"--target={target}", f"--conv={form}", optimised=form == "plain" and target == WIDEST)
    for _ in range(2):
        feeds = {f"p{number}_x": whole(rng, 2, 6, *rng.integers(13, 71, 2)) for number in range(len(parts))}
        assert_same(run_module(module, feeds), reference.run(model, path, feeds))


def test_plain_leaves_no_tensor_blocked(compile, tmp_path):
    model, feeds = merged([random_convolution(numpy.random.default_rng(1)) for _ in range(12)])
    path = model.write(tmp_path)
    with Module(compile(path, "--conv=plain")) as module, module.context() as context:
        kernels = " ".join(entry.kernel for entry in context.profiled(on=True))
    assert "conv_plain" in kernels and "_blocked" not in kernels
    assert not any(f"conv_{name}" in kernels for name in ("direct", "winograd", "depthwise"))


@pytest.mark.parametrize("target, unroll, one_call", [("x86-64-v3", 8, True), ("x86-64-v3", 2, False), ("x86-64-v4", 8, False)])
def test_tiles_of_a_row_are_one_call_where_registers_are_few(rnncc, tmp_path, target, unroll, one_call):
    """But not in kernels of recorded schedules, whose turns are shorter."""
    model = Model("row")
    w = model.constant(signs(numpy.random.default_rng(1), 16, 8, 1, 1))
    model.output(model.node("Conv", [model.input("x", "f32", [1, 8, 6, 20]), w]))
    options = [f"--target={target}", f"--conv=direct,unroll={unroll}", "--emit=c", "-o", tmp_path / "c"]
    assert rnncc(model.write(tmp_path), *options).returncode == 0
    assert ("any_row" in (tmp_path / "c" / "network.c").read_text()) == one_call


@pytest.mark.parametrize("form", ["", "straight", "direct,", "direct,oc", "direct,oc=", "direct,oc=two", "direct,ox=2",
                                  "direct,oc=2,,px=3", "direct oc=2", "direct,oc=123456789", "direct,oc=2,oc=2",
                                  "winograd,px=2", "depthwise,oc=1", "plain,oc=1"])
def test_an_unknown_form_is_refused(rnncc, form):
    done = rnncc("m.json", f"--conv={form}")
    assert done.returncode == 2 and "--conv" in done.stderr


@pytest.mark.every_case
@pytest.mark.parametrize("form", ["winograd", "direct", "plain"])
def test_an_image_may_be_a_constant(compile, tmp_path, form):
    """By weights of the run: the image is laid out as the kernel reads it."""
    rng, model = numpy.random.default_rng(2), Model()
    image = model.constant(whole(rng, 1, 16, 12, 12))
    model.output(model.node("Conv", [image, model.input("w", "f32", [16, 16, 3, 3])], pads=[1, 1, 1, 1]))
    feeds = {"w": whole(rng, 16, 16, 3, 3)}
    path = model.write(tmp_path)
    expected = Reference(build_directory() / "tests" / "support" / "reference_run").run(model, path, feeds)
    got = run_module(compile(path, f"--conv={form}"), feeds, threads=(1, 3))
    numpy.testing.assert_allclose(got[model.outputs[0]], expected[model.outputs[0]], rtol=0, atol=0.1 if form == "winograd" else 0)
