/* SPDX-License-Identifier: MIT */
/*
 * One direction of a recurrent layer over all its time steps, as recurrent_steps.c has it, with products of bf16 by
 * matrices in registers (panel_matrices.h): up to 16 samples at once, or 5 of three parts each. The input's part of the
 * gates, sums, the cell, its state and Y are f32. Who makes a piece of a hidden state stores it in bf16, too, as the
 * next step multiplies it.
 */

/* Numbers of bf16 that one of a state becomes: it is rounded, or the sum of three.
 * legal: 1 3 */
enum { ROW_PARTS = 1 };

/* Of the forms of recurrent_steps.c: none. */
enum { PANEL_PARTS = 1, HIDE = 0, HALVES = 0, DEPTH_BLOCK = 0, INPUT = 0, BY_TWO = 0 };

#include "panel_matrices.h"
#include "parts/recurrent_cells.h"
#include "simd/matrices.h"

typedef struct Steps {
  Layer layer;
  const uint16_t *weights, *candidate; /* [panels][depth / 2][vectors][LANES][2]; candidate: of GRU_BEFORE */
  uint16_t *state[2], *reset;          /* as the layer's, in bf16: [B][ROW_PARTS][state_row], zeros behind the units */
  int64_t state_row, depth;            /* depth: H rounded up to whole matrices */
  int height;                          /* samples of this worker's highest block */
} Steps;

/* ---- states ---- */

/* A sample's units of one panel. */
SIMD_FUNCTION void round_units(const Steps *s, uint16_t *to, const float *state, int64_t panel, int64_t sample) {
  const Layer *l = &s->layer;
#pragma clang loop unroll(full)
  for (int u = 0; u < UNIT_VECTORS; u++) {
    int64_t unit = panel * PANEL_UNITS + u * LANES;
    vec x = panel_load(state + sample * l->state_row + unit, l->hidden - unit);
    store_parts(to + sample * ROW_PARTS * s->state_row + unit, s->state_row, x, ROW_PARTS);
  }
}

/* What is multiplied behind the last panel's units. */
static void clear_rest(const Steps *s, uint16_t *state, int64_t sample) {
  for (int64_t unit = s->layer.panels * PANEL_UNITS; unit < s->depth; unit += LANES)
    store_parts(state + sample * ROW_PARTS * s->state_row + unit, s->state_row, vzero(), ROW_PARTS);
}

static void round_state(const Steps *s) {
  const Layer *l = &s->layer;
  for (int64_t sample = block_at(l, l->block_begin); sample < block_at(l, l->block_end); sample++) {
    for (int64_t panel = l->begin; panel < l->end; panel++) round_units(s, s->state[0], l->state[0], panel, sample);
    if (l->end < l->panels) continue;
    clear_rest(s, s->state[0], sample);
    clear_rest(s, s->state[1], sample);
    if (CELL == CELL_GRU_BEFORE) clear_rest(s, s->reset, sample);
  }
}

/* ---- products ---- */

SIMD_FUNCTION void finish_row(const Steps *s, int64_t step, int64_t panel, int64_t sample, const float *tile,
                              bool candidate) {
  const Layer *l = &s->layer;
  const int vectors = candidate ? UNIT_VECTORS : PRODUCT_VECTORS;
  PanelRow sums;
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) sums[v] = vload(tile + v * LANES);
  if (CELL == CELL_GRU_BEFORE && !candidate) {
    finish_reset(l, step, panel, sample, sums);
    round_units(s, s->reset, l->reset, panel, sample);
  } else {
    finish_sample(l, step, panel, sample, sums);
    round_units(s, s->state[~step & 1], l->state[~step & 1], panel, sample);
  }
}

/* The sums of samples first .. first + rows of one panel, [rows][ROW_PARTS][vectors][LANES], begin with the gates. */
SIMD_FUNCTION void start_sums(const Layer *l, float *tile, int64_t step, int64_t panel, int64_t first, int rows,
                              bool candidate) {
  const int vectors = candidate ? UNIT_VECTORS : PRODUCT_VECTORS, gate = candidate ? 2 * UNIT_VECTORS : 0;
  for (int m = 0; m < rows; m++) {
    const float *gates = gates_of(l, step, first + m) + panel * GATE_VECTORS * LANES;
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) vstore(tile + (m * vectors + v) * LANES, start_of(l, gates, panel, gate + v));
  }
  place_parts(tile, rows, vectors, ROW_PARTS);
}

enum { TILE_FLOATS = MATRIX_ROWS * PRODUCT_VECTORS * LANES };

/* Up to two blocks of samples, each in a tile as high as the worker's highest block, so that matrices are configured
 * once: one with a sample less has the sums of one before or behind it, too, which are of no use. */
typedef struct Blocks {
  int count;
  int64_t first[2]; /* samples */
  int rows[2];
  int64_t tile[2]; /* the first sample of the tile: of this worker, too */
} Blocks;

static Blocks blocks_from(const Steps *s, int64_t block) {
  const Layer *l = &s->layer;
  Blocks b = {.count = block + 1 < l->block_end ? 2 : 1};
  const int64_t last = block_at(l, l->block_end) - s->height;
  for (int t = 0; t < b.count; t++) {
    b.first[t] = block_at(l, block + t);
    b.rows[t] = (int)(block_at(l, block + t + 1) - b.first[t]);
    b.tile[t] = min_i64(b.first[t], last);
  }
  return b;
}

/* Adds the products with the panel to the sums of the blocks' tiles; of two tiles two vectors at once. */
SIMD_FUNCTION void multiply(const Steps *s, matrices *m, float *sums, int64_t step, int64_t panel, const Blocks *b,
                            int tiles, bool candidate) {
  const int vectors = candidate ? UNIT_VECTORS : PRODUCT_VECTORS, together = tiles > 1 && vectors > 2 ? 2 : vectors;
  const int64_t stride = vectors * LANES * (int64_t)sizeof(float), row = 2 * s->state_row;
  const uint16_t *h = (candidate ? s->reset : s->state[step & 1]) + b->tile[0] * ROW_PARTS * s->state_row;
  const uint16_t *weights = (candidate ? s->candidate : s->weights) + panel * s->depth * vectors * LANES;
  const int64_t tile = (b->tile[tiles - 1] - b->tile[0]) * ROW_PARTS * row;
  MatrixRows state = {.a = h, .tile = tile, .ahead = MATRIX_BYTES, .row = row};
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v += together) {
    const int count = v + together < vectors ? together : vectors - v;
    matrices_load_sums(m, tiles, count, sums + v * LANES, TILE_FLOATS, stride);
    matrices_multiply(m, tiles, count, &state, weights + v * MATRIX_DEPTH, vectors, s->depth / MATRIX_DEPTH, OF_BF16);
    matrices_store_sums(m, tiles, count, sums + v * LANES, TILE_FLOATS, stride);
  }
}

/* Where the block's own sums are in those of its tile. What else that has becomes zero. */
SIMD_FUNCTION float *own_sums(const Steps *s, float *tile, const Blocks *b, int t, int vectors) {
  const int64_t sample = (int64_t)ROW_PARTS * vectors * LANES, before = b->first[t] - b->tile[t];
  if (b->rows[t] < s->height)
    __builtin_memset(before ? tile : tile + b->rows[t] * sample, 0, (size_t)sample * sizeof *tile);
  return tile + before * sample;
}

/* One panel of these blocks, `tiles` of them. candidate: the second half of a GRU_BEFORE step. */
SIMD_FUNCTION void multiply_blocks(const Steps *s, matrices *m, int64_t step, int64_t panel, const Blocks *b, int tiles,
                                   bool candidate) {
  const int vectors = candidate ? UNIT_VECTORS : PRODUCT_VECTORS;
  _Alignas(64) float sums[2 * TILE_FLOATS];
  float *of_block[2];
#pragma clang loop unroll(full)
  for (int t = 0; t < tiles; t++) {
    of_block[t] = own_sums(s, sums + t * TILE_FLOATS, b, t, vectors);
    start_sums(&s->layer, of_block[t], step, panel, b->first[t], b->rows[t], candidate);
  }
  if (depth_of(&s->layer, step)) multiply(s, m, sums, step, panel, b, tiles, candidate);
  for (int t = 0; t < tiles; t++) {
    add_parts(of_block[t], b->rows[t], vectors, ROW_PARTS);
    for (int i = 0; i < b->rows[t]; i++)
      finish_row(s, step, panel, b->first[t] + i, of_block[t] + i * vectors * LANES, candidate);
  }
}

/* This worker's samples of one panel: two blocks read it once. */
SIMD_FUNCTION void samples(const Steps *s, matrices *m, int64_t step, int64_t panel, bool candidate) {
  const Layer *l = &s->layer;
  for (int64_t j = l->block_begin; j < l->block_end; j += 2) {
    const Blocks b = blocks_from(s, j);
    if (b.count == 2)
      multiply_blocks(s, m, step, panel, &b, 2, candidate);
    else
      multiply_blocks(s, m, step, panel, &b, 1, candidate);
  }
}

/* Sweeps this worker's panels, forwards on even steps and backwards on odd ones. The next run does it the other way
 * round, because a run may have a single step. */
SIMD_FUNCTION void sweep(const Steps *s, matrices *m, int64_t step, bool candidate) {
  const Layer *l = &s->layer;
  bool back = (step + l->turn) & 1;
  for (int64_t i = l->begin; i < l->end; i++) samples(s, m, step, back ? l->begin + l->end - 1 - i : i, candidate);
}

/* meet: others make part of the state. */
static void run_steps(const Steps *s, Team *team, bool meet) {
  const Layer *l = &s->layer;
  matrices m;
  matrices_begin(&m, s->height * ROW_PARTS);
  for (int64_t step = l->first; step < l->first + l->count; step++) {
    if (meet) team_barrier(team);
    sweep(s, &m, step, false);
    if (CELL != CELL_GRU_BEFORE) continue;
    if (meet) team_barrier(team);
    sweep(s, &m, step, true);
  }
  matrices_end(&m);
}

#include "parts/recurrent_workers.h"

/* All workers enter the barriers, which are for the whole team, if any direction's workers share its panels. */
static bool panels_are_shared(const Team *team, int64_t directions) {
  for (int64_t direction = 0; direction < directions; direction++)
    if (crew_of(team, directions, direction).unit_ways > 1) return true;
  return false;
}

/* Halves from one row of a state to the next: an odd number of lines, which keeps samples off each other's
 * cache sets. */
static int64_t rounded_row(int64_t units) { return round_up(units, 2 * MATRIX_DEPTH) + MATRIX_DEPTH; }

/* Pointers are those of all directions; `direction` picks one. lengths, initial_* and the outputs may be NULL, and so
 * may what the cell or the knobs do not use. batch_first is ONNX's layout = 1. gates: [T * B, or B *
 * T][directions][panels][GATE_VECTORS][LANES]. memory: directions * BUFFERS * batch * state_row_of() floats. rounded:
 * directions * 3 * batch * ROW_PARTS * rounded_row(panels * PANEL_UNITS) numbers of bf16. */
static void recurrent_bf16(Team *team, float *gates, const uint16_t *weights, const uint16_t *candidate,
                           const float *after_bias, const float *peepholes, const Length *lengths,
                           const float *initial_h, const float *initial_c, float *y, float *y_h, float *y_c,
                           float *memory, uint16_t *rounded, float clip, int64_t steps, int64_t batch, int64_t hidden,
                           int64_t directions, int64_t direction, int64_t reverse, int64_t batch_first, int64_t turn) {
  Steps s = {.layer = {.lengths = lengths,
                       .clip = clip,
                       .steps = steps,
                       .turn = turn,
                       .count = steps,
                       .batch = batch,
                       .hidden = hidden,
                       .reverse = reverse,
                       .from_zero = !initial_h,
                       .panels = ceil_div(hidden, PANEL_UNITS)},
             .depth = round_up(hidden, MATRIX_DEPTH)};
  Layer *l = &s.layer;
  take_share(l, team, directions, direction);
  l->state_row = state_row_of(l);
  take_memory(l, memory, direction);
  set_strides(l, directions, batch_first);
  int64_t from = direction * l->panels; /* panels of the directions before this one */
  l->gates = gates + from * GATE_VECTORS * LANES;
  s.weights = weights + from * s.depth * PRODUCT_VECTORS * LANES;
  if (CELL == CELL_GRU_BEFORE) s.candidate = candidate + from * s.depth * UNIT_VECTORS * LANES;
  if (CELL == CELL_GRU_AFTER) l->after_bias = after_bias + from * PANEL_UNITS;
  if (PEEPHOLES) l->peepholes = peepholes + from * 3 * PANEL_UNITS;
  if (y) l->y = y + direction * (batch_first ? 1 : batch) * hidden;
  s.state_row = rounded_row(l->panels * PANEL_UNITS);
  int64_t rows = batch * ROW_PARTS;
  s.state[0] = rounded + direction * 3 * rows * s.state_row;
  s.state[1] = s.state[0] + rows * s.state_row;
  s.reset = s.state[1] + rows * s.state_row;

  int64_t outer = direction * (batch_first ? 1 : batch) * hidden, outer_row = (batch_first ? directions : 1) * hidden;
  load_state(l, l->state[0], initial_h ? initial_h + outer : NULL, outer_row);
  if (CELL == CELL_LSTM) load_state(l, l->cell, initial_c ? initial_c + outer : NULL, outer_row);
  round_state(&s);
  s.height = 1;
  for (int64_t j = l->block_begin; j < l->block_end; j++)
    s.height = (int)max_i64(s.height, block_at(l, j + 1) - block_at(l, j));
  bool meet = panels_are_shared(team, directions);
  if (meet || l->begin < l->end) run_steps(&s, team, meet);
  store_state(l, l->state[steps & 1], y_h ? y_h + outer : NULL, outer_row);
  if (CELL == CELL_LSTM) store_state(l, l->cell, y_c ? y_c + outer : NULL, outer_row);
}
