# SPDX-License-Identifier: MIT
"""Winograd convolutions equal plain loops in double within the stated bound, for random extents, pads and blockings,
give the same bits for any number of threads, and touch no byte beyond their tensors, on every ISA."""
import random

import pytest

from support import kernel_builder
from support.amount import long_tests

# (tile, window): the choices of compiler/kernels/conv/winograd_plan.c
FORMS = [(4, 4, 3, 3), (6, 6, 3, 3), (2, 2, 3, 3), (2, 2, 5, 5), (1, 2, 1, 7), (2, 1, 7, 1), (1, 4, 1, 3),
         (4, 1, 3, 1), (1, 2, 1, 3), (2, 1, 3, 1), (1, 2, 1, 5), (2, 1, 5, 1)]
FORM_KNOBS = ("TILE_H", "TILE_W", "WINDOW_H", "WINDOW_W")

# The forms whose tiles hold whole windows of 2x2.
POOLED_FORMS = [form for form in FORMS if form[0] % 2 == form[1] % 2 == 0]

# (vectors of output channels in a group, maximum tiles of a part)
BLOCKINGS = [(2, 14), (2, 6), (4, 6), (1, 7), (3, 1), (4, 3), (2, 11)]


def random_knobs(draw, form):
    """Knobs of a kernel for random extents of a few tiles."""
    rows, columns = form[2:]
    top, bottom, left, right = (draw.randint(0, taps - 1) for taps in (rows, rows, columns, columns))
    height, width = draw.randint(rows, 17), draw.randint(columns, 17)
    vectors, tiles = draw.choice(BLOCKINGS)
    return dict(zip(FORM_KNOBS, form), IN_H=height, IN_W=width, OUT_H=height + top + bottom - rows + 1,
                OUT_W=width + left + right - columns + 1, PAD_TOP=top, PAD_LEFT=left, OC_VECTORS=vectors,
                OC_TAIL=draw.randint(0, vectors - 1), PART_TILES=tiles, BY_GROUPS=draw.randint(0, 1),
                BIAS=draw.randint(0, 1), RESIDUAL=draw.randint(0, 1), ANY_PLANE=draw.randint(0, 1))


def variants(count):
    draw = random.Random(5)
    least = {"smallest": dict(IN_H=1, IN_W=1, OUT_H=1, OUT_W=1, OC_VECTORS=1, PART_TILES=14),
             "one_row": dict(TILE_H=2, TILE_W=2, IN_H=1, IN_W=19, OUT_H=1, OUT_W=19, OC_VECTORS=2, PART_TILES=14,
                             BY_GROUPS=1),
             "whole_tiles": dict(IN_H=16, IN_W=8, OUT_H=16, OUT_W=8, OC_VECTORS=2, PART_TILES=7, RESIDUAL=1)}
    pooled = {f"pooled_{i}": random_knobs(draw, draw.choice(POOLED_FORMS)) | dict(POOL=2)
              for i in range(count // 4 + 1)}
    return least | pooled | {f"random_{i}": random_knobs(draw, FORMS[i % len(FORMS)]) for i in range(count)}


def variant_source(name, knobs):
    text = kernel_builder.template("conv_winograd", **knobs)
    identity, relu = "epilogue(vec x) { return x; }", "epilogue(vec x) { return vmax_bound(x, vzero()); }"
    assert identity in text
    return text.replace(identity, relu) + f"""
#include "conv_winograd_check.h"
extern const WinogradVariant variant_{name};
const WinogradVariant variant_{name} = {{.name = "{name}", .form = {{TILE_H, TILE_W, WINDOW_H, WINDOW_W}},
  .lanes = LANES, .oc_vectors = OC_VECTORS, .oc_tail = OC_TAIL, .in_h = IN_H, .in_w = IN_W, .out_h = OUT_H,
  .out_w = OUT_W, .pad_top = PAD_TOP, .pad_left = PAD_LEFT, .pool = POOL, .by_groups = BY_GROUPS, .bias = BIAS,
  .residual = RESIDUAL, .kernel = conv_winograd}};
"""


def table_source(names):
    declared = "".join(f"extern const WinogradVariant variant_{name};\n" for name in names)
    rows = ", ".join(f"&variant_{name}" for name in names)
    return f'#include "conv_winograd_check.h"\n#include <stddef.h>\n{declared}' \
           f"const WinogradVariant *const winograd_variants[] = {{{rows}, NULL}};\n"


@pytest.mark.parametrize("isa", kernel_builder.isas("sve256", "rvv128"))
def test_winograd_equals_plain_loops(isa, tmp_path):
    kernel_builder.emulator(isa)
    kernels = variants(5 if isa == "neon" else 2 * len(FORMS) if long_tests() else len(FORMS))
    if isa != "neon":  # which has few
        kernels = dict(kernel_builder.share_of(list(kernels.items()), isa))
    sources = {f"{name}.c": variant_source(name, knobs) for name, knobs in kernels.items()}
    sources |= {"table.c": table_source(kernels), "tests/kernels/conv_winograd_check.c": None,
                "compiler/kernels/conv/winograd_weights.c": None}
    program = kernel_builder.build(tmp_path, isa, sources)
    rounds, channels = (4, 9) if kernel_builder.is_emulated(isa) else (8, 40)
    done = kernel_builder.run(program, isa, rounds, channels)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
