# SPDX-License-Identifier: MIT
"""Transposed convolutions of blocked integers are exact: every window, stride, dilation, crop and blocking, at every edge, on
every ISA and for any number of workers."""
import math
import random

import pytest

from kernels.test_conv_direct import check
from support import kernel_builder
from support.amount import some

# Cases that are always tested; random ones are added. Channels in lanes and single ones: (whole vectors, rest).
NAMED = [
    dict(name="doubling", channels=(2, 0), kernels=(4, 0), size=(5, 15), window=(4, 4), stride=(2, 2), crop=(1, 1, 1, 1)),
    dict(name="without_overlap", channels=(2, 1), kernels=(3, 1), size=(4, 9), window=(2, 2), stride=(2, 2), n=2),
    dict(name="more_outputs_than_points", channels=(1, 0), kernels=(2, 0), size=(3, 5), window=(2, 1), stride=(3, 4),
         more=(1, 2)),
    dict(name="odd_window", channels=(1, 2), kernels=(2, 0), size=(6, 11), window=(3, 3), stride=(2, 2), crop=(1, 1, 1, 1),
         more=(1, 1), turn=2),
    dict(name="no_stride", channels=(2, 0), kernels=(2, 0), size=(7, 13), window=(3, 5), crop=(1, 2, 1, 2)),
    dict(name="sequence", channels=(2, 0), kernels=(2, 0), size=(1, 40), window=(1, 16), stride=(1, 8), crop=(0, 4, 0, 4)),
    dict(name="long_stride", channels=(1, 0), kernels=(0, 1), size=(1, 7), window=(1, 50), stride=(1, 20), columns=3),
    dict(name="dilated", channels=(1, 0), kernels=(1, 3), size=(5, 8), window=(3, 4), stride=(2, 3), dilation=(3, 2),
         crop=(2, 3, 1, 4)),
    dict(name="dilated_by_the_stride", channels=(1, 0), kernels=(2, 0), size=(5, 6), window=(3, 3), stride=(2, 4),
         dilation=(2, 6), crop=(0, 3, 1, 0)),
    dict(name="crop_past_the_window", channels=(1, 0), kernels=(1, 0), size=(6, 7), window=(2, 2), stride=(2, 3),
         crop=(5, 6, 3, 7)),
    dict(name="one_pixel", channels=(2, 0), kernels=(2, 0), size=(1, 1), window=(4, 4), stride=(1, 1)),
    dict(name="groups_of_vectors", channels=(6, 0), kernels=(6, 0), groups=3, size=(3, 6), window=(3, 3), stride=(2, 2)),
    dict(name="small_groups", channels=(4, 0), kernels=(4, 0), groups="quarter", size=(3, 6), window=(4, 4), stride=(2, 2),
         n=2, oc_vectors=1),
    dict(name="odd_groups", channels=(1, 2), kernels=(1, 2), groups=2, size=(4, 5), window=(3, 2), stride=(1, 2),
         oc_vectors=1),
    dict(name="depthwise", channels=(2, 3), kernels=(2, 3), groups="depthwise", size=(5, 12), window=(4, 4), stride=(2, 2),
         crop=(1, 1, 1, 1), oc_vectors=1, n=2),
    dict(name="any_width_depthwise", channels=(1, 1), kernels=(1, 1), groups="depthwise", size=(3, 17), window=(3, 3),
         stride=(2, 2), oc_vectors=1, any_width=1, columns=7),
    dict(name="any_width", channels=(1, 2), kernels=(3, 0), size=(4, 29), window=(3, 4), stride=(2, 2), crop=(1, 3, 1, 2),
         n=2, columns=8, any_width=1),
    dict(name="any_width_less_than_a_tile", channels=(1, 0), kernels=(2, 0), size=(4, 3), window=(2, 3), stride=(1, 2),
         columns=14, any_width=1, oc_vectors=1),
    dict(name="wide_blocks", channels=(5, 2), kernels=(5, 1), size=(4, 9), window=(4, 4), stride=(2, 2), crop=(1, 1, 1, 1),
         oc_vectors=1, in_vectors=2, out_vectors=2),
]


def random_case(rng, index):
    window, stride, dilation = ([rng.randint(1, most) for _ in "HW"] for most in (7, 4, 3))
    return dict(name=f"random_{index}", channels=(rng.randint(0, 3), rng.randint(0, 3)),
                kernels=(rng.randint(0, 4), rng.randint(0, 3)), size=(rng.randint(1, 7), rng.randint(1, 23)),
                window=window, stride=stride, dilation=dilation, crop=tuple(rng.randint(0, 4) for _ in range(4)),
                more=[rng.randint(0, each - 1) for each in stride], n=rng.randint(1, 2), bias=rng.randint(0, 1),
                oc_vectors=rng.randint(1, 4), columns=rng.randint(1, 7), unroll=rng.choice([1, 2, 4, 16]),
                group_chunk=rng.choice([1, 2, 100]), tile_chunk=rng.choice([1, 3, 1000]), turn=rng.choice([1, 2, 100]),
                any_width=rng.randint(0, 1), in_vectors=rng.randint(1, 2), out_vectors=rng.randint(1, 2))


def axis_knobs(case, axis):
    """As compiler/kernels/conv_transposed/phases.h has them, and the output's extent."""
    name, window, stride, dilation = "HW"[axis], *(case.get(key, (1, 1))[axis] for key in ("window", "stride", "dilation"))
    crop, size = case.get("crop", (0, 0, 0, 0)), case["size"][axis]
    common = math.gcd(stride, dilation)
    written = (size - 1) * stride + (window - 1) * dilation + 1 + case.get("more", (0, 0))[axis]
    knobs = dict(WINDOW=window, UP=stride, PERIOD=stride // common, DILATION=dilation // common, IN=size,
                 OUT=written - crop[axis] - crop[axis + 2], INVERSE=pow(dilation // common, -1, stride // common))
    return {f"{knob}_{name}": value for knob, value in knobs.items()}


def variant_source(case, lanes):
    """The template with the case's knobs, and its row of the table; None: of no output."""
    channels, kernels = (max(1, whole * lanes + rest) for whole, rest in (case["channels"], case["kernels"]))
    depthwise = case.get("groups") == "depthwise"
    groups = {"quarter": channels * 4 // lanes, "depthwise": channels}.get(case.get("groups"), case.get("groups", 1))
    crop, stride, dilation = case.get("crop", (0, 0, 0, 0)), case.get("stride", (1, 1)), case.get("dilation", (1, 1))
    axes = axis_knobs(case, 0) | axis_knobs(case, 1)
    if axes["OUT_H"] < 1 or axes["OUT_W"] < 1:
        return None
    in_block = lanes if depthwise else min(case.get("in_vectors", 1) * lanes, channels)
    vectors = -(-kernels // lanes)
    oc_vectors, columns = min(vectors, case.get("oc_vectors", 2)), case.get("columns", 6)
    knobs = dict(**axes, PAD_TOP=crop[0], PAD_LEFT=crop[1], IN_BLOCK=in_block,
                 CHANNEL_TAIL=0 if depthwise else channels % in_block, OUT_VECTORS=case.get("out_vectors", 1),
                 OC_VECTORS=oc_vectors, OC_TAIL=vectors % oc_vectors,
                 COLUMNS=columns, UNROLL=case.get("unroll", 2), GROUPED=int(groups > 1), DEPTHWISE=int(depthwise),
                 BIAS=case.get("bias", 1), ANY_WIDTH=case.get("any_width", 0),
                 BY_LANES=0 if depthwise else (oc_vectors + columns) % 2)
    text = kernel_builder.template("conv_transposed_blocked", **knobs)
    text = text.replace("vec epilogue(vec x) { return x; }", "vec epilogue(vec x) { return vmax(x, vzero()); }")
    name = case["name"]
    return text + f"""
#include "conv_direct_check.h"
static void run(const Team *team, const float *x, const float *w, const float *bias, const float *residual, float *y,
                const float *scale, const float *shift, float *scratch, int64_t n, int64_t x_image, int64_t residual_image,
                int64_t y_image, int64_t channels, int64_t kernels, int64_t group_channels, int64_t group_kernels,
                int64_t span, int64_t group_chunk, int64_t tile_chunk, int64_t pass, int64_t panels, int64_t slots,
                int64_t slot) {{
  conv_transposed_blocked(team, x, w, bias, y, n, x_image, y_image, channels, kernels, group_channels, group_kernels,
                          span, group_chunk, tile_chunk, {case.get("turn", 3)});
}}
extern const DirectVariant variant_{name};
const DirectVariant variant_{name} = {{.name = "{name}", .kernel = run, .transposed = true, .depthwise = DEPTHWISE,
  .lanes = LANES, .in_block = IN_BLOCK, .out_block = OUT_BLOCK, .oc_vectors = OC_VECTORS, .wide = WIDE, .bias = BIAS,
  .n = {case.get("n", 1)}, .channels = {channels}, .kernels = {kernels}, .groups = {groups}, .in_h = IN_H, .in_w = IN_W, .out_h = OUT_H,
  .out_w = OUT_W, .window_h = WINDOW_H, .window_w = WINDOW_W, .stride_h = UP_H, .stride_w = UP_W,
  .dilation_h = {dilation[0]}, .dilation_w = {dilation[1]}, .top = PAD_TOP, .left = PAD_LEFT,
  .group_chunk = {case.get("group_chunk", 2)}, .tile_chunk = {case.get("tile_chunk", 100)}}};
"""


@pytest.mark.parametrize("isa", kernel_builder.isas("sve512", "rvv256"))
def test_every_phase_is_exact(isa, tmp_path):
    check(kernel_builder.share_of(NAMED, isa), isa, tmp_path, variant_source)


@pytest.mark.parametrize("isa", kernel_builder.isas("sve128", "rvv128"))
def test_random_shapes_and_blockings_are_exact(isa, tmp_path):
    rng = random.Random(7)
    cases = [random_case(rng, i) for i in (range(8) if isa == "neon" else some(range(30), 12))]
    check(kernel_builder.share_of(cases, isa) if isa in kernel_builder.SCALABLE else cases, isa, tmp_path, variant_source)
