/* SPDX-License-Identifier: MIT */
/*
 * A part of the templates of recurrent layers: a direction's extents, buffers and places, and the cells' updates. The
 * template says before it which of these it has: HIDE, HALVES, DEPTH_BLOCK, PANEL_PARTS, INPUT, BY_TWO.
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
/* Maximum samples of a block; more than 8 only in matrices.
 * legal: 1..16 */
enum { ROWS = 6 };
/* Minimum samples of a block: where B is known, its blocks have one of two heights.
 * legal: 1..16 */
enum { MIN_ROWS = 1 };
/* Maximum workers that share a direction: with few units a barrier costs more than another worker saves.
 * legal: 1..1024 */
enum { WORKERS = 1024 };
/* How many of them share the samples; each of these shares has its own workers for the panels.
 * legal: 1..1024 */
enum { BATCH_PARTS = 1 };
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
  float *gates;           /* of this direction; a sample and time: [panels][GATE_VECTORS][LANES]. From first_time on */
  const float *x, *input; /* INPUT: [T][B][I] or [B][T][I], and W as [panels][I][GATE_VECTORS][LANES] */
  const float *bias;      /* INPUT: [panels][GATE_VECTORS][LANES], or NULL */
  const float *weights;   /* [panels][PANEL_PARTS][H][PART_VECTORS][LANES] */
  const float *candidate; /* GRU_BEFORE: [panels][H][UNIT_VECTORS][LANES] */
  const float *input_scales, *scales, *candidate_scales; /* WEIGHTS_I8, I4: of these three; panel_narrow.h */
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
  int64_t state_row;                                  /* H padded: state_row_of() */
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

/* The first sample of a block; for `blocks`, the number of samples. BY_TWO: an even one, but for the last. */
static inline int64_t block_at(const Layer *l, int64_t index) {
  return block_begin(l->batch, index, l->blocks, BY_TWO);
}

/* ---- cells: `sums` holds one sample's products, vector u of gate g at g * UNIT_VECTORS + u ---- */

/* What is added to a product: the input's part, but of the gate whose reset comes after the product that gate's bias.
 */
SIMD_FUNCTION vec start_of(const Layer *l, const float *gates, int64_t panel, int gate_vector) {
  if (CELL != CELL_GRU_AFTER || gate_vector < 2 * UNIT_VECTORS) return vload(gates + gate_vector * LANES);
  return vload(l->after_bias + (panel * UNIT_VECTORS + gate_vector - 2 * UNIT_VECTORS) * LANES);
}

SIMD_FUNCTION vec clipped(const Layer *l, vec x) {
  return CLIP ? vmin_bound(vmax_bound(x, vset(-l->clip)), vset(l->clip)) : x;
}

SIMD_FUNCTION vec gate_sum(const vec *sums, int gate, int u) { return sums[gate * UNIT_VECTORS + u]; }

SIMD_FUNCTION vec peephole(const Layer *l, int gate, int64_t panel, int u, vec sum, vec cell) {
  if (!PEEPHOLES) return sum;
  return vfma(sum, vload(l->peepholes + ((panel * 3 + gate) * UNIT_VECTORS + u) * LANES), cell);
}

/* The new state of a cell, kept in `cell`. */
SIMD_FUNCTION vec lstm_cell(const Layer *l, const vec *sums, int64_t panel, int u, float *cell) {
  vec c = vload(cell);
  vec in = activation_f(clipped(l, peephole(l, 0, panel, u, gate_sum(sums, 0, u), c)));
  vec forget =
      INPUT_FORGET ? vsub(vset(1), in) : activation_f(clipped(l, peephole(l, 2, panel, u, gate_sum(sums, 2, u), c)));
  vec candidate = activation_g(clipped(l, gate_sum(sums, 3, u)));
  c = vfma(vmul(forget, c), in, candidate);
  vstore(cell, c);
  return c;
}

SIMD_FUNCTION vec lstm_state(const Layer *l, const vec *sums, int64_t panel, int u, vec c) {
  vec out = activation_f(clipped(l, peephole(l, 1, panel, u, gate_sum(sums, 1, u), c)));
  return vmul(out, activation_h(c));
}

/* update * h + (1 - update) * candidate */
SIMD_FUNCTION vec gru_mix(vec update, vec candidate, vec h) {
  return vfma(vmul(update, h), vsub(vset(1), update), candidate);
}

/* GRU_AFTER: what the candidate's activation takes. */
SIMD_FUNCTION vec gru_after_candidate(const Layer *l, const vec *sums, const float *gates, int u) {
  vec reset = activation_f(clipped(l, gate_sum(sums, 1, u)));
  vec input = vload(gates + (2 * UNIT_VECTORS + u) * LANES);
  return clipped(l, vfma(input, reset, gate_sum(sums, 2, u)));
}

SIMD_FUNCTION vec gru_after_cell(const Layer *l, const vec *sums, const float *gates, int u, vec h) {
  vec update = activation_f(clipped(l, gate_sum(sums, 0, u)));
  return gru_mix(update, activation_g(gru_after_candidate(l, sums, gates, u)), h);
}

/* The new hidden state of one vector of units. advanced: after advance_sample(). */
SIMD_FUNCTION vec next_state(const Layer *l, const vec *sums, const float *gates, int64_t panel, int u, int64_t at,
                             vec h, bool advanced) {
  if (CELL == CELL_LSTM) {
    vec c = advanced ? vload(l->cell + at) : lstm_cell(l, sums, panel, u, l->cell + at);
    return lstm_state(l, sums, panel, u, c);
  }
  if (CELL == CELL_GRU_AFTER && advanced) return gru_mix(sums[u], activation_g(gate_sum(sums, 2, u)), h);
  if (CELL == CELL_GRU_AFTER) return gru_after_cell(l, sums, gates, u, h);
  if (CELL == CELL_GRU_BEFORE) return gru_mix(vload(l->update + at), activation_g(clipped(l, sums[u])), h);
  return activation_f(clipped(l, sums[u]));
}

/* One sample and panel before its last activation: an LSTM's cells get their new state; the sums of GRU_AFTER become
 * its update gate and, in the last one's place, what the candidate's activation takes. */
SIMD_FUNCTION void advance_sample(const Layer *l, int64_t step, int64_t panel, int64_t sample, vec *sums) {
  if (step >= length_of(l, sample)) return;
  const float *gates = gates_of(l, step, sample) + panel * GATE_VECTORS * LANES;
#pragma clang loop unroll(full)
  for (int u = 0; u < UNIT_VECTORS; u++) {
    if (CELL == CELL_LSTM)
      lstm_cell(l, sums, panel, u, l->cell + sample * l->state_row + panel * PANEL_UNITS + u * LANES);
    if (CELL == CELL_GRU_AFTER) {
      vec candidate = gru_after_candidate(l, sums, gates, u);
      sums[u] = activation_f(clipped(l, gate_sum(sums, 0, u)));
      sums[2 * UNIT_VECTORS + u] = candidate;
    }
  }
}

/* Ends a step of one sample and panel: its state, and its piece of Y. */
SIMD_FUNCTION void end_sample(const Layer *l, int64_t step, int64_t panel, int64_t sample, const vec *sums,
                              bool advanced) {
  int64_t length = length_of(l, sample);
  const float *gates = gates_of(l, step, sample) + panel * GATE_VECTORS * LANES;
  float *y = l->y ? l->y + time_of(l, step, length) * l->y_time + sample * l->y_sample : NULL;
#pragma clang loop unroll(full)
  for (int u = 0; u < UNIT_VECTORS; u++) {
    int64_t unit = panel * PANEL_UNITS + u * LANES, at = sample * l->state_row + unit;
    vec h = vload(l->state[step & 1] + at), out = vzero();
    if (step < length) h = out = next_state(l, sums, gates, panel, u, at, h, advanced);
    vstore(l->state[~step & 1] + at, h);
    if (y) panel_store(y + unit, out, l->hidden - unit);
  }
}

SIMD_FUNCTION void finish_sample(const Layer *l, int64_t step, int64_t panel, int64_t sample, const vec *sums) {
  end_sample(l, step, panel, sample, sums, false);
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
