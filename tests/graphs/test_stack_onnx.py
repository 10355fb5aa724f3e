# SPDX-License-Identifier: MIT
"""Stacked recurrent layers, run as a wavefront or one after the other, give the same bits, and ONNX Runtime's values.

All stacks are independent parts of one model, compiled once for each chunk size: compiling takes longer than all else.
"""
import math

import numpy as np
import pytest

from support.module import Module
from support.stacks import STACKS, feeds_of, model_of, random_stack

EPS = float(np.finfo(np.float32).eps)
SHAPES = [(1, 1), (7, 3), (33, 1), (33, 3)]
RANDOM = [random_stack(seed) for seed in range(4)]
# Variants of a layer may add in different orders, so the variant is fixed for all chunk sizes.
VARIANT = "--rnn=workers=1,batch_parts=1,hide=0,depth_block=0,input={},chunk={}"


def outputs_of(path, stacks, shapes, threads):
    """Outputs of a run for each shape, by one context."""
    with Module(path) as module, module.context(threads) as context:
        return [context.run(feeds_of(stacks, T, B)) for T, B in shapes]


def assert_same_bits(got, expected):
    for run, (one, other) in enumerate(zip(got, expected, strict=True)):
        for name in other:
            assert np.array_equal(one[name].view(np.uint32), other[name].view(np.uint32)), (run, name)


@pytest.fixture(scope="module")
def layer_by_layer(compile, tmp_path_factory):
    """Outputs of the runs of SHAPES without a wavefront."""
    path = compile(model_of(STACKS).write(tmp_path_factory.mktemp("stacks")), VARIANT.format("ahead", 0),
                   optimised=False)
    return outputs_of(path, STACKS, SHAPES, 1)


# Divisors of SHAPES' T and others, T itself, and more than T.
@pytest.mark.parametrize("chunk", [1, 3, 7, 100])
def test_a_wavefront_has_the_bits_of_layer_by_layer_on_any_number_of_threads(chunk, compile, layer_by_layer, tmp_path):
    path = compile(model_of(STACKS).write(tmp_path), VARIANT.format("ahead", chunk), optimised=False)
    for threads in (1, 2, 3, 5):
        assert_same_bits(outputs_of(path, STACKS, SHAPES, threads), layer_by_layer)


@pytest.mark.parametrize("stacks, target, product", [(STACKS, "x86-64", "ahead"), (STACKS, "native", "step"),
                                                     (RANDOM, "native", "ahead"), (RANDOM, "x86-64-v3", "ahead")],
                         ids=["plain C", "product with step", "random", "random AVX2"])
def test_a_wavefront_of_known_extents_has_the_bits_of_layer_by_layer(stacks, target, product, compile, tmp_path):
    T, B = 7, 3
    model = model_of(stacks, T, B).write(tmp_path)
    wavefront, by_layer = [compile(model, f"--target={target}", VARIANT.format(product, chunk),
                                   optimised=chunk and stacks is RANDOM and target == "native") for chunk in (3, 0)]
    assert_same_bits(outputs_of(wavefront, stacks, [(T, B)], 3), outputs_of(by_layer, stacks, [(T, B)], 1))


def test_layer_by_layer_is_onnx_runtimes_value(layer_by_layer):
    """Each layer adds the rounding errors of sums of K terms over T steps, and ONNX Runtime's own 1e-5. It at most doubles
    the errors of its input, because the weights of a gate's sums have random signs."""
    stacks = [stack for stack in STACKS if stack.states != "carried"]
    peer = model_of(stacks, layouts=False)
    for (T, B), got in zip(SHAPES, layer_by_layer, strict=True):
        limit = 15 * (4 * math.ceil(math.log2(80 * T)) * EPS + 1e-5)
        for name, array in peer.onnx_run(feeds_of(stacks, T, B, layouts=False)).items():
            value = got[name] if got[name].shape == array.shape else in_layout_0(got[name])
            assert np.abs(value - array).max() <= limit, (T, B, name)


def in_layout_0(y):
    """Y or a final state of layout = 1."""
    return y.transpose(1, 2, 0, 3) if y.ndim == 4 else y.swapaxes(0, 1)


def test_only_layers_that_read_each_others_steps_become_a_wavefront(rnncc, tmp_path):
    for stack in STACKS:
        done = rnncc("inspect", model_of([stack]).write(tmp_path), "--rnn=chunk=5")
        assert done.returncode == 0, done.stderr
        schedules = [line for line in done.stdout.splitlines() if "_i" in line and "h" in line and "_r" in line]
        assert schedules and all(("_w5" in line) == stack.wavefront for line in schedules), stack.name
