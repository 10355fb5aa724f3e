/* SPDX-License-Identifier: MIT */
/*
 * One direction of a recurrent layer over all its time steps, as recurrent_steps.c has it, with products of integers:
 * each step quantises the hidden state of a sample by its own range, or by the one that is given, to u8, the recurrent
 * weights are s8 with a scale for each column, sums are i32 (panel_int8.h). The input's part of the gates, the cell,
 * its state and Y are f32.
 *
 * A worker quantises the whole state of its samples for itself, behind the one barrier of a step: that is H elements a
 * sample beside the H * 4H / P weights that it multiplies, and it needs neither a second barrier nor the range of what
 * others have made. A range that is given saves one of two passes over it; [-1, 1], which LSTM and GRU never leave,
 * would double the error where the state stays within half of it.
 */

/* Partial sums of a block of one sample.
 * legal: 1 2 4 8 */
enum { PARTS = 2 };

/* How products are made: DOT_ANY, DOT_PAIRS or DOT_SIGNS of int8.h, by what is known of the weights, or IN_TILES.
 * legal: 0 1 2 3 */
enum { FORM = 0 };

/* Of the forms of recurrent_steps.c: none. */
enum { PANEL_PARTS = 1, HIDE = 0, HALVES = 0, DEPTH_BLOCK = 0, INPUT = 0 };

#include "panel_int8.h"

/* Blocks begin with even samples. */
enum { BY_TWO = FORM == IN_TILES };

#include "parts/recurrent_cells.h"
#include "parts/recurrent_int8_rows.h"

/* ---- products ---- */

/* A block's cells, one sample after the other, for all heights of blocks. */
static void finish_rows(const Steps *s, int64_t step, int64_t panel, int64_t first, int rows, const int32_t *tile,
                        bool candidate) {
  int vectors = candidate ? UNIT_VECTORS : PRODUCT_VECTORS;
  for (int m = 0; m < rows; m++) finish_stored(s, step, panel, first + m, tile + m * vectors * LANES, candidate);
}

/* Samples first .. first + rows of one panel. candidate: the second half of a GRU_BEFORE step. */
SIMD_FUNCTION void block(const Steps *s, int64_t step, int64_t panel, int64_t first, int rows, bool candidate) {
  const int vectors = candidate ? UNIT_VECTORS : PRODUCT_VECTORS;
  const int8_t *weights =
      (candidate ? s->candidate.elements : s->weights.elements) + panel * s->depth * vectors * LANES;
  const uint8_t *h = s->state + first * s->state_row;
  int64_t depth = depth_of(&s->layer, step) ? s->depth : 0;
  PanelSums sums[PANEL_ROWS];
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) sums[m][v] = vint_zero();
  }
  if (rows == 1) {
    int8_multiply_split(sums[0], PARTS, vectors, h, weights, depth, FORM);
    finish_row(s, step, panel, first, sums[0], candidate);
  } else {
    int8_multiply(sums, rows, vectors, h, s->state_row, weights, depth, FORM);
    _Alignas(64) int32_t tile[ROWS * PRODUCT_VECTORS * LANES];
#pragma clang loop unroll(full)
    for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++) vint_store(tile + (m * vectors + v) * LANES, sums[m][v]);
    }
    finish_rows(s, step, panel, first, rows, tile, candidate);
  }
}

SIMD_FUNCTION void block_of_rows(const Steps *s, int64_t step, int64_t panel, int64_t first, int64_t rows,
                                 bool candidate) {
  if (MIN_ROWS <= 1 && 1 <= ROWS && rows == 1) block(s, step, panel, first, 1, candidate);
  if (MIN_ROWS <= 2 && 2 <= ROWS && rows == 2) block(s, step, panel, first, 2, candidate);
  if (MIN_ROWS <= 3 && 3 <= ROWS && rows == 3) block(s, step, panel, first, 3, candidate);
  if (MIN_ROWS <= 4 && 4 <= ROWS && rows == 4) block(s, step, panel, first, 4, candidate);
  if (MIN_ROWS <= 5 && 5 <= ROWS && rows == 5) block(s, step, panel, first, 5, candidate);
  if (MIN_ROWS <= 6 && 6 <= ROWS && rows == 6) block(s, step, panel, first, 6, candidate);
  if (MIN_ROWS <= 7 && 7 <= ROWS && rows == 7) block(s, step, panel, first, 7, candidate);
  if (MIN_ROWS <= 8 && 8 <= ROWS && rows == 8) block(s, step, panel, first, 8, candidate);
}

/* Sweeps this worker's panels, forwards on even steps and backwards on odd ones. The next run does it the other way
 * round, because a run may have a single step. */
SIMD_FUNCTION void sweep(const Steps *s, int64_t step, bool candidate) {
  const Layer *l = &s->layer;
  bool back = (step + l->turn) & 1;
  for (int64_t i = l->begin; i < l->end; i++) {
    int64_t panel = back ? l->begin + l->end - 1 - i : i;
    for (int64_t j = l->block_begin; j < l->block_end; j++)
      block_of_rows(s, step, panel, block_at(l, j), block_at(l, j + 1) - block_at(l, j), candidate);
  }
}

/* Half of a step of GRU_BEFORE, a step of another cell. meet: others make part of the state. */
SIMD_FUNCTION void run_phase(const Steps *s, Team *team, bool meet, int64_t step, bool candidate) {
  const Layer *l = &s->layer;
  if (meet) team_barrier(team);
  if (l->begin == l->end) return;
  RowScale zero = {0};
  if (depth_of(l, step))
    quantise_state(s, candidate ? l->reset : l->state[step & 1]);
  else
    for (int64_t i = block_at(l, l->block_begin); i < block_at(l, l->block_end); i++) s->scales[i] = zero;
  sweep(s, step, candidate);
}

static void run_steps(const Steps *s, Team *team, bool meet) {
  for (int64_t step = s->layer.first; step < s->layer.first + s->layer.count; step++) {
    run_phase(s, team, meet, step, false);
    if (CELL == CELL_GRU_BEFORE) run_phase(s, team, meet, step, true);
  }
}

#include "parts/recurrent_workers.h"

#include "parts/recurrent_workers_int8.h"

/* Pointers are those of all directions; `direction` picks one. lengths, initial_* and the outputs may be NULL, and so
 * may what the cell or the knobs do not use. batch_first is ONNX's layout = 1. gates: [T * B, or B *
 * T][directions][panels][GATE_VECTORS][LANES]. memory: directions * BUFFERS * batch * state_row_of() floats.
 * quantised: directions * slots * batch rows of int8_row(H) bytes, BY_TWO of an even batch; row_scales: as many of a
 * RowScale. slots: the most workers that share the samples, or the panels, if these are fewer. least, most: the range,
 * if FIXED. */
static void recurrent_int8(Team *team, float *gates, const int8_t *weights, const float *scales, const int32_t *totals,
                           const int8_t *candidate, const float *candidate_scales, const int32_t *candidate_totals,
                           const float *after_bias, const float *peepholes, const Length *lengths,
                           const float *initial_h, const float *initial_c, float *y, float *y_h, float *y_c,
                           float *memory, uint8_t *quantised, float *row_scales, float least, float most, float clip,
                           int64_t steps, int64_t batch, int64_t hidden, int64_t directions, int64_t direction,
                           int64_t reverse, int64_t batch_first, int64_t slots, int64_t turn) {
  Steps s = {.layer = {.lengths = lengths,
                       .clip = clip,
                       .steps = steps,
                       .turn = turn,
                       .count = steps,
                       .batch = batch,
                       .hidden = hidden,
                       .reverse = reverse,
                       .from_zero = !initial_h,
                       .panels = ceil_div(hidden, PANEL_UNITS)}};
  Layer *l = &s.layer;
  take_share(l, team, directions, direction);
  l->state_row = state_row_of(l);
  take_memory(l, memory, direction);
  set_strides(l, directions, batch_first);
  int64_t from = direction * l->panels; /* panels of the directions before this one */
  l->gates = gates + from * GATE_VECTORS * LANES;
  s.depth = round_up(hidden, BY_TWO ? TILE_DEPTH : DOT);
  if (FIXED) s.range = fixed_range(least, most);
  take_weights(&s.weights, weights, scales, totals, from, s.depth, PRODUCT_VECTORS);
  if (CELL == CELL_GRU_BEFORE)
    take_weights(&s.candidate, candidate, candidate_scales, candidate_totals, from, s.depth, UNIT_VECTORS);
  if (CELL == CELL_GRU_AFTER) l->after_bias = after_bias + from * PANEL_UNITS;
  if (PEEPHOLES) l->peepholes = peepholes + from * 3 * PANEL_UNITS;
  if (y) l->y = y + direction * (batch_first ? 1 : batch) * hidden;
  if (l->begin < l->end) {
    int64_t rows = BY_TWO ? round_up(batch, 2) : batch;
    int64_t row = (direction * slots + slot_of(l, team, directions, direction)) * rows;
    s.state_row = int8_row(hidden);
    s.state = quantised + row * s.state_row;
    s.scales = (RowScale *)row_scales + row;
  }

  int64_t outer = direction * (batch_first ? 1 : batch) * hidden, outer_row = (batch_first ? directions : 1) * hidden;
  load_state(l, l->state[0], initial_h ? initial_h + outer : NULL, outer_row);
  if (CELL == CELL_LSTM) load_state(l, l->cell, initial_c ? initial_c + outer : NULL, outer_row);
  bool meet = panels_are_shared(team, directions);
  if (meet || l->begin < l->end) run_steps(&s, team, meet);
  store_state(l, l->state[steps & 1], y_h ? y_h + outer : NULL, outer_row);
  if (CELL == CELL_LSTM) store_state(l, l->cell, y_c ? y_c + outer : NULL, outer_row);
}
