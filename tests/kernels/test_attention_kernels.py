# SPDX-License-Identifier: MIT
"""Fused attention equals plain loops in double at every edge of its blocks, on every ISA, with the same bits on any number
of threads and for a query alone, whether elements of a row stand side by side or not, keys copied or not."""
import pytest

from support import kernel_builder

VARIANTS = {
    "v4": dict(VECTORS=4, ROWS=6, OUT_ROWS=6, KEYS=16, MASK=0),
    "v3_turned": dict(VECTORS=3, ROWS=8, OUT_ROWS=8, KEYS=7, MASK=3, BLIND_ZERO=1),
    "v2": dict(VECTORS=2, ROWS=6, OUT_ROWS=5, KEYS=24, MASK=2),
    "v1_by_key": dict(VECTORS=1, ROWS=8, OUT_ROWS=8, KEYS=16, MASK=1),
    "v2_band": dict(VECTORS=2, ROWS=6, OUT_ROWS=5, KEYS=16, BAND=1),
    "v1_band_by_key": dict(VECTORS=1, ROWS=4, OUT_ROWS=8, KEYS=7, MASK=1, BAND=1, BLIND_ZERO=1),
    "v2_copies": dict(VECTORS=2, ROWS=6, OUT_ROWS=6, KEYS=24, QUERY_BLOCKS=4, MASK=2),
    "v2_band_copies": dict(VECTORS=2, ROWS=6, OUT_ROWS=5, KEYS=16, QUERY_BLOCKS=3, BAND=1, BLIND_ZERO=1),
    "v3_band_turned": dict(VECTORS=3, ROWS=8, OUT_ROWS=8, KEYS=24, MASK=3, BAND=1),
}


def variant_source(name, knobs):
    return kernel_builder.template("attention", **knobs) + f"""
#include "attention_check.h"
extern const AttentionVariant variant_{name};
const AttentionVariant variant_{name} = {{.name = "{name}", .lanes = LANES, .vectors = VECTORS, .keys = KEYS,
  .query_blocks = QUERY_BLOCKS, .mask = MASK, .blind_zero = BLIND_ZERO, .band = BAND, .attention = attention}};
"""


def table_source(names):
    declared = "".join(f"extern const AttentionVariant variant_{name};\n" for name in names)
    rows = ", ".join(f"&variant_{name}" for name in names)
    return f'#include "attention_check.h"\n#include <stddef.h>\n{declared}' \
           f"const AttentionVariant *const attention_variants[] = {{{rows}, NULL}};\n"


@pytest.mark.parametrize("isa", kernel_builder.isas("sve256", "rvv256"))
def test_fused_attention_equals_plain_loops(isa, tmp_path):
    kernel_builder.emulator(isa)
    names = kernel_builder.share_of(list(VARIANTS), isa)
    sources = {"table.c": table_source(names), "tests/kernels/attention_check.c": None}
    sources |= {f"attention_{name}.c": variant_source(name, VARIANTS[name]) for name in names}
    done = kernel_builder.run(kernel_builder.build(tmp_path, isa, sources), isa)
    assert done.returncode == 0, done.stdout + done.stderr
