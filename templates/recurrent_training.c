/* SPDX-License-Identifier: MIT */
/*
 * A recurrent layer over all its steps, which saves what its gradient needs. A product before it has put the input's
 * part of every gate into S, in whose place come the gates as activated; beside them go the cell states, or a GRU's
 * reset part. The recurrent weights are known only to the run, which has packed them: a panel has all gates of its
 * units. A worker owns the same panels and samples through the whole sequence; one barrier ends a step, unless no two
 * workers share a sample.
 *
 * What ONNX leaves open is as in recurrent_steps.c: beyond a sample's length Y and S are zero and the state is kept.
 */
#include "parts/trained_layer.h"

/* Of a GRU whose reset gate comes first, the candidate's product waits for that gate. */
enum { PRODUCT_VECTORS = (CELL == CELL_GRU_BEFORE ? 2 : GATES) * UNIT_VECTORS };
enum { SECOND_VECTORS = CELL == CELL_GRU_BEFORE ? UNIT_VECTORS : 0 };

#include "parts/trained_product.h"

/* hook: f of ONNX: of RNN, and of the gates of GRU and LSTM. */
static inline vec activation_f(vec x) { return vsigmoid(x); }
/* hook: g of ONNX: of GRU's hidden and LSTM's cell candidate. */
static inline vec activation_g(vec x) { return vtanh(x); }
/* hook: h of ONNX: of LSTM's cell state. */
static inline vec activation_h(vec x) { return vtanh(x); }
/* hook: f of the second direction. */
static inline vec second_f(vec x) { return vsigmoid(x); }
/* hook: g of the second direction. */
static inline vec second_g(vec x) { return vtanh(x); }
/* hook: h of the second direction. */
static inline vec second_h(vec x) { return vtanh(x); }

/* One direction. */
typedef struct Layer {
  Extents extents;
  int64_t direction, panels, state_row, saved_row;
  Share share;
  const float *weights, *candidate; /* [panels][H][vectors][LANES] */
  const float *bias, *peepholes;    /* [2][GATES][H], or NULL; [3: i o f][H] */
  float *saved;                     /* S, this direction's */
  float *state[2], *cell, *reset;   /* [B][state_row]: states of even and odd steps; LSTM; GRU_BEFORE */
  float *tile;                      /* [panels][B][PRODUCT_VECTORS][LANES] */
  float *y;                         /* or NULL */
  bool from_zero;                   /* no initial state */
} Layer;

static inline vec function_f(int second, vec x) { return second ? second_f(x) : activation_f(x); }
static inline vec function_g(int second, vec x) { return second ? second_g(x) : activation_g(x); }
static inline vec function_h(int second, vec x) { return second ? second_h(x) : activation_h(x); }

/* One vector of units of one sample at a step. */
typedef struct Unit {
  const float *tile; /* sums of gate g at g * PANEL_UNITS */
  float *saved;      /* of the unit; gate g at g * H */
  int64_t unit, count, at;
} Unit;

SIMD_FUNCTION vec bias_of(const Layer *l, const Unit *u, int half, int gate) {
  if (!l->bias) return vzero();
  return panel_load(l->bias + (half * GATES + gate) * l->extents.hidden + u->unit, u->count);
}

SIMD_FUNCTION vec saved_of(const Layer *l, const Unit *u, int place) {
  return panel_load(u->saved + place * l->extents.hidden, u->count);
}
SIMD_FUNCTION void save(const Layer *l, const Unit *u, int place, vec value) {
  panel_store(u->saved + place * l->extents.hidden, value, u->count);
}

/* The input's part with both biases. */
SIMD_FUNCTION vec input_of(const Layer *l, const Unit *u, int gate) {
  return vadd(saved_of(l, u, gate), vadd(bias_of(l, u, 0, gate), bias_of(l, u, 1, gate)));
}

SIMD_FUNCTION vec sum_of(const Layer *l, const Unit *u, int gate) {
  return vadd(vload(u->tile + gate * PANEL_UNITS), input_of(l, u, gate));
}

SIMD_FUNCTION vec peephole(const Layer *l, const Unit *u, int gate, vec sum, vec cell) {
  if (!PEEPHOLES) return sum;
  return vfma(sum, panel_load(l->peepholes + gate * l->extents.hidden + u->unit, u->count), cell);
}

SIMD_FUNCTION vec lstm_cell(const Layer *l, const Unit *u, int second) {
  vec c = vload(l->cell + u->at);
  vec in = function_f(second, peephole(l, u, 0, sum_of(l, u, 0), c));
  vec forget = INPUT_FORGET ? vsub(vset(1), in) : function_f(second, peephole(l, u, 2, sum_of(l, u, 2), c));
  vec candidate = function_g(second, sum_of(l, u, 3));
  c = vfma(vmul(forget, c), in, candidate);
  vec out = function_f(second, peephole(l, u, 1, sum_of(l, u, 1), c));
  vstore(l->cell + u->at, c);
  save(l, u, 0, in);
  save(l, u, 1, out);
  save(l, u, 2, forget);
  save(l, u, 3, candidate);
  save(l, u, 4, c);
  return vmul(out, function_h(second, c));
}

/* update * h + (1 - update) * candidate */
SIMD_FUNCTION vec gru_mix(vec update, vec candidate, vec h) {
  return vfma(vmul(update, h), vsub(vset(1), update), candidate);
}

SIMD_FUNCTION vec gru_after_cell(const Layer *l, const Unit *u, int second, vec h) {
  vec update = function_f(second, sum_of(l, u, 0)), reset = function_f(second, sum_of(l, u, 1));
  vec product = vadd(vload(u->tile + 2 * PANEL_UNITS), bias_of(l, u, 1, 2));
  vec input = vadd(saved_of(l, u, 2), bias_of(l, u, 0, 2));
  vec candidate = function_g(second, vfma(input, reset, product));
  save(l, u, 0, update);
  save(l, u, 1, reset);
  save(l, u, 2, candidate);
  save(l, u, 3, product);
  return gru_mix(update, candidate, h);
}

/* GRU_BEFORE, first half of a step: both gates, and the state as the reset gate leaves it. */
SIMD_FUNCTION void gru_reset(const Layer *l, const Unit *u, int second, vec h) {
  vec reset = function_f(second, sum_of(l, u, 1)), left = vmul(reset, h);
  save(l, u, 0, function_f(second, sum_of(l, u, 0)));
  save(l, u, 1, reset);
  save(l, u, 3, left);
  vstore(l->reset + u->at, left);
}

SIMD_FUNCTION vec gru_before_cell(const Layer *l, const Unit *u, int second, vec h) {
  vec candidate = function_g(second, vadd(vload(u->tile), input_of(l, u, 2)));
  save(l, u, 2, candidate);
  return gru_mix(saved_of(l, u, 0), candidate, h);
}

SIMD_FUNCTION vec next_state(const Layer *l, const Unit *u, int second, vec h) {
  if (CELL == CELL_LSTM) return lstm_cell(l, u, second);
  if (CELL == CELL_GRU_AFTER) return gru_after_cell(l, u, second, h);
  if (CELL == CELL_GRU_BEFORE) return gru_before_cell(l, u, second, h);
  vec next = function_f(second, sum_of(l, u, 0));
  save(l, u, 0, next);
  return next;
}

/* Where a sample's step is in S and Y; y is NULL where there is none. */
typedef struct Place {
  int64_t length;
  float *saved, *y;
} Place;

static inline Place place_of(const Layer *l, int64_t step, int64_t sample) {
  const Extents *e = &l->extents;
  int64_t length = length_of(e, sample), time = time_of(e, l->direction, step, length);
  return (Place){length, l->saved + row_at(e, time, sample) * l->saved_row,
                 l->y ? l->y + output_at(e, l->direction, time, sample) : NULL};
}

static inline void fetch_sample(const Layer *l, int64_t step, int64_t panel, int64_t sample) {
  int64_t unit = panel * PANEL_UNITS, state = sample * l->state_row + unit;
  Place at = place_of(l, step, sample);
  for (int k = 0; k < SAVED; k++) fetch_units(at.saved + k * l->extents.hidden + unit);
  if (at.y) fetch_units(at.y + unit);
  fetch_units(l->state[step & 1] + state);
  if (CELL == CELL_LSTM) fetch_units(l->cell + state);
}

/* Ends a sample's step, or of GRU_BEFORE its first half. */
SIMD_FUNCTION void finish_sample(const Layer *l, int64_t step, int64_t panel, int64_t sample, const float *tile,
                                 int second, bool half) {
  const Extents *e = &l->extents;
  Place at = place_of(l, step, sample);
  for (int u = 0; u < UNIT_VECTORS; u++) {
    int64_t unit = panel * PANEL_UNITS + u * LANES;
    Unit place = {tile + u * LANES, at.saved + unit, unit, e->hidden - unit, sample * l->state_row + unit};
    vec h = vload(l->state[step & 1] + place.at), out = vzero();
    if (half) {
      if (step < at.length) gru_reset(l, &place, second, h);
      continue;
    }
    if (step < at.length) {
      h = out = next_state(l, &place, second, h);
    } else {
      for (int k = 0; k < SAVED; k++) save(l, &place, k, vzero());
    }
    vstore(l->state[~step & 1] + place.at, h);
    if (at.y) panel_store(at.y + unit, out, place.count);
  }
}

SIMD_FUNCTION void finish_panel(const Layer *l, int64_t step, int64_t panel, const float *tile, int second, bool half) {
  const int64_t row = (CELL == CELL_GRU_BEFORE && !half ? SECOND_VECTORS : PRODUCT_VECTORS) * LANES;
  const int64_t first = l->share.sample, end = l->share.sample_end;
  for (int64_t sample = first; sample < min_i64(first + SAMPLES_AHEAD, end); sample++)
    fetch_sample(l, step, panel, sample);
  for (int64_t sample = first; sample < end; sample++) {
    if (sample + SAMPLES_AHEAD < end) fetch_sample(l, step, panel, sample + SAMPLES_AHEAD);
    finish_sample(l, step, panel, sample, tile + (sample - first) * row, second, half);
  }
}

#include "parts/trained_finish.h"

/* This worker's panels, forwards on even steps and backwards on odd ones. candidate: the second half of a GRU_BEFORE
 * step. */
static void sweep(const Layer *l, int64_t step, bool candidate) {
  const Share *s = &l->share;
  int64_t depth = step == 0 && l->from_zero ? 0 : l->extents.hidden;
  int64_t floats = l->extents.hidden * (candidate ? SECOND_VECTORS : PRODUCT_VECTORS) * LANES;
  const float *weights = candidate ? l->candidate : l->weights;
  const float *a = (candidate ? l->reset : l->state[step & 1]) + s->sample * l->state_row;
  for (int64_t i = s->panel; i < s->panel_end; i++) {
    int64_t panel = panel_of(s, step, i), next = panel_after(s, step, panel);
    float *tile = l->tile + (panel * l->extents.batch + s->sample) * PRODUCT_VECTORS * LANES;
    multiply_panel(weights + panel * floats, weights + next * floats, depth, a, l->state_row, tile,
                   s->sample_end - s->sample, candidate);
    bool half = CELL == CELL_GRU_BEFORE && !candidate;
    finish(l, step, panel, tile, half);
  }
}

static void load_state(const Layer *l, float *state, const float *outer) {
  const Share *s = &l->share;
  for (int64_t sample = s->sample; sample < s->sample_end; sample++) {
    const float *from = outer ? outer + state_at(&l->extents, l->direction, sample) : NULL;
    for (int64_t unit = s->panel * PANEL_UNITS; unit < s->panel_end * PANEL_UNITS; unit += LANES)
      vstore(state + sample * l->state_row + unit, from ? panel_load(from + unit, l->extents.hidden - unit) : vzero());
  }
}

static void store_state(const Layer *l, const float *state, float *outer) {
  const Share *s = &l->share;
  for (int64_t sample = s->sample; outer && sample < s->sample_end; sample++) {
    float *to = outer + state_at(&l->extents, l->direction, sample);
    bool empty = length_of(&l->extents, sample) == 0;
    for (int64_t unit = s->panel * PANEL_UNITS; unit < s->panel_end * PANEL_UNITS; unit += LANES)
      panel_store(to + unit, empty ? vzero() : vload(state + sample * l->state_row + unit), l->extents.hidden - unit);
  }
}

/* weights: R, packed; of GRU_BEFORE of both gates, and `candidate` of the rest. bias: B; peepholes: P. saved: S with
 * the input's parts of the gates in it. memory: D * 4 * B * (H padded to panels + LANES) floats. tiles: D * B * panels
 * * PRODUCT_VECTORS * LANES. bias, lengths, initial_*, y, y_h and y_c may be NULL, and so may what the cell or the
 * knobs do not use. */
static void recurrent_training(Team *team, const float *weights, const float *candidate, const float *bias,
                               const float *peepholes, const Length *lengths, const float *initial_h,
                               const float *initial_c, float *saved, float *y, float *y_h, float *y_c, float *memory,
                               float *tiles, int64_t steps, int64_t batch, int64_t hidden, int64_t directions,
                               int64_t reverse, int64_t batch_first) {
  Layer layers[2];
  Extents extents = {steps, batch, hidden, directions, lengths, reverse, batch_first};
  bool meets = false;
  for (int64_t d = 0; d < directions; d++) {
    Layer l = {.extents = extents, .direction = d, .panels = ceil_div(hidden, PANEL_UNITS), .y = y};
    Crew crew = crew_of(team, directions, d, l.panels, batch);
    meets |= crew.unit_ways > 1;
    l.share = share_of(team, &crew, l.panels, batch);
    l.state_row = l.panels * PANEL_UNITS + LANES;
    l.saved_row = directions * SAVED * hidden;
    l.from_zero = !initial_h;
    l.weights = weights + d * l.panels * hidden * PRODUCT_VECTORS * LANES;
    if (CELL == CELL_GRU_BEFORE) l.candidate = candidate + d * l.panels * hidden * SECOND_VECTORS * LANES;
    l.bias = bias ? bias + d * 2 * GATES * hidden : NULL;
    if (PEEPHOLES) l.peepholes = peepholes + d * 3 * hidden;
    l.saved = saved + d * SAVED * hidden;
    float *own = memory + d * 4 * batch * l.state_row;
    l.state[0] = own;
    l.state[1] = own + batch * l.state_row;
    l.cell = own + 2 * batch * l.state_row;
    l.reset = own + 3 * batch * l.state_row;
    l.tile = tiles + d * l.panels * batch * PRODUCT_VECTORS * LANES;
    load_state(&l, l.state[0], initial_h);
    if (CELL == CELL_LSTM) load_state(&l, l.cell, initial_c);
    layers[d] = l;
  }
  for (int64_t step = 0; step < steps; step++) {
    if (meets) team_barrier(team);
    for (int64_t d = 0; d < directions; d++) sweep(&layers[d], step, false);
    if (CELL == CELL_GRU_BEFORE) {
      if (meets) team_barrier(team);
      for (int64_t d = 0; d < directions; d++) sweep(&layers[d], step, true);
    }
  }
  for (int64_t d = 0; d < directions; d++) {
    store_state(&layers[d], layers[d].state[steps & 1], y_h);
    if (CELL == CELL_LSTM) store_state(&layers[d], layers[d].cell, y_c);
  }
}
