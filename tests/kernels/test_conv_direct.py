# SPDX-License-Identifier: MIT
"""Direct convolutions of integers are exact: every window, blocking and order, at every edge, on every ISA and for any
number of workers."""
import random

import pytest

from support import kernel_builder
from support.amount import some

# Cases that are always tested; random ones are added. Channels in lanes and single ones: (whole vectors, rest).
NAMED = [
    dict(name="pointwise", channels=(3, 0), kernels=(4, 0), size=(5, 9), window=(1, 1), columns=14),
    dict(name="pointwise_residual", channels=(2, 1), kernels=(3, 1), size=(7, 7), window=(1, 1), residual=1, n=2),
    dict(name="window_3x3", channels=(2, 0), kernels=(4, 0), size=(6, 25), window=(3, 3), pad=(1, 1, 1, 1), n=2),
    dict(name="stem", channels=(0, 3), kernels=(2, 0), size=(17, 31), window=(7, 7), stride=(2, 2), pad=(3, 3, 3, 3)),
    dict(name="one_channel", channels=(0, 1), kernels=(0, 3), size=(5, 5), window=(5, 5), pad=(2, 2, 2, 2)),
    dict(name="row_window", channels=(1, 0), kernels=(1, 2), size=(3, 17), window=(1, 7), pad=(0, 3, 0, 3)),
    dict(name="column_window", channels=(1, 0), kernels=(2, 0), size=(8, 8), window=(7, 1), pad=(3, 0, 3, 0)),
    dict(name="dilated", channels=(1, 2), kernels=(2, 0), size=(9, 19), window=(3, 3), dilation=(6, 6),
         pad=(6, 6, 6, 6)),
    dict(name="dilated_past_the_plane", channels=(1, 0), kernels=(1, 0), size=(4, 4), window=(3, 3), dilation=(9, 9),
         pad=(9, 9, 9, 9)),
    dict(name="pad_more_than_the_plane", channels=(1, 0), kernels=(1, 0), size=(2, 2), window=(2, 2), pad=(5, 4, 3, 6)),
    dict(name="stride_past_the_window", channels=(1, 0), kernels=(1, 0), size=(11, 14), window=(2, 2), stride=(3, 5)),
    dict(name="groups_of_vectors", channels=(6, 0), kernels=(6, 0), groups=3, size=(5, 6), window=(3, 3),
         pad=(1, 1, 1, 1), oc_vectors=2),
    dict(name="groups_across_oc_groups", channels=(6, 0), kernels=(3, 0), groups=3, size=(4, 5), window=(1, 1),
         oc_vectors=2),
    dict(name="small_groups", channels=(4, 0), kernels=(4, 0), groups="quarter", size=(5, 6), window=(3, 3), n=2,
         pad=(1, 1, 1, 1), oc_vectors=1),
    dict(name="odd_groups", channels=(1, 2), kernels=(1, 2), groups=2, size=(5, 6), window=(3, 3), pad=(1, 1, 1, 1),
         oc_vectors=1),
    dict(name="narrowing_groups", channels=(2, 2), kernels=(0, 6), groups=2, size=(5, 6), window=(1, 3), oc_vectors=2),
    dict(name="sequence", channels=(2, 0), kernels=(2, 0), size=(1, 40), window=(1, 3), dilation=(1, 4),
         pad=(0, 8, 0, 0)),
    dict(name="any_width", channels=(1, 2), kernels=(3, 0), size=(5, 29), window=(3, 4), pad=(1, 3, 1, 2), n=2, columns=8,
         stride=(1, 1), residual=1, any_width=1),
    dict(name="any_width_less_than_a_tile", channels=(1, 0), kernels=(2, 0), size=(4, 13), window=(2, 3), pad=(1, 4, 0, 4),
         dilation=(1, 4), columns=14, any_width=1, oc_vectors=1, in_pass=1),
    dict(name="passes", channels=(5, 1), kernels=(3, 0), size=(6, 6), window=(3, 3), pad=(1, 1, 1, 1), in_pass=2,
         residual=1, tile_chunk=3),
    dict(name="prologue", channels=(3, 2), kernels=(5, 0), size=(6, 9), window=(1, 1), prologue=1, tile_chunk=3, n=2),
    dict(name="prologue_in_one_chunk", channels=(2, 0), kernels=(2, 0), size=(2, 9), window=(1, 1), prologue=1, n=3),
    dict(name="narrow_prologue", channels=(0, 3), kernels=(1, 1), size=(1, 30), window=(1, 1), prologue=1,
         tile_chunk=2),
    dict(name="wide_blocks", channels=(5, 2), kernels=(5, 1), size=(4, 13), window=(3, 3), pad=(1, 1, 1, 1), n=2, columns=7,
         in_vectors=2, out_vectors=2, residual=1),
    dict(name="wide_blocks_behind_narrow_ones", channels=(0, 3), kernels=(4, 0), size=(5, 9), window=(2, 2), oc_vectors=1,
         out_vectors=2),
]
# Those whose rows have several tiles, edges, or a last one of its own, also with tiles that are alike in one call.
RUNS = ["pointwise", "pointwise_residual", "window_3x3", "stem", "row_window", "dilated", "dilated_past_the_plane",
        "pad_more_than_the_plane", "stride_past_the_window", "groups_of_vectors", "passes", "prologue", "wide_blocks"]
NAMED += [dict(case, name=f"{case['name']}_runs", runs=1, columns=4) for case in NAMED if case["name"] in RUNS]


def random_case(rng, index):
    window = (rng.randint(1, 4), rng.randint(1, 5))
    return dict(name=f"random_{index}", channels=(rng.randint(0, 3), rng.randint(0, 3)),
                kernels=(rng.randint(0, 4), rng.randint(0, 3)), size=(rng.randint(4, 8), rng.randint(5, 30)),
                window=window, stride=(rng.randint(1, 3), rng.randint(1, 3)), n=rng.randint(1, 2),
                dilation=(rng.randint(1, 2), rng.randint(1, 2)), pad=tuple(rng.randint(0, 3) for _ in range(4)),
                residual=rng.randint(0, 1), bias=rng.randint(0, 1), oc_vectors=rng.randint(1, 4),
                columns=rng.randint(1, 7), unroll=rng.choice([1, 2, 4, 16]), in_pass=rng.choice([1, 2, 100]),
                group_chunk=rng.choice([1, 2, 100]), tile_chunk=rng.choice([1, 3, 1000]), any_width=rng.randint(0, 1),
                in_vectors=rng.randint(1, 2), out_vectors=rng.randint(1, 2), runs=rng.randint(0, 1))


def out_extent(case, axis):
    pad = case.get("pad", (0, 0, 0, 0))
    reach = (case["window"][axis] - 1) * case.get("dilation", (1, 1))[axis] + 1
    return (case["size"][axis] + pad[axis] + pad[axis + 2] - reach) // case.get("stride", (1, 1))[axis] + 1


def variant_source(case, lanes):
    """The template with the case's knobs, and its row of the table. A plane under a 1x1 window is one row."""
    channels, kernels = (max(1, whole * lanes + rest) for whole, rest in (case["channels"], case["kernels"]))
    groups = channels * 4 // lanes if case.get("groups") == "quarter" else case.get("groups", 1)
    size, out = case["size"], (out_extent(case, 0), out_extent(case, 1))
    if out[0] < 1 or out[1] < 1:
        return None
    pad, stride, dilation = case.get("pad", (0, 0, 0, 0)), case.get("stride", (1, 1)), case.get("dilation", (1, 1))
    if case["window"] == (1, 1) and stride == (1, 1) and not any(pad):
        size, out = (1, size[0] * size[1]), (1, out[0] * out[1])
    in_block = min(case.get("in_vectors", 1) * lanes, channels)
    vectors = -(-kernels // lanes)
    oc_vectors = min(vectors, case.get("oc_vectors", 2))
    columns = case.get("columns", 6)
    tiles = -(-out[1] // columns)
    knobs = dict(WINDOW_H=case["window"][0], WINDOW_W=case["window"][1], STRIDE_H=stride[0], STRIDE_W=stride[1],
                 DILATION_H=dilation[0], DILATION_W=dilation[1], IN_H=size[0], IN_W=size[1], OUT_H=out[0],
                 OUT_W=out[1], PAD_TOP=pad[0], PAD_LEFT=pad[1], IN_BLOCK=in_block, CHANNEL_TAIL=channels % in_block,
                 OUT_VECTORS=case.get("out_vectors", 1), OC_VECTORS=oc_vectors, OC_TAIL=vectors % oc_vectors,
                 COLUMNS=columns, UNROLL=case.get("unroll", 2),
                 GROUPED=int(groups > 1), BIAS=case.get("bias", 1), RESIDUAL=case.get("residual", 0),
                 PROLOGUE=case.get("prologue", 0), ANY_WIDTH=case.get("any_width", 0),
                 RUNS=case.get("runs", 0) & ~case.get("any_width", 0),
                 BY_LANES=(oc_vectors + columns) % 2)
    text = kernel_builder.template("conv_direct", **knobs)
    for hook, body in (("epilogue", "vmax(x, vzero())"), ("prologue", "vabs(x)")):
        text = text.replace(f"vec {hook}(vec x) {{ return x; }}", f"vec {hook}(vec x) {{ return {body}; }}")
    name = case["name"]
    return text + f"""
#include "conv_direct_check.h"
extern const DirectVariant variant_{name};
const DirectVariant variant_{name} = {{.name = "{name}", .kernel = conv_direct, .lanes = LANES, .in_block = IN_BLOCK,
  .out_block = OUT_BLOCK, .oc_vectors = OC_VECTORS, .wide = WIDE, .bias = BIAS, .residual = RESIDUAL,
  .prologue = PROLOGUE,
  .n = {case.get("n", 1)}, .channels = {channels}, .kernels = {kernels}, .groups = {groups}, .in_h = IN_H,
  .in_w = IN_W, .out_h = OUT_H, .out_w = OUT_W, .window_h = WINDOW_H, .window_w = WINDOW_W, .stride_h = STRIDE_H,
  .stride_w = STRIDE_W, .dilation_h = DILATION_H, .dilation_w = DILATION_W, .top = PAD_TOP, .left = PAD_LEFT,
  .group_chunk = {case.get("group_chunk", 2)}, .tile_chunk = {min(case.get("tile_chunk", 100), tiles * out[0])},
  .pass = {case.get("in_pass", 100)}}};
"""


def check(cases, isa, directory, variant_source=variant_source):
    """variant_source: of a case and a number of lanes, the text that defines variant_NAME of conv_direct_check.h, or None."""
    kernel_builder.emulator(isa)
    sources = dict.fromkeys(["tests/kernels/conv_direct_check.c", "compiler/kernels/conv/direct_weights.c",
                             "compiler/kernels/conv_transposed/phases.c"])
    texts = {case["name"]: variant_source(case, kernel_builder.LANES[isa]) for case in cases}
    names = [name for name, text in texts.items() if text]
    declared = "".join(f"extern const DirectVariant variant_{name};\n" for name in names)
    rows = ", ".join(f"&variant_{name}" for name in names)
    sources["table.c"] = f'#include "conv_direct_check.h"\n#include <stddef.h>\n{declared}' \
                         f"const DirectVariant *const direct_variants[] = {{{rows}, NULL}};\n"
    sources |= {f"conv_{name}.c": texts[name] for name in names}
    done = kernel_builder.run(kernel_builder.build(directory, isa, sources), isa)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("isa", kernel_builder.isas("sve512", "rvv256"))
def test_every_window_is_exact(isa, tmp_path):
    check(kernel_builder.share_of(NAMED, isa), isa, tmp_path)


@pytest.mark.parametrize("isa", kernel_builder.isas("sve128", "rvv128"))
def test_random_shapes_and_blockings_are_exact(isa, tmp_path):
    rng = random.Random(5)
    cases = [random_case(rng, i) for i in (range(8) if isa == "neon" else some(range(30), 12))]
    check(kernel_builder.share_of(cases, isa) if isa in kernel_builder.SCALABLE else cases, isa, tmp_path)
