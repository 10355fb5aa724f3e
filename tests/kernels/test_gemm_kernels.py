# SPDX-License-Identifier: MIT
"""Matrix products equal plain loops in double at every edge of their blocking, on every ISA; no extent is too small."""
import pytest

from support import kernel_builder

VARIANTS = {
    "v4": dict(VECTORS=4, ROWS=6, GROUP=4, DEPTH_BLOCK=16, ADDEND=1),
    "v4_few_registers": dict(VECTORS=4, ROWS=2, GROUP=2, DEPTH_BLOCK=64, ADDEND=0),
    "v3": dict(VECTORS=3, ROWS=8, GROUP=1, DEPTH_BLOCK=16, ROW_BLOCKS=2, ADDEND=1, SCALED=1),
    "v2": dict(VECTORS=2, ROWS=6, GROUP=4, DEPTH_BLOCK=1024, ADDEND=0, SCALED=1),
    "one_row": dict(VECTORS=16, ROWS=1, GROUP=1, DEPTH_BLOCK=1024, ADDEND=1),
    "one_row_few_registers": dict(VECTORS=7, ROWS=1, GROUP=1, DEPTH_BLOCK=16, ADDEND=0),
    "first_crew": dict(VECTORS=2, ROWS=6, GROUP=1, DEPTH_BLOCK=1024, CREWS=2, CREW=0, ADDEND=1),
    "second_crew": dict(VECTORS=2, ROWS=6, GROUP=1, DEPTH_BLOCK=1024, CREWS=2, CREW=1, ADDEND=1),
    "v1": dict(VECTORS=1, ROWS=8, GROUP=8, DEPTH_BLOCK=16, ROW_BLOCKS=1, ADDEND=1),
}


def variant_sources(name, knobs):
    pack = kernel_builder.template("pack_panels", VECTORS=knobs["VECTORS"], UNIT_VECTORS=knobs["VECTORS"])
    gemm = kernel_builder.template("gemm_packed", **knobs) + f"""
#include "gemm_check.h"
PackKernel pack_{name};
extern const GemmVariant variant_{name};
const GemmVariant variant_{name} = {{.name = "{name}", .lanes = LANES, .vectors = VECTORS, .scaled = SCALED,
  .addend = ADDEND, .crews = CREWS, .crew = CREW, .gemm = gemm_packed, .pack = pack_{name}}};
"""
    return {f"pack_{name}.c": pack.replace("static void pack_panels(", f"void pack_{name}("), f"gemm_{name}.c": gemm}


def table_source(names):
    declared = "".join(f"extern const GemmVariant variant_{name};\n" for name in names)
    rows = ", ".join(f"&variant_{name}" for name in names)
    return f'#include "gemm_check.h"\n#include <stddef.h>\n{declared}' \
           f"const GemmVariant *const gemm_variants[] = {{{rows}, NULL}};\n"


@pytest.mark.parametrize("isa", kernel_builder.isas("sve512", "rvv128"))
def test_products_equal_plain_loops(isa, tmp_path):
    kernel_builder.emulator(isa)
    names = kernel_builder.share_of(list(VARIANTS), isa)
    sources = {"table.c": table_source(names), "tests/kernels/gemm_check.c": None, "compiler/kernels/gemm/panels.c": None}
    for name in names:
        sources |= variant_sources(name, VARIANTS[name])
    program = kernel_builder.build(tmp_path, isa, sources)
    done = kernel_builder.run(program, isa)
    assert done.returncode == 0, done.stdout + done.stderr
