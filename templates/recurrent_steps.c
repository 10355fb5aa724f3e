/* SPDX-License-Identifier: MIT */
/*
 * One direction of a recurrent layer over all its time steps, after one matrix product has computed the input's part of
 * every gate (`gates`). In a step the product of the hidden state with the recurrent weights stays in registers for the
 * cell's update, because a panel has all gates of its units.
 *
 * A worker owns the same panels and samples through the whole sequence, so its weights stay in its cache (DeepCPU,
 * 5.3), and sweeps them in alternating direction: a step begins with the panels that the last one ended with. One
 * barrier ends a step, unless no two workers share a sample. The hidden state is double buffered, because a fast worker
 * writes the next state while others read the current one.
 *
 * Behaviour that ONNX does not define is ONNX Runtime's: beyond a sample's length Y is zero and the state is kept;
 * reverse starts at the sample's own end; the final state of a sample of length 0 is zero; clip bounds only inputs of
 * activations.
 */

/* A panel of weights comes in so many parts, [H][PART_VECTORS][LANES] each, and a part is multiplied by all samples
 * before the next: with few registers a part has more rows, so its loads feed more multiply-adds.
 * legal: 1 2 */
enum { PANEL_PARTS = 1 };
/* Partial sums of a block of one sample.
 * legal: 1 2 4 8 */
enum { PARTS = 4 };
/* 1: one sample, its sums in two halves, over the units that each of two workers makes. While a worker multiplies what
 * it made itself, the other's half arrives: the barrier costs next to nothing.
 * legal: 0 1 */
enum { HIDE = 0 };
/* 1: an odd number of panels, of which two workers share the middle one: the first multiplies half of its rows, the
 * second the rest, so that neither has a panel more than the other.
 * legal: 0 1 */
enum { HALVES = 0 };
/* Rows of R that all blocks of samples use, one after the other, before the next rows, which are prefetched meanwhile.
 * For weights that exceed a core's cache. 0: a block uses all rows at once.
 * legal: 0..1048576 */
enum { DEPTH_BLOCK = 0 };
/* 1: `gates` is not computed before: a panel's product with W comes right before its product with R. With one step,
 * where no later step would use a weight again, this reads all weights in one sweep.
 * legal: 0 1 */
enum { INPUT = 0 };
/* 1: LSTM, GRU_AFTER: a block's samples all come to their last activation before the first gets its hidden state: while
 * one waits for it, the CPU has the next ones at hand.
 * legal: 0 1 */
enum { CELLS_FIRST = 0 };
/* How the weights are stored: f32, or one of panel_narrow.h.
 * legal: 0 1 2 3 4 5 */
enum { WEIGHTS = 0 };
/* Steps of the depth that share a scale, of integers; 0: all of them.
 * legal: 0 8 16 32 64 128 256 512 1024 */
enum { SCALE_GROUP = 0 };

#include "panel_narrow.h"

/* Blocks begin with even samples. */
enum { BY_TWO = WEIGHTS == WEIGHTS_BF16_TILES && BF16_ROWS == 2 };

#include "parts/recurrent_cells.h"

/* ---- weights ---- */

static inline int64_t weights_of(int64_t depth, int64_t vectors) { return narrow_floats(WEIGHTS, depth, vectors); }

/* The scales of panel `index`; NULL: there are none. */
static inline const float *scales_of(const float *scales, int64_t index, int64_t depth, int64_t vectors) {
  if (!narrow_is_scaled(WEIGHTS)) return NULL;
  return scales + index * narrow_scale_floats(SCALE_GROUP, depth, vectors);
}

/* Those of rows from `from` on. */
static inline const float *later_scales(const float *scales, int64_t from, int64_t vectors) {
  return SCALE_GROUP ? scales + from / SCALE_GROUP * vectors * LANES : scales;
}

/* ---- products ---- */

/* One row against one panel, which are PARTS partial sums. */
SIMD_FUNCTION void multiply_row(vec *sums, int vectors, const float *a, const float *weights, const float *scales,
                                int64_t depth) {
  if (WEIGHTS == WEIGHTS_F32)
    panel_multiply_split(sums, PARTS, vectors, a, weights, depth);
  else
    narrow_multiply_split(WEIGHTS, SCALE_GROUP, sums, PARTS, vectors, a, weights, scales, depth);
}

SIMD_FUNCTION void multiply_rows(PanelRow *sums, int rows, int vectors, const float *a, int64_t a_row,
                                 const float *weights, const float *scales, int64_t depth) {
  if (WEIGHTS == WEIGHTS_F32)
    panel_multiply(sums, rows, vectors, a, a_row, 1, weights, depth);
  else
    narrow_multiply(WEIGHTS, SCALE_GROUP, sums, rows, vectors, a, a_row, 1, weights, scales, depth);
}

/* The initial sums of a product, vectors first .. first + vectors of the panel. */
SIMD_FUNCTION void start_sums(const Layer *l, vec *sums, const float *gates, int64_t panel, int first, int vectors) {
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) sums[v] = start_of(l, gates, panel, first + v);
}

SIMD_FUNCTION float *partial_of(const Layer *l, int64_t panel, int64_t sample) {
  return l->partial + (sample * l->panels + panel) * PRODUCT_VECTORS * LANES;
}

SIMD_FUNCTION void finish_product(const Layer *l, int64_t step, int64_t panel, int64_t sample, const vec *sums,
                                  bool candidate) {
  if (CELL == CELL_GRU_BEFORE && !candidate)
    finish_reset(l, step, panel, sample, sums);
  else
    finish_sample(l, step, panel, sample, sums);
}

/* The products of row m of a block. The tile has the sums of the panel's last part, `vectors` of them; those of the
 * parts before it, `waiting`, are in `partial`. */
SIMD_FUNCTION void gather_sums(const Layer *l, vec *sums, int64_t panel, int64_t first, int m, const float *tile,
                               int vectors, int waiting) {
  const float *partial = waiting ? partial_of(l, panel, first + m) : NULL;
#pragma clang loop unroll(full)
  for (int v = 0; v < PRODUCT_VECTORS; v++) {
    int own = v - waiting;
    sums[v] = v < waiting ? vload(partial + v * LANES)
                          : (own < vectors ? vload(tile + (m * vectors + own) * LANES) : vzero());
  }
}

/* The tile keeps what GRU_AFTER, whose panels have one part, makes of its sums. */
static void advance_rows(const Layer *l, int64_t step, int64_t panel, int64_t first, int rows, float *tile) {
  for (int m = 0; m < rows; m++) {
    PanelRow sums;
    gather_sums(l, sums, panel, first, m, tile, PART_VECTORS, PRODUCT_VECTORS - PART_VECTORS);
    advance_sample(l, step, panel, first + m, sums);
    if (CELL == CELL_GRU_AFTER) panel_store_sums(tile + m * PRODUCT_VECTORS * LANES, &sums, 1, PRODUCT_VECTORS);
  }
}

/* A block's cells, one sample after the other, for all heights of blocks. */
static void finish_rows(const Layer *l, int64_t step, int64_t panel, int64_t first, int rows, float *tile,
                        bool candidate) {
  int vectors = candidate ? UNIT_VECTORS : PART_VECTORS, waiting = candidate ? 0 : PRODUCT_VECTORS - PART_VECTORS;
  if (CELLS_FIRST) advance_rows(l, step, panel, first, rows, tile);
  for (int m = 0; m < rows; m++) {
    PanelRow sums;
    gather_sums(l, sums, panel, first, m, tile, vectors, waiting);
    if (CELLS_FIRST)
      end_sample(l, step, panel, first + m, sums, true);
    else
      finish_product(l, step, panel, first + m, sums, candidate);
  }
}

/* INPUT: the input's part of the gates of samples first .. first + rows. Without lengths all are at one time. */
SIMD_FUNCTION void multiply_input(const Layer *l, int64_t step, int64_t panel, int64_t first, int rows) {
  const float *x = l->x + time_of(l, step, l->steps) * l->x_time + first * l->x_sample;
  PanelRow sums[PANEL_ROWS];
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < GATE_VECTORS; v++)
      sums[m][v] = l->bias ? vload(l->bias + (panel * GATE_VECTORS + v) * LANES) : vzero();
  }
  const float *weights = l->input + panel * weights_of(l->inputs, GATE_VECTORS);
  const float *scales = scales_of(l->input_scales, panel, l->inputs, GATE_VECTORS);
  if (rows == 1)
    multiply_row(sums[0], GATE_VECTORS, x, weights, scales, l->inputs);
  else
    multiply_rows(sums, rows, GATE_VECTORS, x, l->x_sample, weights, scales, l->inputs);
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++)
    panel_store_sums(gates_of(l, step, first + m) + panel * GATE_VECTORS * LANES, &sums[m], 1, GATE_VECTORS);
}

SIMD_FUNCTION void start_block(const Layer *l, PanelRow *sums, int64_t step, int64_t panel, int part, int64_t first,
                               int rows, bool candidate) {
  const int vectors = candidate ? UNIT_VECTORS : PART_VECTORS;
  if (INPUT && !candidate && part == 0) multiply_input(l, step, panel, first, rows);
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
    const float *gates = gates_of(l, step, first + m) + panel * GATE_VECTORS * LANES;
    start_sums(l, sums[m], gates, panel, candidate ? 2 * UNIT_VECTORS : part * PART_VECTORS, vectors);
  }
}

/* HIDE: sums over the units of worker `half`, starting from zero. */
SIMD_FUNCTION void multiply_half(const Layer *l, vec *sums, int64_t step, int64_t panel, int half) {
  int64_t middle = min_i64(l->panels / 2 * PANEL_UNITS, l->hidden);
  int64_t from = half ? middle : 0, to = half ? l->hidden : middle;
  if (depth_of(l, step) == 0) to = from;
#pragma clang loop unroll(full)
  for (int v = 0; v < PRODUCT_VECTORS; v++) sums[v] = vzero();
  const float *weights =
      l->weights + panel * weights_of(l->hidden, PRODUCT_VECTORS) + weights_of(from, PRODUCT_VECTORS);
  const float *scales = scales_of(l->scales, panel, l->hidden, PRODUCT_VECTORS);
  multiply_row(sums, PRODUCT_VECTORS, l->state[step & 1] + from, weights, scales, to - from);
}

/* HIDE: the half of this worker's sums that needs no result of the other. */
SIMD_FUNCTION void sweep_own_half(const Layer *l, int64_t step) {
  for (int64_t panel = l->begin; panel < l->end; panel++) {
    PanelRow sums;
    multiply_half(l, sums, step, panel, l->half);
    panel_store_sums(l->partial + panel * PRODUCT_VECTORS * LANES, &sums, 1, PRODUCT_VECTORS);
  }
}

/* HIDE: start + (lower half + upper half), independent of which worker computed which half, and when. */
SIMD_FUNCTION void block_of_halves(const Layer *l, int64_t step, int64_t panel) {
  PanelRow sums[1], lower, upper;
  start_block(l, sums, step, panel, 0, 0, 1, false);
  const float *partial = l->partial + panel * PRODUCT_VECTORS * LANES;
  if (l->half == 0)
    panel_load_sums(&lower, partial, 1, PRODUCT_VECTORS);
  else
    multiply_half(l, lower, step, panel, 0);
  if (l->half == 1)
    panel_load_sums(&upper, partial, 1, PRODUCT_VECTORS);
  else
    multiply_half(l, upper, step, panel, 1);
#pragma clang loop unroll(full)
  for (int v = 0; v < PRODUCT_VECTORS; v++) sums[0][v] = vadd(sums[0][v], vadd(lower[v], upper[v]));
  finish_product(l, step, panel, 0, sums[0], false);
}

/* Rows from .. to of a part of a panel's weights, of `depth`; `ahead` is what will be read next, to be fetched
 * meanwhile. */
typedef struct Slice {
  const float *weights, *ahead, *scales;
  int part;
  int64_t from, to, depth;
} Slice;

SIMD_FUNCTION void continue_block(const Layer *l, PanelRow *sums, int64_t panel, int part, int64_t first, int rows,
                                  int vectors) {
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++)
    panel_load_sums(&sums[m], partial_of(l, panel, first + m) + part * PART_VECTORS * LANES, 1, vectors);
}

SIMD_FUNCTION void suspend_block(const Layer *l, const PanelRow *sums, int64_t panel, int part, int64_t first, int rows,
                                 int vectors) {
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++)
    panel_store_sums(partial_of(l, panel, first + m) + part * PART_VECTORS * LANES, &sums[m], 1, vectors);
}

SIMD_FUNCTION void multiply_slice(const Layer *l, PanelRow *sums, const Slice *slice, const float *h, int rows,
                                  int vectors) {
  const float *weights = slice->weights + weights_of(slice->from, vectors);
  const float *scales = later_scales(slice->scales, slice->from, vectors);
  int64_t depth = slice->to - slice->from;
  h += slice->from;
  if (rows == 1)
    multiply_row(sums[0], vectors, h, weights, scales, depth);
  else if (DEPTH_BLOCK > 0 && WEIGHTS == WEIGHTS_F32)
    panel_multiply_ahead(sums, rows, vectors, h, l->state_row, weights, depth, slice->ahead);
  else
    multiply_rows(sums, rows, vectors, h, l->state_row, weights, scales, depth);
}

/* Samples first .. first + rows of one panel. candidate: the second half of a GRU_BEFORE step. */
SIMD_FUNCTION void block(const Layer *l, int64_t step, int64_t panel, int64_t first, int rows, const Slice *slice,
                         bool candidate) {
  const int vectors = candidate ? UNIT_VECTORS : PART_VECTORS;
  const int part = PANEL_PARTS > 1 && !candidate ? slice->part : 0;
  const float *h = (candidate ? l->reset : l->state[step & 1]) + first * l->state_row;
  PanelRow sums[PANEL_ROWS];
  if ((HALVES || DEPTH_BLOCK > 0) && slice->from > 0)
    continue_block(l, sums, panel, part, first, rows, vectors);
  else
    start_block(l, sums, step, panel, part, first, rows, candidate);
  multiply_slice(l, sums, slice, h, rows, vectors);
  bool suspended = (HALVES || DEPTH_BLOCK > 0) && slice->to < slice->depth;
  if (suspended || (!candidate && part < PANEL_PARTS - 1)) {
    suspend_block(l, sums, panel, part, first, rows, vectors);
  } else if (rows == 1 && PANEL_PARTS == 1) {
    finish_product(l, step, panel, first, sums[0], candidate);
  } else {
    _Alignas(64) float tile[ROWS * PRODUCT_VECTORS * LANES];
    panel_store_sums(tile, sums, rows, vectors);
    finish_rows(l, step, panel, first, rows, tile, candidate);
  }
}

/* Blocks of several samples are functions of their own: compilers take minutes for all heights in one. */
SIMD_FUNCTION void either_block(const Layer *l, int64_t step, int64_t panel, int64_t first, int rows,
                                const Slice *slice, bool candidate) {
  if (CELL == CELL_GRU_BEFORE && candidate)
    block(l, step, panel, first, rows, slice, true);
  else
    block(l, step, panel, first, rows, slice, false);
}

static __attribute__((noinline)) void two_rows(const Layer *l, int64_t step, int64_t panel, int64_t first,
                                               const Slice *slice, bool candidate) {
  either_block(l, step, panel, first, 2, slice, candidate);
}
static __attribute__((noinline)) void three_rows(const Layer *l, int64_t step, int64_t panel, int64_t first,
                                                 const Slice *slice, bool candidate) {
  either_block(l, step, panel, first, 3, slice, candidate);
}
static __attribute__((noinline)) void four_rows(const Layer *l, int64_t step, int64_t panel, int64_t first,
                                                const Slice *slice, bool candidate) {
  either_block(l, step, panel, first, 4, slice, candidate);
}
static __attribute__((noinline)) void five_rows(const Layer *l, int64_t step, int64_t panel, int64_t first,
                                                const Slice *slice, bool candidate) {
  either_block(l, step, panel, first, 5, slice, candidate);
}
static __attribute__((noinline)) void six_rows(const Layer *l, int64_t step, int64_t panel, int64_t first,
                                               const Slice *slice, bool candidate) {
  either_block(l, step, panel, first, 6, slice, candidate);
}
static __attribute__((noinline)) void seven_rows(const Layer *l, int64_t step, int64_t panel, int64_t first,
                                                 const Slice *slice, bool candidate) {
  either_block(l, step, panel, first, 7, slice, candidate);
}
static __attribute__((noinline)) void eight_rows(const Layer *l, int64_t step, int64_t panel, int64_t first,
                                                 const Slice *slice, bool candidate) {
  either_block(l, step, panel, first, 8, slice, candidate);
}

SIMD_FUNCTION void block_of_rows(const Layer *l, int64_t step, int64_t panel, int64_t first, int64_t rows,
                                 const Slice *slice, bool candidate) {
  if (MIN_ROWS <= 1 && 1 <= ROWS && rows == 1) block(l, step, panel, first, 1, slice, candidate);
  if (MIN_ROWS <= 2 && 2 <= ROWS && rows == 2) two_rows(l, step, panel, first, slice, candidate);
  if (MIN_ROWS <= 3 && 3 <= ROWS && rows == 3) three_rows(l, step, panel, first, slice, candidate);
  if (MIN_ROWS <= 4 && 4 <= ROWS && rows == 4) four_rows(l, step, panel, first, slice, candidate);
  if (MIN_ROWS <= 5 && 5 <= ROWS && rows == 5) five_rows(l, step, panel, first, slice, candidate);
  if (MIN_ROWS <= 6 && 6 <= ROWS && rows == 6) six_rows(l, step, panel, first, slice, candidate);
  if (MIN_ROWS <= 7 && 7 <= ROWS && rows == 7) seven_rows(l, step, panel, first, slice, candidate);
  if (MIN_ROWS <= 8 && 8 <= ROWS && rows == 8) eight_rows(l, step, panel, first, slice, candidate);
}

/* Those of GRU and RNN are fewer, or not all needed at first; and where the depth is blocked, weights take most of the
 * time: there it takes as long as it gains. */
enum { FETCHES_GATES = CELL == CELL_LSTM && ROWS > 1 && DEPTH_BLOCK == 0 && !INPUT };

/* Fetches the gates of the block after `j`: a panel's are a whole row apart from sample to sample, which the CPU's own
 * prefetchers do not follow. After the last block comes the first one of panel `next`, in the next step if that is the
 * same. Not always true, and then of no use: a block's samples are taken to be at the time of its first, which those of
 * a reverse direction with lengths need not be, and the panel that two workers share comes at another place. */
SIMD_FUNCTION void fetch_gates(const Layer *l, int64_t step, int64_t panel, int64_t next, int64_t j) {
  bool last = j + 1 == l->block_end;
  if (last && next == panel && ++step == l->first + l->count) return;
  int64_t block = last ? l->block_begin : j + 1, first = block_at(l, block), count = block_at(l, block + 1) - first;
  const float *gates = gates_of(l, step, first) + (last ? next : panel) * GATE_VECTORS * LANES;
  for (; count-- > 0; gates += l->gates_sample) {
#pragma clang loop unroll(full)
    for (int i = 0; i < GATE_VECTORS * LANES; i += PANEL_LINE) vprefetch(gates + i);
  }
}

/* This worker's samples against rows from .. to of one part of a panel. `next` is the panel that follows. */
SIMD_FUNCTION void sweep_part(const Layer *l, int64_t step, int64_t panel, int part, int64_t next, int64_t from,
                              int64_t to, bool candidate) {
  const int vectors = candidate ? UNIT_VECTORS : PART_VECTORS, parts = candidate ? 1 : PANEL_PARTS;
  const float *weights = candidate ? l->candidate : l->weights;
  const int64_t part_floats = weights_of(l->hidden, vectors),
                after = part + 1 < parts ? panel * parts + part + 1 : next * parts;
  Slice slice = {.weights = weights + (panel * parts + part) * part_floats, .part = part, .from = from};
  const float *scales = candidate ? l->candidate_scales : l->scales;
  slice.scales = scales_of(scales, panel * parts + part, l->hidden, vectors);
  slice.depth = depth_of(l, step);
  do {
    slice.to = DEPTH_BLOCK > 0 ? min_i64(to, slice.from + DEPTH_BLOCK) : to;
    const float *ahead = slice.to == to ? weights + after * part_floats : slice.weights + weights_of(slice.to, vectors);
    for (int64_t j = l->block_begin; j < l->block_end; j++) {
      if (FETCHES_GATES && part == 0 && from == 0) fetch_gates(l, step, panel, next, j);
      slice.ahead = ahead + (j & 1) * (slice.to - slice.from) * panel_ahead_floats(vectors);
      block_of_rows(l, step, panel, block_at(l, j), block_at(l, j + 1) - block_at(l, j), &slice, candidate);
    }
    slice.from = slice.to;
  } while (slice.to < to);
}

/* All parts of one panel. */
SIMD_FUNCTION void sweep_rows(const Layer *l, int64_t step, int64_t panel, int64_t next, int64_t from, int64_t to,
                              bool candidate) {
  for (int part = 0; part < (candidate ? 1 : PANEL_PARTS); part++)
    sweep_part(l, step, panel, part, next, from, to, candidate);
}

/* The row at which the middle panel is cut: the first of a word, and of a scale's. */
static inline int64_t middle_row(const Layer *l, int64_t step) {
  const int64_t whole = SCALE_GROUP > 8 ? SCALE_GROUP : 8;
  return depth_of(l, step) / (2 * whole) * whole;
}

/* HALVES: half 0 or 1 of the middle panel's rows; the second continues the sums that the first has stored. */
SIMD_FUNCTION void sweep_middle(const Layer *l, int64_t step, int half, bool candidate) {
  int64_t panel = l->panels / 2, depth = depth_of(l, step), middle = middle_row(l, step);
  if (half == 0 && middle > 0) sweep_rows(l, step, panel, panel, 0, middle, candidate);
  if (half == 1) sweep_rows(l, step, panel, panel, middle, depth, candidate);
}

SIMD_FUNCTION void sweep_panel(const Layer *l, int64_t step, int64_t panel, int64_t next, bool candidate) {
  if (HIDE) {
    block_of_halves(l, step, panel);
  } else if (HALVES && panel == l->panels / 2) {
    if (l->half >= 0) return; /* share_sweep() does it */
    sweep_middle(l, step, 0, candidate);
    sweep_middle(l, step, 1, candidate);
  } else {
    sweep_rows(l, step, panel, next, 0, depth_of(l, step), candidate);
  }
}

/* Sweeps this worker's panels, forwards on even steps and backwards on odd ones. The next run does it the other way
 * round, because a run may have a single step. */
SIMD_FUNCTION void sweep(const Layer *l, int64_t step, bool candidate) {
  bool back = (step + l->turn) & 1;
  for (int64_t i = l->begin; i < l->end; i++) {
    int64_t panel = back ? l->begin + l->end - 1 - i : i;
    int64_t next = back ? max_i64(panel - 1, l->begin) : min_i64(panel + 1, l->end - 1);
    sweep_panel(l, step, panel, next, candidate);
  }
}

/* Which barriers a layer needs. All workers enter them, because a barrier is for the whole team. */
typedef struct Meetings {
  bool steps;  /* the next step needs what others make of this one */
  bool middle; /* HALVES: the second half of the middle panel needs the first */
} Meetings;

SIMD_FUNCTION void share_sweep(const Layer *l, Team *team, const Meetings *meetings, int64_t step, bool candidate) {
  if (meetings->steps) team_barrier(team);
  if (HALVES && l->half == 0) sweep_middle(l, step, 0, candidate);
  if (HALVES && meetings->middle) team_arrive(team);
  sweep(l, step, candidate);
  if (HALVES && meetings->middle) team_meet(team);
  if (HALVES && l->half == 1) sweep_middle(l, step, 1, candidate);
}

static void run_steps(const Layer *l, Team *team, const Meetings *meetings) {
  for (int64_t step = l->first; step < l->first + l->count; step++) {
    share_sweep(l, team, meetings, step, false);
    if (CELL == CELL_GRU_BEFORE) share_sweep(l, team, meetings, step, true);
  }
}

/* HIDE, two workers. */
static void run_pair(const Layer *l, Team *team) {
  for (int64_t step = l->first; step < l->first + l->count; step++) {
    team_arrive(team);
    sweep_own_half(l, step);
    team_meet(team);
    sweep(l, step, false);
  }
}

#include "parts/recurrent_workers.h"

static Meetings meetings_of(const Team *team, int64_t directions) {
  Meetings meetings = {0};
  for (int64_t direction = 0; direction < directions; direction++) {
    int64_t ways = crew_of(team, directions, direction).unit_ways;
    meetings.steps |= ways > 1;
    meetings.middle |= HALVES && ways == 2;
  }
  return meetings;
}

static void run_direction(Layer *l, Team *team, int64_t directions) {
  Meetings meetings = meetings_of(team, directions);
  if (HIDE && l->half >= 0)
    run_pair(l, team);
  else if (meetings.steps || l->begin < l->end)
    run_steps(l, team, &meetings);
}

/* Steps first .. first + count of one direction. Pointers are those of all directions; `direction` picks one. lengths,
 * initial_* and the outputs may be NULL, and so may what the cell or the knobs do not use. batch_first is ONNX's
 * layout = 1. gates: [T * B, or B * T][directions][panels][GATE_VECTORS][LANES] of the times of these steps, which for
 * a reverse direction with lengths are all; INPUT: of one step. memory: directions * BUFFERS * batch * state_row_of()
 * floats, which carry the states from one call to the next. partial: directions * batch * panels * PRODUCT_VECTORS *
 * LANES floats. */
static void recurrent_steps(Team *team, const float *x, const float *input, const float *bias, float *gates,
                            const float *weights, const float *candidate, const float *after_bias,
                            const float *peepholes, const Length *lengths, const float *initial_h,
                            const float *initial_c, float *y, float *y_h, float *y_c, float *memory, float *partial,
                            float clip, int64_t steps, int64_t first, int64_t count, int64_t batch, int64_t inputs,
                            int64_t hidden, int64_t directions, int64_t direction, int64_t reverse, int64_t batch_first,
                            int64_t turn, const float *input_scales, const float *scales,
                            const float *candidate_scales) {
  Layer l = {.x = x,
             .lengths = lengths,
             .clip = clip,
             .steps = steps,
             .first = first,
             .turn = turn,
             .count = min_i64(count, steps - first),
             .batch = batch,
             .inputs = inputs,
             .hidden = hidden,
             .reverse = reverse,
             .from_zero = !initial_h,
             .panels = ceil_div(hidden, PANEL_UNITS)};
  l.first_time = reverse ? steps - first - l.count : first;
  take_share(&l, team, directions, direction);
  l.state_row = state_row_of(&l);
  take_memory(&l, memory, direction);
  take_partial(&l, partial, direction);
  set_strides(&l, directions, batch_first);
  int64_t from = direction * l.panels; /* panels of the directions before this one */
  l.gates = gates + from * GATE_VECTORS * LANES;
  /* A panel's parts have its vectors in all. */
  l.weights = weights + from * weights_of(hidden, PRODUCT_VECTORS);
  l.scales = scales_of(scales, from, hidden, PRODUCT_VECTORS);
  if (INPUT) l.input = input + from * weights_of(inputs, GATE_VECTORS);
  if (INPUT) l.input_scales = scales_of(input_scales, from, inputs, GATE_VECTORS);
  if (INPUT && bias) l.bias = bias + from * GATE_VECTORS * LANES;
  if (CELL == CELL_GRU_BEFORE) l.candidate = candidate + from * weights_of(hidden, UNIT_VECTORS);
  if (CELL == CELL_GRU_BEFORE) l.candidate_scales = scales_of(candidate_scales, from, hidden, UNIT_VECTORS);
  if (CELL == CELL_GRU_AFTER) l.after_bias = after_bias + from * PANEL_UNITS;
  if (PEEPHOLES) l.peepholes = peepholes + from * 3 * PANEL_UNITS;
  if (y) l.y = y + direction * (batch_first ? 1 : batch) * hidden;

  int64_t outer = direction * (batch_first ? 1 : batch) * hidden, outer_row = (batch_first ? directions : 1) * hidden;
  if (first == 0) {
    load_state(&l, l.state[0], initial_h ? initial_h + outer : NULL, outer_row);
    if (CELL == CELL_LSTM) load_state(&l, l.cell, initial_c ? initial_c + outer : NULL, outer_row);
  }
  run_direction(&l, team, directions);
  if (first + count < steps) return;
  store_state(&l, l.state[steps & 1], y_h ? y_h + outer : NULL, outer_row);
  if (CELL == CELL_LSTM) store_state(&l, l.cell, y_c ? y_c + outer : NULL, outer_row);
}
