/* SPDX-License-Identifier: MIT */
/*
 * One direction of a recurrent layer over all its time steps, as recurrent_int8.c has it, bit for bit, with products by
 * matrices in registers (panel_matrices.h): up to 16 samples at once. What stands behind a state's bytes meets weights
 * of zero.
 *
 * A worker's blocks follow each other, and between the steps of one's product come the cells of the one before it, so
 * that vectors are computed while matrices are loaded and multiplied.
 */

/* Of the forms of recurrent_steps.c: none. */
enum { PANEL_PARTS = 1, HIDE = 0, HALVES = 0, DEPTH_BLOCK = 0, INPUT = 0, BY_TWO = 0 };

#include "panel_int8.h"
#include "panel_matrices.h"

enum { FORM = IN_MATRICES };

#include "parts/recurrent_cells.h"
#include "parts/recurrent_int8_rows.h"
#include "simd/matrices.h"

/* Samples first .. first + rows of one panel. Registers are set up for the largest block; one that has a sample less
 * multiplies the first one of the next block, too. There is one, as the last block is the largest. Another worker may
 * be writing it: nobody reads its sums. */
typedef struct Block {
  int64_t panel, first, rows;
  int32_t sums[MATRIX_ROWS * PRODUCT_VECTORS * LANES] __attribute__((aligned(64))); /* [samples][vectors][LANES] */
} Block;

/* Steps from .. to of the depth of a block's product. candidate: the second half of a GRU_BEFORE step. */
SIMD_FUNCTION void multiply(const Steps *s, matrices *m, const Block *b, int64_t from, int64_t to, bool candidate) {
  const int vectors = candidate ? UNIT_VECTORS : PRODUCT_VECTORS;
  const int8_t *weights = candidate ? s->candidate.elements : s->weights.elements;
  const int64_t k = from * MATRIX_BYTES;
  const MatrixRows rows = {.a = s->state + b->first * s->state_row + k, .ahead = MATRIX_BYTES, .row = s->state_row};
  matrices_multiply(m, 1, vectors, &rows, weights + (b->panel * s->depth + k) * vectors * LANES, vectors, to - from,
                    OF_BYTES);
}

SIMD_FUNCTION void finish(const Steps *s, int64_t step, const Block *b, int64_t row, bool candidate) {
  const int vectors = candidate ? UNIT_VECTORS : PRODUCT_VECTORS;
  finish_stored(s, step, b->panel, b->first + row, b->sums + row * vectors * LANES, candidate);
}

/* The product of a block, and the cells of the one before it, which may have no samples. */
SIMD_FUNCTION void block(const Steps *s, matrices *m, int64_t step, Block *b, const Block *before, bool candidate) {
  const int vectors = candidate ? UNIT_VECTORS : PRODUCT_VECTORS;
  int64_t k = 0, steps = depth_of(&s->layer, step) ? s->depth / MATRIX_BYTES : 0;
  matrices_zero_sums(m, vectors);
  for (int64_t row = 0; row < before->rows; row++) {
    int64_t next = k + (steps - k) / (before->rows - row);
    multiply(s, m, b, k, next, candidate);
    finish(s, step, before, row, candidate);
    k = next;
  }
  multiply(s, m, b, k, steps, candidate);
  matrices_store_sums(m, 1, vectors, b->sums, 0, vectors * LANES * (int64_t)sizeof(int32_t));
}

/* Sweeps this worker's panels, forwards on even steps and backwards on odd ones. The next run does it the other way
 * round, because a run may have a single step. */
SIMD_FUNCTION void sweep(const Steps *s, matrices *m, int64_t step, bool candidate) {
  const Layer *l = &s->layer;
  bool back = (step + l->turn) & 1;
  Block blocks[2], *before = &blocks[1];
  before->rows = 0;
  for (int64_t i = l->begin; i < l->end; i++) {
    for (int64_t j = l->block_begin; j < l->block_end; j++) {
      Block *b = before == blocks ? &blocks[1] : blocks;
      b->panel = back ? l->begin + l->end - 1 - i : i;
      b->first = block_at(l, j);
      b->rows = block_at(l, j + 1) - b->first;
      block(s, m, step, b, before, candidate);
      before = b;
    }
  }
  for (int64_t row = 0; row < before->rows; row++) finish(s, step, before, row, candidate);
}

/* Half of a step of GRU_BEFORE, a step of another cell. meet: others make part of the state. */
SIMD_FUNCTION void run_phase(const Steps *s, matrices *m, Team *team, bool meet, int64_t step, bool candidate) {
  const Layer *l = &s->layer;
  if (meet) team_barrier(team);
  if (l->begin == l->end) return;
  RowScale zero = {0};
  if (depth_of(l, step))
    quantise_state(s, candidate ? l->reset : l->state[step & 1]);
  else
    for (int64_t i = block_at(l, l->block_begin); i < block_at(l, l->block_end); i++) s->scales[i] = zero;
  sweep(s, m, step, candidate);
}

/* Blocks have one of two heights; registers are set up for the larger one, as it costs hundreds of cycles. */
static void run_steps(const Steps *s, Team *team, bool meet) {
  const Layer *l = &s->layer;
  matrices m;
  matrices_begin(&m, l->batch ? (int)ceil_div(l->batch, l->blocks) : 1);
  for (int64_t step = l->first; step < l->first + l->count; step++) {
    run_phase(s, &m, team, meet, step, false);
    if (CELL == CELL_GRU_BEFORE) run_phase(s, &m, team, meet, step, true);
  }
  matrices_end(&m);
}

#include "parts/recurrent_workers.h"

#include "parts/recurrent_workers_int8.h"

/* Pointers are those of all directions; `direction` picks one. lengths, initial_* and the outputs may be NULL, and so
 * may what the cell or the knobs do not use. batch_first is ONNX's layout = 1. gates: [T * B, or B *
 * T][directions][panels][GATE_VECTORS][LANES]. memory: directions * BUFFERS * batch * state_row_of() floats.
 * quantised: directions * slots * batch rows of int8_row(H) bytes; row_scales: as many of a RowScale. slots: the most
 * workers that share the samples, or the panels, if these are fewer. least, most: the range, if FIXED. */
static void recurrent_int8_matrices(Team *team, float *gates, const int8_t *weights, const float *scales,
                                    const int32_t *totals, const int8_t *candidate, const float *candidate_scales,
                                    const int32_t *candidate_totals, const float *after_bias, const float *peepholes,
                                    const Length *lengths, const float *initial_h, const float *initial_c, float *y,
                                    float *y_h, float *y_c, float *memory, uint8_t *quantised, float *row_scales,
                                    float least, float most, float clip, int64_t steps, int64_t batch, int64_t hidden,
                                    int64_t directions, int64_t direction, int64_t reverse, int64_t batch_first,
                                    int64_t slots, int64_t turn) {
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
  s.depth = round_up(hidden, MATRIX_BYTES);
  if (FIXED) s.range = fixed_range(least, most);
  take_weights(&s.weights, weights, scales, totals, from, s.depth, PRODUCT_VECTORS);
  if (CELL == CELL_GRU_BEFORE)
    take_weights(&s.candidate, candidate, candidate_scales, candidate_totals, from, s.depth, UNIT_VECTORS);
  if (CELL == CELL_GRU_AFTER) l->after_bias = after_bias + from * PANEL_UNITS;
  if (PEEPHOLES) l->peepholes = peepholes + from * 3 * PANEL_UNITS;
  if (y) l->y = y + direction * (batch_first ? 1 : batch) * hidden;
  if (l->begin < l->end) {
    int64_t row = (direction * slots + slot_of(l, team, directions, direction)) * batch;
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
