/* SPDX-License-Identifier: MIT */
/*
 * One direction of a recurrent layer over all its time steps, after one matrix product has made the input's part of
 * every gate (`gates`). Within a step the product of the hidden state with the recurrent weights stays in registers
 * and the cell's update follows at once, because a panel holds all gates of its units.
 *
 * A worker owns the same panels through the whole sequence, so its weights stay in its cache, and sweeps them in
 * alternating direction: what one step read last the next reads first. One barrier ends a step. The hidden state is
 * double buffered: a fast worker writes the next state where nobody reads the present one.
 *
 * What ONNX leaves open is done as ONNX Runtime does: beyond a sample's length Y is zero and the state stays; reverse
 * starts at the sample's own end; the final state of a sample of length 0 is zero; clip bounds what enters an
 * activation, and nothing else.
 */
#include "kernel.h"
#include "panel.h"
#include "simd/math.h"
#include "simd/simd.h"

/* 0: RNN; 1: GRU, reset gate after the product (linear_before_reset); 2: GRU, reset gate before it; 3: LSTM.
 * legal: 0..3 */
enum { CELL = 3 };
/* Vectors of units in a panel.
 * legal: 1 2 4 */
enum { UNIT_VECTORS = 1 };
/* Most samples of a block.
 * legal: 1..8 */
enum { ROWS = 6 };
/* Fewest samples of a block: where B is known, its blocks have one of two heights.
 * legal: 1..8 */
enum { LEAST_ROWS = 1 };
/* Partial sums of a block of one sample.
 * legal: 1 2 4 8 */
enum { PARTS = 4 };
/* 1: one worker does all; at few units a barrier costs more than a worker brings.
 * legal: 0 1 */
enum { ALONE = 0 };
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

enum { RNN, GRU_AFTER, GRU_BEFORE, LSTM };
enum { GATES = CELL == RNN ? 1 : CELL == LSTM ? 4 : 3 };
enum { GATE_VECTORS = GATES * UNIT_VECTORS };
/* Vectors that the product with the hidden state makes at once: GRU_BEFORE's candidate must wait for the reset gate. */
enum { PRODUCT_VECTORS = CELL == GRU_BEFORE ? 2 * UNIT_VECTORS : GATE_VECTORS };
enum { PANEL_UNITS = UNIT_VECTORS * LANES };
/* Buffers of working memory that each direction has. */
enum { BUFFERS = CELL == LSTM ? 3 : CELL == GRU_BEFORE ? 4 : 2 };

typedef struct Layer {
  const float *gates;      /* of this direction; a sample and time: [panels][GATE_VECTORS][LANES] */
  const float *weights;    /* [panels][H][PRODUCT_VECTORS][LANES] */
  const float *candidate;  /* GRU_BEFORE: [panels][H][UNIT_VECTORS][LANES] */
  const float *after_bias; /* GRU_AFTER: [panels][UNIT_VECTORS][LANES], added to the product before the reset gate */
  const float *peepholes;  /* [panels][3: i o f][UNIT_VECTORS][LANES] */
  const Length *lengths;   /* [B], or NULL: all are T */
  float *state[2];         /* [B][state_row], hidden states: of even steps, of odd steps */
  float *cell;             /* LSTM: [B][state_row] */
  float *update, *reset;   /* GRU_BEFORE: [B][state_row], the update gate, and the reset gate times the hidden state */
  float *y;                /* of this direction, or NULL */
  int64_t steps, batch, hidden, panels; /* T, B, H */
  int64_t state_row; /* H padded to whole panels, and by a vector that keeps samples off each other's cache sets */
  int64_t gates_time, gates_sample, y_time, y_sample; /* strides from one time, and one sample, to the next */
  int64_t begin, end;                                 /* this worker's panels */
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

/* Clamped: a length out of range is told elsewhere, here it must do no harm. */
static inline int64_t length_of(const Layer *l, int64_t sample) {
  if (!l->lengths) return l->steps;
  return max_i64(0, min_i64(l->lengths[sample], l->steps));
}

/* Where in time a sample is at a step, counted from where its direction starts. A reverse sample's steps past its
 * length fall on the times past its length, in whatever order: they only clear Y. */
static inline int64_t time_of(const Layer *l, int64_t step, int64_t length) {
  return l->reverse && step < length ? length - 1 - step : step;
}

static inline const float *gates_of(const Layer *l, int64_t step, int64_t sample) {
  int64_t time = time_of(l, step, length_of(l, sample));
  return l->gates + time * l->gates_time + sample * l->gates_sample;
}

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
  if (CELL == LSTM) return lstm_cell(l, sums, panel, u, l->cell + at);
  if (CELL == GRU_AFTER) return gru_after_cell(l, sums, gates, u, h);
  if (CELL == GRU_BEFORE) return gru_mix(vload(l->update + at), activation_g(clipped(l, sums[u])), h);
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

/* What a product starts from: the input's part, but for the gate whose reset comes after the product. */
SIMD_FUNCTION void start_sums(const Layer *l, vec *sums, const float *gates, int64_t panel, int first, int vectors) {
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) {
    bool after = CELL == GRU_AFTER && v >= 2 * UNIT_VECTORS;
    const float *bias = l->after_bias + (panel * UNIT_VECTORS + v - 2 * UNIT_VECTORS) * LANES;
    sums[v] = vload(after ? bias : gates + (first + v) * LANES);
  }
}

SIMD_FUNCTION void finish_product(const Layer *l, int64_t step, int64_t panel, int64_t sample, const vec *sums,
                                  bool candidate) {
  if (CELL == GRU_BEFORE && !candidate)
    finish_reset(l, step, panel, sample, sums);
  else
    finish_sample(l, step, panel, sample, sums);
}

/* A block's cells, one sample after the other, for all heights of blocks. */
static void finish_rows(const Layer *l, int64_t step, int64_t panel, int64_t first, int rows, const float *tile,
                        bool candidate) {
  int vectors = candidate ? UNIT_VECTORS : PRODUCT_VECTORS;
  for (int m = 0; m < rows; m++) {
    PanelRow sums;
#pragma clang loop unroll(full)
    for (int v = 0; v < PRODUCT_VECTORS; v++) sums[v] = v < vectors ? vload(tile + (m * vectors + v) * LANES) : vzero();
    finish_product(l, step, panel, first + m, sums, candidate);
  }
}

/* Samples first .. first + rows of one panel. candidate: the second half of a GRU_BEFORE step. */
SIMD_FUNCTION void block(const Layer *l, int64_t step, int64_t panel, int64_t first, int rows, bool candidate) {
  const int vectors = candidate ? UNIT_VECTORS : PRODUCT_VECTORS;
  const float *weights = (candidate ? l->candidate : l->weights) + panel * l->hidden * vectors * LANES;
  const float *h = (candidate ? l->reset : l->state[step & 1]) + first * l->state_row;
  int64_t depth = step == 0 && l->from_zero ? 0 : l->hidden;
  PanelRow sums[PANEL_ROWS];
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
    const float *gates = gates_of(l, step, first + m) + panel * GATE_VECTORS * LANES;
    start_sums(l, sums[m], gates, panel, candidate ? 2 * UNIT_VECTORS : 0, vectors);
  }
  if (rows == 1)
    panel_multiply_split(sums[0], PARTS, vectors, h, weights, depth);
  else
    panel_multiply(sums, rows, vectors, h, l->state_row, 1, weights, depth);
  if (rows == 1) {
    finish_product(l, step, panel, first, sums[0], candidate);
    return;
  }
  _Alignas(64) float tile[ROWS * PANEL_VECTORS * LANES];
  panel_store_sums(tile, sums, rows, vectors);
  finish_rows(l, step, panel, first, rows, tile, candidate);
}

SIMD_FUNCTION void block_of_rows(const Layer *l, int64_t step, int64_t panel, int64_t first, int64_t rows,
                                 bool candidate) {
  if (LEAST_ROWS <= 1 && 1 <= ROWS && rows == 1) block(l, step, panel, first, 1, candidate);
  if (LEAST_ROWS <= 2 && 2 <= ROWS && rows == 2) block(l, step, panel, first, 2, candidate);
  if (LEAST_ROWS <= 3 && 3 <= ROWS && rows == 3) block(l, step, panel, first, 3, candidate);
  if (LEAST_ROWS <= 4 && 4 <= ROWS && rows == 4) block(l, step, panel, first, 4, candidate);
  if (LEAST_ROWS <= 5 && 5 <= ROWS && rows == 5) block(l, step, panel, first, 5, candidate);
  if (LEAST_ROWS <= 6 && 6 <= ROWS && rows == 6) block(l, step, panel, first, 6, candidate);
  if (LEAST_ROWS <= 7 && 7 <= ROWS && rows == 7) block(l, step, panel, first, 7, candidate);
  if (LEAST_ROWS <= 8 && 8 <= ROWS && rows == 8) block(l, step, panel, first, 8, candidate);
}

/* All samples against this worker's panels, in balanced blocks. */
SIMD_FUNCTION void sweep(const Layer *l, int64_t step, bool candidate) {
  int64_t blocks = ceil_div(l->batch, ROWS);
  for (int64_t i = l->begin; i < l->end; i++) {
    int64_t panel = step & 1 ? l->begin + l->end - 1 - i : i;
    for (int64_t j = 0; j < blocks; j++) {
      int64_t first = j * l->batch / blocks;
      block_of_rows(l, step, panel, first, (j + 1) * l->batch / blocks - first, candidate);
    }
  }
}

static void run_steps(const Layer *l, Team *team, bool shared) {
  for (int64_t step = 0; step < l->steps; step++) {
    if (shared) team_barrier(team);
    sweep(l, step, false);
    if (CELL != GRU_BEFORE) continue;
    if (shared) team_barrier(team);
    sweep(l, step, true);
  }
}

/* ---- states: `outer` is one of ONNX's initial or final states, of this direction, samples outer_row apart ---- */

static void load_state(const Layer *l, float *state, const float *outer, int64_t outer_row) {
  for (int64_t sample = 0; sample < l->batch; sample++) {
    for (int64_t unit = l->begin * PANEL_UNITS; unit < l->end * PANEL_UNITS; unit += LANES) {
      vec v = outer ? panel_load(outer + sample * outer_row + unit, l->hidden - unit) : vzero();
      vstore(state + sample * l->state_row + unit, v);
    }
  }
}

static void store_state(const Layer *l, const float *state, float *outer, int64_t outer_row) {
  for (int64_t sample = 0; outer && sample < l->batch; sample++) {
    bool empty = l->lengths && length_of(l, sample) == 0;
    for (int64_t unit = l->begin * PANEL_UNITS; unit < l->end * PANEL_UNITS; unit += LANES) {
      vec v = empty ? vzero() : vload(state + sample * l->state_row + unit);
      panel_store(outer + sample * outer_row + unit, v, l->hidden - unit);
    }
  }
}

/* ---- the layer ---- */

/* Takes this worker's panels; returns whether others take others. Two workers take a direction each. */
static bool take_panels(Layer *l, const Team *team, int64_t directions, int64_t direction) {
  bool alone = ALONE || team->size == 1 || (directions == 2 && team->size == 2);
  l->end = l->panels;
  if (!alone)
    team_share(team, l->panels, &l->begin, &l->end);
  else if (team->rank != direction % team->size)
    l->end = 0;
  return !alone;
}

static void take_memory(Layer *l, float *memory, int64_t direction) {
  int64_t buffer = l->batch * l->state_row;
  memory += direction * BUFFERS * buffer;
  l->state[0] = memory;
  l->state[1] = memory + buffer;
  l->cell = l->update = memory + 2 * buffer;
  l->reset = memory + 3 * buffer;
}

static void set_strides(Layer *l, int64_t directions, bool batch_first) {
  int64_t gates = directions * l->panels * GATE_VECTORS * LANES, y = directions * l->hidden;
  l->gates_time = gates * (batch_first ? 1 : l->batch);
  l->gates_sample = gates * (batch_first ? l->steps : 1);
  l->y_time = batch_first ? y : y * l->batch;
  l->y_sample = batch_first ? y * l->steps : l->hidden;
}

/* Pointers are those of all directions; `direction` picks one. lengths, initial_* and the outputs may be NULL, and so
 * may what the cell does not use. batch_first is ONNX's layout = 1. gates: [T * B, or B * T][directions][panels]
 * [GATE_VECTORS][LANES]. memory: directions * BUFFERS * batch * (H padded to panels + LANES) floats. */
static void recurrent_steps(Team *team, const float *gates, const float *weights, const float *candidate,
                            const float *after_bias, const float *peepholes, const Length *lengths,
                            const float *initial_h, const float *initial_c, float *y, float *y_h, float *y_c,
                            float *memory, float clip, int64_t steps, int64_t batch, int64_t hidden, int64_t directions,
                            int64_t direction, int64_t reverse, int64_t batch_first) {
  Layer l = {.lengths = lengths,
             .clip = clip,
             .steps = steps,
             .batch = batch,
             .hidden = hidden,
             .reverse = reverse,
             .from_zero = !initial_h,
             .panels = ceil_div(hidden, PANEL_UNITS)};
  bool shared = take_panels(&l, team, directions, direction);
  if (!shared && l.begin == l.end) return;
  l.state_row = l.panels * PANEL_UNITS + LANES;
  take_memory(&l, memory, direction);
  set_strides(&l, directions, batch_first);
  int64_t from = direction * l.panels; /* panels of the directions before this one */
  l.gates = gates + from * GATE_VECTORS * LANES;
  l.weights = weights + from * hidden * PRODUCT_VECTORS * LANES;
  if (CELL == GRU_BEFORE) l.candidate = candidate + from * hidden * UNIT_VECTORS * LANES;
  if (CELL == GRU_AFTER) l.after_bias = after_bias + from * PANEL_UNITS;
  if (PEEPHOLES) l.peepholes = peepholes + from * 3 * PANEL_UNITS;
  if (y) l.y = y + direction * (batch_first ? 1 : batch) * hidden;

  int64_t outer = direction * (batch_first ? 1 : batch) * hidden, outer_row = (batch_first ? directions : 1) * hidden;
  load_state(&l, l.state[0], initial_h ? initial_h + outer : NULL, outer_row);
  if (CELL == LSTM) load_state(&l, l.cell, initial_c ? initial_c + outer : NULL, outer_row);
  run_steps(&l, team, shared);
  store_state(&l, l.state[steps & 1], y_h ? y_h + outer : NULL, outer_row);
  if (CELL == LSTM) store_state(&l, l.cell, y_c ? y_c + outer : NULL, outer_row);
}
