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
#include "kernel.h"
#include "knobs.h"
#include "panel.h"
#include "simd/math.h"
#include "simd/simd.h"

/* CELL_LSTM, ...
 * legal: 0..3 */
enum { CELL = CELL_LSTM };
/* Vectors of units in a panel.
 * legal: 1 2 4 */
enum { UNIT_VECTORS = 1 };
/* Maximum samples of a block.
 * legal: 1..8 */
enum { ROWS = 6 };
/* Minimum samples of a block: where B is known, its blocks have one of two heights.
 * legal: 1..8 */
enum { MIN_ROWS = 1 };
/* A panel of weights comes in so many parts, [H][PART_VECTORS][LANES] each, and a part is multiplied by all samples
 * before the next: with few registers a part has more rows, so its loads feed more multiply-adds.
 * legal: 1 2 */
enum { PANEL_PARTS = 1 };
/* Partial sums of a block of one sample.
 * legal: 1 2 4 8 */
enum { PARTS = 4 };
/* Maximum workers that share a direction: with few units a barrier costs more than another worker saves.
 * legal: 1..1024 */
enum { WORKERS = 1024 };
/* How many of them share the samples; each of these shares has its own workers for the panels.
 * legal: 1..1024 */
enum { BATCH_PARTS = 1 };
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
/* 1: what enters an activation is bounded to [-clip, clip].
 * legal: 0 1 */
enum { CLIP = 0 };
/* 1: LSTM's forget gate is 1 - input gate.
 * legal: 0 1 */
enum { INPUT_FORGET = 0 };
/* 1: LSTM's gates see the cell state, through `peepholes`.
 * legal: 0 1 */
enum { PEEPHOLES = 0 };
/* Type of a sequence's length.
 * legal: int32_t int64_t */
typedef int32_t Length;

enum { GATES = CELL == CELL_RNN ? 1 : CELL == CELL_LSTM ? 4 : 3 };
enum { GATE_VECTORS = GATES * UNIT_VECTORS };
/* Vectors that the product with the hidden state makes at once: GRU_BEFORE's candidate must wait for the reset gate. */
enum { PRODUCT_VECTORS = CELL == CELL_GRU_BEFORE ? 2 * UNIT_VECTORS : GATE_VECTORS };
enum { PART_VECTORS = PRODUCT_VECTORS / PANEL_PARTS };
enum { PANEL_UNITS = UNIT_VECTORS * LANES };
/* Buffers of working memory that each direction has. */
enum { BUFFERS = CELL == CELL_LSTM ? 3 : CELL == CELL_GRU_BEFORE ? 4 : 2 };

typedef struct Layer {
  float *gates;            /* of this direction; a sample and time: [panels][GATE_VECTORS][LANES]. From first_time on */
  const float *x, *input;  /* INPUT: [T][B][I] or [B][T][I], and W as [panels][I][GATE_VECTORS][LANES] */
  const float *bias;       /* INPUT: [panels][GATE_VECTORS][LANES], or NULL */
  const float *weights;    /* [panels][PANEL_PARTS][H][PART_VECTORS][LANES] */
  const float *candidate;  /* GRU_BEFORE: [panels][H][UNIT_VECTORS][LANES] */
  const float *after_bias; /* GRU_AFTER: [panels][UNIT_VECTORS][LANES], added to the product before the reset gate */
  const float *peepholes;  /* [panels][3: i o f][UNIT_VECTORS][LANES] */
  const Length *lengths;   /* [B], or NULL: all are T */
  float *state[2];         /* [B][state_row], hidden states: of even steps, of odd steps */
  float *cell;             /* LSTM: [B][state_row] */
  float *update, *reset;   /* GRU_BEFORE: [B][state_row], the update gate, and the reset gate times the hidden state */
  float *partial; /* HIDE, HALVES, DEPTH_BLOCK, PANEL_PARTS: sums that wait, [B][panels][PRODUCT_VECTORS][LANES] */
  float *y;       /* of this direction, or NULL */
  int64_t steps, batch, hidden, inputs, panels; /* T, B, H, I */
  int64_t turn;                                 /* of the run */
  int64_t first, count;                         /* the steps of this call */
  int64_t first_time;                           /* the earliest time of these steps */
  int64_t x_time, x_sample;
  int64_t state_row; /* H padded to whole panels, and by a vector that keeps samples off each other's cache sets */
  int64_t gates_time, gates_sample, y_time, y_sample; /* strides from one time, and one sample, to the next */
  int64_t begin, end;                                 /* this worker's panels */
  int64_t block_begin, block_end, blocks;             /* this worker's blocks of samples, and how many there are */
  int half;                                           /* index of this worker if two share the panels, else -1 */
  float clip;
  bool reverse, from_zero; /* from_zero: no initial state, so the first product is zero */
} Layer;

/* hook: f of ONNX: of RNN, and of the gates of GRU and LSTM. */
static inline vec activation_f(vec x) { return vsigmoid(x); }
/* hook: g of ONNX: of GRU's hidden and LSTM's cell candidate. */
static inline vec activation_g(vec x) { return vtanh(x); }
/* hook: h of ONNX: of LSTM's cell state. */
static inline vec activation_h(vec x) { return vtanh(x); }

/* ---- places ---- */

/* Clamped, so that a length out of range does no harm here. It is reported elsewhere. */
static inline int64_t length_of(const Layer *l, int64_t sample) {
  if (!l->lengths) return l->steps;
  return max_i64(0, min_i64(l->lengths[sample], l->steps));
}

/* Where in time a sample is at a step, counted from where its direction starts. A reverse sample's steps past its
 * length fall on the times past its length, in whatever order: they only clear Y. */
static inline int64_t time_of(const Layer *l, int64_t step, int64_t length) {
  return l->reverse && step < length ? length - 1 - step : step;
}

static inline float *gates_of(const Layer *l, int64_t step, int64_t sample) {
  int64_t time = time_of(l, step, length_of(l, sample)) - l->first_time;
  return l->gates + time * l->gates_time + sample * l->gates_sample;
}

/* Rows of R that are multiplied at a step: none if the state is still zero. */
static inline int64_t depth_of(const Layer *l, int64_t step) { return step == 0 && l->from_zero ? 0 : l->hidden; }

/* The first sample of a block; for `blocks`, the number of samples. */
static inline int64_t block_at(const Layer *l, int64_t index) { return index * l->batch / l->blocks; }

/* ---- cells: `sums` holds one sample's products, vector u of gate g at g * UNIT_VECTORS + u ---- */

SIMD_FUNCTION vec clipped(const Layer *l, vec x) {
  return CLIP ? vmin_bound(vmax_bound(x, vset(-l->clip)), vset(l->clip)) : x;
}

SIMD_FUNCTION vec gate_sum(const vec *sums, int gate, int u) { return sums[gate * UNIT_VECTORS + u]; }

SIMD_FUNCTION vec peephole(const Layer *l, int gate, int64_t panel, int u, vec sum, vec cell) {
  if (!PEEPHOLES) return sum;
  return vfma(sum, vload(l->peepholes + ((panel * 3 + gate) * UNIT_VECTORS + u) * LANES), cell);
}

SIMD_FUNCTION vec lstm_cell(const Layer *l, const vec *sums, int64_t panel, int u, float *cell) {
  vec c = vload(cell);
  vec in = activation_f(clipped(l, peephole(l, 0, panel, u, gate_sum(sums, 0, u), c)));
  vec forget =
      INPUT_FORGET ? vsub(vset(1), in) : activation_f(clipped(l, peephole(l, 2, panel, u, gate_sum(sums, 2, u), c)));
  vec candidate = activation_g(clipped(l, gate_sum(sums, 3, u)));
  c = vfma(vmul(forget, c), in, candidate);
  vstore(cell, c);
  vec out = activation_f(clipped(l, peephole(l, 1, panel, u, gate_sum(sums, 1, u), c)));
  return vmul(out, activation_h(c));
}

/* update * h + (1 - update) * candidate */
SIMD_FUNCTION vec gru_mix(vec update, vec candidate, vec h) {
  return vfma(vmul(update, h), vsub(vset(1), update), candidate);
}

SIMD_FUNCTION vec gru_after_cell(const Layer *l, const vec *sums, const float *gates, int u, vec h) {
  vec update = activation_f(clipped(l, gate_sum(sums, 0, u)));
  vec reset = activation_f(clipped(l, gate_sum(sums, 1, u)));
  vec input = vload(gates + (2 * UNIT_VECTORS + u) * LANES);
  return gru_mix(update, activation_g(clipped(l, vfma(input, reset, gate_sum(sums, 2, u)))), h);
}

/* The new hidden state of one vector of units. */
SIMD_FUNCTION vec next_state(const Layer *l, const vec *sums, const float *gates, int64_t panel, int u, int64_t at,
                             vec h) {
  if (CELL == CELL_LSTM) return lstm_cell(l, sums, panel, u, l->cell + at);
  if (CELL == CELL_GRU_AFTER) return gru_after_cell(l, sums, gates, u, h);
  if (CELL == CELL_GRU_BEFORE) return gru_mix(vload(l->update + at), activation_g(clipped(l, sums[u])), h);
  return activation_f(clipped(l, sums[u]));
}

/* Ends a step of one sample and panel: its state, and its piece of Y. */
SIMD_FUNCTION void finish_sample(const Layer *l, int64_t step, int64_t panel, int64_t sample, const vec *sums) {
  int64_t length = length_of(l, sample);
  const float *gates = gates_of(l, step, sample) + panel * GATE_VECTORS * LANES;
  float *y = l->y ? l->y + time_of(l, step, length) * l->y_time + sample * l->y_sample : NULL;
#pragma clang loop unroll(full)
  for (int u = 0; u < UNIT_VECTORS; u++) {
    int64_t unit = panel * PANEL_UNITS + u * LANES, at = sample * l->state_row + unit;
    vec h = vload(l->state[step & 1] + at), out = vzero();
    if (step < length) h = out = next_state(l, sums, gates, panel, u, at, h);
    vstore(l->state[~step & 1] + at, h);
    if (y) panel_store(y + unit, out, l->hidden - unit);
  }
}

/* GRU_BEFORE, first half of a step: the update gate, and the hidden state as the reset gate leaves it. */
SIMD_FUNCTION void finish_reset(const Layer *l, int64_t step, int64_t panel, int64_t sample, const vec *sums) {
#pragma clang loop unroll(full)
  for (int u = 0; u < UNIT_VECTORS; u++) {
    int64_t at = sample * l->state_row + panel * PANEL_UNITS + u * LANES;
    vec h = vload(l->state[step & 1] + at);
    vstore(l->update + at, activation_f(clipped(l, gate_sum(sums, 0, u))));
    vstore(l->reset + at, vmul(activation_f(clipped(l, gate_sum(sums, 1, u))), h));
  }
}

/* ---- products ---- */

/* The initial sums of a product, vectors first .. first + vectors of the panel: the input's part, except for the gate
 * whose reset comes after the product. */
SIMD_FUNCTION void start_sums(const Layer *l, vec *sums, const float *gates, int64_t panel, int first, int vectors) {
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) {
    bool after = CELL == CELL_GRU_AFTER && first + v >= 2 * UNIT_VECTORS;
    const float *bias = l->after_bias + (panel * UNIT_VECTORS + first + v - 2 * UNIT_VECTORS) * LANES;
    sums[v] = vload(after ? bias : gates + (first + v) * LANES);
  }
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

/* A block's cells, one sample after the other, for all heights of blocks. The tile has the sums of the panel's last
 * part; those of the parts before it wait in `partial`. */
static void finish_rows(const Layer *l, int64_t step, int64_t panel, int64_t first, int rows, const float *tile,
                        bool candidate) {
  int vectors = candidate ? UNIT_VECTORS : PART_VECTORS, waiting = candidate ? 0 : PRODUCT_VECTORS - PART_VECTORS;
  for (int m = 0; m < rows; m++) {
    PanelRow sums;
    const float *partial = waiting ? partial_of(l, panel, first + m) : NULL;
#pragma clang loop unroll(full)
    for (int v = 0; v < PRODUCT_VECTORS; v++) {
      int own = v - waiting;
      sums[v] = v < waiting ? vload(partial + v * LANES)
                            : (own < vectors ? vload(tile + (m * vectors + own) * LANES) : vzero());
    }
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
  const float *weights = l->input + panel * l->inputs * GATE_VECTORS * LANES;
  if (rows == 1)
    panel_multiply_split(sums[0], PARTS, GATE_VECTORS, x, weights, l->inputs);
  else
    panel_multiply(sums, rows, GATE_VECTORS, x, l->x_sample, 1, weights, l->inputs);
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
  const float *weights = l->weights + (panel * l->hidden + from) * PRODUCT_VECTORS * LANES;
  panel_multiply_split(sums, PARTS, PRODUCT_VECTORS, l->state[step & 1] + from, weights, to - from);
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
  const float *weights, *ahead;
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
  const float *weights = slice->weights + slice->from * vectors * LANES;
  int64_t depth = slice->to - slice->from;
  h += slice->from;
  if (rows == 1)
    panel_multiply_split(sums[0], PARTS, vectors, h, weights, depth);
  else if (DEPTH_BLOCK > 0)
    panel_multiply_ahead(sums, rows, vectors, h, l->state_row, weights, depth, slice->ahead);
  else
    panel_multiply(sums, rows, vectors, h, l->state_row, 1, weights, depth);
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

SIMD_FUNCTION void block_of_rows(const Layer *l, int64_t step, int64_t panel, int64_t first, int64_t rows,
                                 const Slice *slice, bool candidate) {
  if (MIN_ROWS <= 1 && 1 <= ROWS && rows == 1) block(l, step, panel, first, 1, slice, candidate);
  if (MIN_ROWS <= 2 && 2 <= ROWS && rows == 2) block(l, step, panel, first, 2, slice, candidate);
  if (MIN_ROWS <= 3 && 3 <= ROWS && rows == 3) block(l, step, panel, first, 3, slice, candidate);
  if (MIN_ROWS <= 4 && 4 <= ROWS && rows == 4) block(l, step, panel, first, 4, slice, candidate);
  if (MIN_ROWS <= 5 && 5 <= ROWS && rows == 5) block(l, step, panel, first, 5, slice, candidate);
  if (MIN_ROWS <= 6 && 6 <= ROWS && rows == 6) block(l, step, panel, first, 6, slice, candidate);
  if (MIN_ROWS <= 7 && 7 <= ROWS && rows == 7) block(l, step, panel, first, 7, slice, candidate);
  if (MIN_ROWS <= 8 && 8 <= ROWS && rows == 8) block(l, step, panel, first, 8, slice, candidate);
}

/* This worker's samples against rows from .. to of one part of a panel. `next` is the panel that follows. */
SIMD_FUNCTION void sweep_part(const Layer *l, int64_t step, int64_t panel, int part, int64_t next, int64_t from,
                              int64_t to, bool candidate) {
  const int vectors = candidate ? UNIT_VECTORS : PART_VECTORS, parts = candidate ? 1 : PANEL_PARTS;
  const float *weights = candidate ? l->candidate : l->weights;
  const int64_t part_floats = l->hidden * vectors * LANES,
                after = part + 1 < parts ? panel * parts + part + 1 : next * parts;
  Slice slice = {.weights = weights + (panel * parts + part) * part_floats, .part = part, .from = from};
  slice.depth = depth_of(l, step);
  do {
    slice.to = DEPTH_BLOCK > 0 ? min_i64(to, slice.from + DEPTH_BLOCK) : to;
    const float *ahead = slice.to == to ? weights + after * part_floats : slice.weights + slice.to * vectors * LANES;
    for (int64_t j = l->block_begin; j < l->block_end; j++) {
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

/* The row at which the middle panel is cut. */
static inline int64_t middle_row(const Layer *l, int64_t step) { return depth_of(l, step) / 16 * 8; }

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

/* ---- states: `outer` is one of ONNX's initial or final states, of this direction, samples outer_row apart ---- */

static void load_state(const Layer *l, float *state, const float *outer, int64_t outer_row) {
  for (int64_t sample = block_at(l, l->block_begin); sample < block_at(l, l->block_end); sample++) {
    for (int64_t unit = l->begin * PANEL_UNITS; unit < l->end * PANEL_UNITS; unit += LANES) {
      vec v = outer ? panel_load(outer + sample * outer_row + unit, l->hidden - unit) : vzero();
      vstore(state + sample * l->state_row + unit, v);
    }
  }
}

static void store_state(const Layer *l, const float *state, float *outer, int64_t outer_row) {
  if (!outer) return;
  for (int64_t sample = block_at(l, l->block_begin); sample < block_at(l, l->block_end); sample++) {
    bool empty = l->lengths && length_of(l, sample) == 0;
    for (int64_t unit = l->begin * PANEL_UNITS; unit < l->end * PANEL_UNITS; unit += LANES) {
      vec v = empty ? vzero() : vload(state + sample * l->state_row + unit);
      panel_store(outer + sample * outer_row + unit, v, l->hidden - unit);
    }
  }
}

/* ---- the layer ---- */

/* The workers of one direction: `ways` parts of the samples, each with `unit_ways` parts of the panels. */
typedef struct Crew {
  int64_t first, count, ways, unit_ways;
} Crew;

/* Each direction has its own part of the team. */
static Crew crew_of(const Team *team, int64_t directions, int64_t direction) {
  Crew crew = {.count = team->size};
  if (team->size >= directions) {
    crew.first = team->size * direction / directions;
    crew.count = team->size * (direction + 1) / directions - crew.first;
  }
  int64_t workers = min_i64(crew.count, WORKERS);
  crew.ways = min_i64(BATCH_PARTS, workers);
  crew.unit_ways = workers / crew.ways;
  return crew;
}

/* This worker's panels and blocks of samples: none if it rests. */
static void take_share(Layer *l, const Team *team, int64_t directions, int64_t direction) {
  Crew crew = crew_of(team, directions, direction);
  int64_t member = team->rank - crew.first, way = member % crew.ways, unit_way = member / crew.ways;
  l->blocks = min_i64(l->batch, round_up(ceil_div(l->batch, ROWS), BATCH_PARTS));
  l->half = -1;
  if (member < 0 || unit_way >= crew.unit_ways) return;
  l->block_begin = share_begin(l->blocks, way, crew.ways);
  l->block_end = share_begin(l->blocks, way + 1, crew.ways);
  l->begin = unit_way * l->panels / crew.unit_ways;
  l->end = (unit_way + 1) * l->panels / crew.unit_ways;
  if (crew.unit_ways == 2) l->half = (int)unit_way;
}

static void take_memory(Layer *l, float *memory, int64_t direction) {
  int64_t buffer = l->batch * l->state_row;
  memory += direction * BUFFERS * buffer;
  l->state[0] = memory;
  l->state[1] = memory + buffer;
  l->cell = l->update = memory + 2 * buffer;
  l->reset = memory + 3 * buffer;
}

static void take_partial(Layer *l, float *partial, int64_t direction) {
  if (HIDE || HALVES || DEPTH_BLOCK > 0 || PANEL_PARTS > 1)
    l->partial = partial + direction * l->batch * l->panels * PRODUCT_VECTORS * LANES;
}

static void set_strides(Layer *l, int64_t directions, bool batch_first) {
  int64_t gates = directions * l->panels * GATE_VECTORS * LANES, y = directions * l->hidden;
  l->gates_time = gates * (batch_first ? 1 : l->batch);
  l->gates_sample = gates * (batch_first ? l->count : 1);
  if (INPUT) l->gates_time = 0, l->gates_sample = gates;
  l->x_time = l->inputs * (batch_first ? 1 : l->batch);
  l->x_sample = l->inputs * (batch_first ? l->steps : 1);
  l->y_time = batch_first ? y : y * l->batch;
  l->y_sample = batch_first ? y * l->steps : l->hidden;
}

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
 * a reverse direction with lengths are all; INPUT: of one step. memory: directions * BUFFERS * batch * (H padded to
 * panels + LANES) floats, which carry the states from one call to the next. partial: directions * batch * panels *
 * PRODUCT_VECTORS * LANES floats. */
static void recurrent_steps(Team *team, const float *x, const float *input, const float *bias, float *gates,
                            const float *weights, const float *candidate, const float *after_bias,
                            const float *peepholes, const Length *lengths, const float *initial_h,
                            const float *initial_c, float *y, float *y_h, float *y_c, float *memory, float *partial,
                            float clip, int64_t steps, int64_t first, int64_t count, int64_t batch, int64_t inputs,
                            int64_t hidden, int64_t directions, int64_t direction, int64_t reverse, int64_t batch_first,
                            int64_t turn) {
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
  l.state_row = l.panels * PANEL_UNITS + LANES;
  take_memory(&l, memory, direction);
  take_partial(&l, partial, direction);
  set_strides(&l, directions, batch_first);
  int64_t from = direction * l.panels; /* panels of the directions before this one */
  l.gates = gates + from * GATE_VECTORS * LANES;
  l.weights = weights + from * hidden * PRODUCT_VECTORS * LANES;
  if (INPUT) l.input = input + from * inputs * GATE_VECTORS * LANES;
  if (INPUT && bias) l.bias = bias + from * GATE_VECTORS * LANES;
  if (CELL == CELL_GRU_BEFORE) l.candidate = candidate + from * hidden * UNIT_VECTORS * LANES;
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
