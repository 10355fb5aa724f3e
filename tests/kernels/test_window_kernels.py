# SPDX-License-Identifier: MIT
"""Depthwise convolution and pooling of blocked tensors equal plain loops in double, on every ISA, over
random shapes: windows, strides, dilations and pads of any kind, tiles of any width, channels that fill no block, and
several images."""
import random

import pytest

from support import kernel_builder, machine
from support.amount import half, long_tests, some

KINDS = {"max": "WINDOW_MAX", "mean": "WINDOW_MEAN", "mean_with_padding": "WINDOW_MEAN_WITH_PADDING",
         "depthwise": "WINDOW_DEPTHWISE"}
VARIANTS_OF_A_KIND = 6


def random_shape(rng, pool):
    """Knobs and extents of one axis: a window that fits the padded input, which ceil_mode may exceed."""
    window, stride, dilation = rng.choice([1, 2, 3, 3, 5, 7]), rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2, 3])
    reach = (window - 1) * dilation + 1
    most = window - 1 if pool else reach
    begin, end = rng.randint(0, most), rng.randint(0, most)
    extent = max(1, reach - begin - end) + rng.randint(0, 23)
    slack = extent + begin + end - reach
    out = slack // stride + 1
    if pool and slack % stride and out * stride < extent + begin and rng.random() < 0.5:
        out += 1  # ceil_mode
    return dict(IN=extent, OUT=out, WINDOW=window, STRIDE=stride, DILATION=dilation, begin=begin, end=end)


def random_variant(rng, kind):
    pool = kind != "depthwise"
    axes = {"H": random_shape(rng, pool), "W": random_shape(rng, pool)}
    knobs = {f"{name}_{axis}": shape[name] for axis, shape in axes.items()
             for name in ("IN", "OUT", "WINDOW", "STRIDE", "DILATION")}
    knobs |= {"PAD_TOP": axes["H"]["begin"], "PAD_LEFT": axes["W"]["begin"],
              "COLUMNS": rng.choice([1, 2, 3, 4, 5, 9, 14])}
    if pool:
        knobs |= {"PAD_BOTTOM": axes["H"]["end"], "PAD_RIGHT": axes["W"]["end"], "KIND": list(KINDS).index(kind)}
    else:
        knobs |= {"BIAS": rng.randint(0, 1), "RESIDUAL": rng.randint(0, 1), "LOADS_AHEAD": rng.choice([0, 1, 5, 16]),
                  "READS_WEIGHTS": rng.randint(0, 1), "BY_BLOCKS": rng.randint(0, 1)}
    knobs["ANY_WIDTH"] = rng.randint(0, 1)
    return knobs, axes


def pair(axes, name):
    return f"{{{axes['H'][name]}, {axes['W'][name]}}}"


CALLS = {
    "pool": "pool_blocked(team, x, y, n, ceil_div(channels, LANES), x_image, y_image)",
    "depthwise": "conv_depthwise(team, x, w, bias, residual, y, n, channels, x_image, residual_image, y_image)",
}


def variant_source(name, kind, knobs, axes, n, channels):
    text = kernel_builder.template("conv_depthwise" if kind == "depthwise" else "pool_blocked", **knobs)
    text = text.replace("epilogue(vec x) { return x; }", "epilogue(vec x) { return vadd(x, x); }")
    fields = ", ".join(f".{field} = {pair(axes, knob)}" for field, knob in
                       [("in", "IN"), ("out", "OUT"), ("window", "WINDOW"), ("stride", "STRIDE"),
                        ("dilation", "DILATION"), ("pad_begin", "begin"), ("pad_end", "end")])
    return text + f"""
#include "window_check.h"
static void run(const Team *team, const float *x, const float *w, const float *bias, const float *residual, float *y,
                int64_t n, int64_t channels, int64_t x_image, int64_t residual_image, int64_t y_image) {{
  {CALLS.get(kind, CALLS["pool"])};
}}
extern const WindowVariant variant_{name};
const WindowVariant variant_{name} = {{.name = "{kind} {knobs}", .kind = {KINDS[kind]}, .lanes = LANES, .n = {n},
  .channels = {channels}, {fields}, .bias = {knobs.get("BIAS", 0)}, .residual = {knobs.get("RESIDUAL", 0)}, .run = run}};
"""


def random_sources(seed, kinds, count):
    rng, sources = random.Random(seed), {}
    for kind in kinds:
        for k in range(count):
            name = f"{kind}_{k}"
            sources[f"{name}.c"] = variant_source(name, kind, *random_variant(rng, kind), rng.randint(1, 3),
                                                  rng.choice([1, 3, 4, 16, 17, 33, 40]))
    names = [f"variant_{name[:-2]}" for name in sources]
    declared = "".join(f"extern const WindowVariant {name};\n" for name in names)
    sources["table.c"] = f'#include "window_check.h"\n#include <stddef.h>\n{declared}' \
        f"const WindowVariant *const window_variants[] = {{{', '.join('&' + name for name in names)}, NULL}};\n"
    return sources | {"tests/kernels/window_check.c": None}


@pytest.mark.parametrize("seed", some(range(2), 1))
@pytest.mark.parametrize("isa", kernel_builder.isas("sve128", "rvv256"))
def test_windows_equal_plain_loops(isa, seed, tmp_path):
    kernel_builder.emulator(isa)
    few = kernel_builder.is_emulated(isa) or isa != machine.OF_TARGET.get(machine.WIDEST) and not long_tests()
    kinds = kernel_builder.share_of(list(KINDS) * 2, isa) if isa in kernel_builder.SCALABLE else \
        half(list(KINDS), isa == "neon") if isa in ("plain", "neon") else KINDS
    sources = random_sources(seed, kinds, 3 if few else VARIANTS_OF_A_KIND)
    done = kernel_builder.run(kernel_builder.build(tmp_path, isa, sources), isa)
    assert done.returncode == 0, done.stdout + done.stderr
