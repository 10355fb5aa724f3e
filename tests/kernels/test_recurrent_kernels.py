# SPDX-License-Identifier: MIT
"""Recurrent kernels equal plain loops in double, and give the same bits for any number of threads, on every ISA."""
import pytest

from support import kernel_builder
from support.amount import long_tests

RNN, GRU_AFTER, GRU_BEFORE, LSTM = range(4)

TANH_F = ("return vsigmoid(x); }", "return vtanh(x); }")  # RNN's f is tanh by default

VARIANTS = {
    "rnn": dict(CELL=RNN),
    "rnn_wide": dict(CELL=RNN, UNIT_VECTORS=4, PARTS=2, ROWS=4),
    "rnn_clip": dict(CELL=RNN, UNIT_VECTORS=2, PARTS=8, CLIP=1),
    "gru_after": dict(CELL=GRU_AFTER, ROWS=8),
    "gru_after_gates_first": dict(CELL=GRU_AFTER, ROWS=4, UNIT_VECTORS=2, CELLS_FIRST=1, CLIP=1),
    "gru_after_alone": dict(CELL=GRU_AFTER, ROWS=4, WORKERS=1, CLIP=1, PARTS=1),
    "gru_before": dict(CELL=GRU_BEFORE),
    "gru_before_wide": dict(CELL=GRU_BEFORE, UNIT_VECTORS=2, CLIP=1, ROWS=3, Length="int64_t"),
    "lstm": dict(CELL=LSTM),
    "lstm_narrow": dict(CELL=LSTM, ROWS=1, PARTS=2, Length="int64_t"),
    "lstm_peepholes": dict(CELL=LSTM, PEEPHOLES=1, CLIP=1, ROWS=3),
    "lstm_input_forget": dict(CELL=LSTM, INPUT_FORGET=1, PEEPHOLES=1, WORKERS=1, ROWS=4),
    "rnn_hide": dict(CELL=RNN, UNIT_VECTORS=2, ROWS=1, HIDE=1),
    "gru_after_hide": dict(CELL=GRU_AFTER, ROWS=1, HIDE=1, WORKERS=2),
    "lstm_hide": dict(CELL=LSTM, ROWS=1, HIDE=1),
    "lstm_wide_hide": dict(CELL=LSTM, UNIT_VECTORS=2, ROWS=1, PARTS=1, HIDE=1),
    "gru_after_wide": dict(CELL=GRU_AFTER, UNIT_VECTORS=2, ROWS=1, PARTS=2),
    "lstm_hide_input": dict(CELL=LSTM, ROWS=1, HIDE=1, INPUT=1),
    "rnn_input": dict(CELL=RNN, UNIT_VECTORS=4, ROWS=4, INPUT=1),
    "gru_after_input": dict(CELL=GRU_AFTER, ROWS=5, INPUT=1),
    "gru_before_input": dict(CELL=GRU_BEFORE, ROWS=3, INPUT=1, BATCH_PARTS=2),
    "rnn_samples": dict(CELL=RNN, ROWS=2, BATCH_PARTS=2, WORKERS=3),
    "gru_before_samples": dict(CELL=GRU_BEFORE, ROWS=2, BATCH_PARTS=2, DEPTH_BLOCK=24),
    "lstm_samples": dict(CELL=LSTM, ROWS=2, BATCH_PARTS=3),
    "lstm_parts": dict(CELL=LSTM, ROWS=6, PANEL_PARTS=2, CELLS_FIRST=1),
    "lstm_parts_blocks": dict(CELL=LSTM, ROWS=5, PANEL_PARTS=2, DEPTH_BLOCK=16, PEEPHOLES=1, CELLS_FIRST=1),
    "gru_before_parts_halves": dict(CELL=GRU_BEFORE, ROWS=3, PANEL_PARTS=2, HALVES=1, BATCH_PARTS=2),
    "rnn_parts_input": dict(CELL=RNN, UNIT_VECTORS=2, ROWS=4, PANEL_PARTS=2, INPUT=1),
    "lstm_blocks": dict(CELL=LSTM, ROWS=3, DEPTH_BLOCK=16),
    "rnn_halves": dict(CELL=RNN, ROWS=2, HALVES=1, BATCH_PARTS=2),
    "gru_after_halves": dict(CELL=GRU_AFTER, ROWS=4, HALVES=1, DEPTH_BLOCK=24),
    "gru_before_halves": dict(CELL=GRU_BEFORE, ROWS=3, HALVES=1),
    "lstm_halves": dict(CELL=LSTM, ROWS=3, HALVES=1, WORKERS=2, INPUT=1),
    "gru_after_blocks": dict(CELL=GRU_AFTER, ROWS=2, DEPTH_BLOCK=7),
}


def variant_source(name, knobs):
    text = kernel_builder.template("recurrent_steps", **knobs)
    if knobs["CELL"] == RNN:
        text = text.replace(*TANH_F, 1)
    return text + f"""
#include "recurrent_check.h"
extern const Variant variant_{name};
const Variant variant_{name} = {{.name = "{name}", .cell = CELL, .unit_vectors = UNIT_VECTORS, .panel_parts = PANEL_PARTS, .lanes = LANES,
  .length_bytes = sizeof(Length), .clip = CLIP, .peepholes = PEEPHOLES, .input_forget = INPUT_FORGET, .hide = HIDE, .halves = HALVES, .input = INPUT,
  .kernel = (RecurrentKernel *)recurrent_steps}};
"""


def gemm_source():
    return kernel_builder.template("gemm_packed", VECTORS=4, ROWS=3, DEPTH_BLOCK=16) + """
#include "recurrent_check.h"
void kernel_gemm_packed(const Team *team, const float *a, const float *b, const float *addend, float *c, float scale, float addend_scale,
                        int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_depth, int64_t addend_row,
                        int64_t c_row, int64_t batch_rank, const int64_t *batch_dims, const int64_t *a_batch,
                        const int64_t *b_batch) {
  gemm_packed(team, a, b, addend, c, scale, addend_scale, m, n, k, a_row, a_depth, addend_row, c_row, batch_rank, batch_dims, a_batch,
              b_batch, NULL);
}
"""


def table_source(names):
    declared = "".join(f"extern const Variant variant_{name};\n" for name in names)
    rows = ", ".join(f"&variant_{name}" for name in names)
    return f'#include "recurrent_check.h"\n#include <stddef.h>\n{declared}const Variant *const variants[] = {{{rows}, NULL}};\n'


@pytest.mark.parametrize("isa", kernel_builder.isas("sve256", "rvv256"))
def test_recurrent_kernels_equal_plain_loops(isa, tmp_path):
    kernel_builder.emulator(isa)
    names = kernel_builder.share_of(list(VARIANTS), isa)
    sources = {f"{name}.c": variant_source(name, VARIANTS[name]) for name in names}
    sources |= {"gemm.c": gemm_source(), "table.c": table_source(names)}
    sources |= {"tests/kernels/recurrent_check.c": None, "compiler/kernels/gemm/panels.c": None}
    program = kernel_builder.build(tmp_path, isa, sources)
    layers = (8, 40) if long_tests() else (2, 15)
    done = kernel_builder.run(program, isa, layers[not kernel_builder.is_emulated(isa)])
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
