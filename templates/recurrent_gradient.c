/* SPDX-License-Identifier: MIT */
/*
 * A recurrent layer backwards, from its last step to its first: the gradients of the sums that go into the gates. In a
 * step the gates' gradients of the step after it are multiplied by R, whose panels hold columns of units: the result is
 * the gradient of the hidden state, from which the gates' gradients come in registers and are written once. A
 * worker owns the same panels and samples through the whole sequence, so its part of R stays in its cache (DeepCPU,
 * 5.3); one barrier ends a step, unless no two workers share a sample.
 *
 * An activation's derivative is a function of its value, which S has, or of RNN Y. Beyond a sample's length all
 * gradients are zero. The gates' gradients have S's places, and may be written over S, or of RNN over the gradient of
 * Y; beside them is what else the gradients of weights need: of GRU_AFTER the gradient of the candidate's product with
 * R, of GRU_BEFORE its reset part, of LSTM with peepholes the cell state.
 */
#include "parts/trained_layer.h"

/* 1: the gradients of the initial states are wanted.
 * legal: 0 1 */
enum { INITIAL = 0 };

enum { PRODUCT_VECTORS = UNIT_VECTORS, SECOND_VECTORS = CELL == CELL_GRU_BEFORE ? UNIT_VECTORS : 0 };
/* Gates whose gradients of a step the next product takes; of GRU_BEFORE the candidate has one of its own. */
enum { PRODUCT_GATES = CELL == CELL_GRU_BEFORE ? 2 : GATES };

#include "parts/trained_product.h"

/* hook: the derivative of f by its value. */
static inline vec slope_f(vec y) { return vfnma(y, y, y); }
/* hook: the derivative of g by its value. */
static inline vec slope_g(vec y) { return vfnma(vset(1), y, y); }
/* hook: the derivative of h by its value. */
static inline vec slope_h(vec y) { return vfnma(vset(1), y, y); }
/* hook: h of ONNX: of LSTM's cell state. */
static inline vec activation_h(vec x) { return vtanh(x); }
/* hook: the derivative of f of the second direction. */
static inline vec second_slope_f(vec y) { return vfnma(y, y, y); }
/* hook: the derivative of g of the second direction. */
static inline vec second_slope_g(vec y) { return vfnma(vset(1), y, y); }
/* hook: the derivative of h of the second direction. */
static inline vec second_slope_h(vec y) { return vfnma(vset(1), y, y); }
/* hook: h of the second direction. */
static inline vec second_h(vec x) { return vtanh(x); }

/* One direction. */
typedef struct Layer {
  Extents extents;
  int64_t direction, panels, state_row, next_row, units_row; /* units_row: D * H */
  Share share;
  const float *weights;               /* [panels][GATES * H][UNIT_VECTORS][LANES]: columns of R */
  const float *peepholes;             /* [3: i o f][H] */
  const float *initial_h, *initial_c; /* or NULL */
  const float *y, *saved;             /* Y, S: of all directions; RNN has no S, its gate is Y */
  const float *dy, *dy_h, *dy_c;      /* or NULL */
  float *gates;                       /* [T * B][D][SAVED][H] */
  float *next[2];                     /* [B][next_row]: what the next product takes, of even and odd steps */
  float *carry, *cell;                /* [B][state_row]: parts of the states' gradients past the product */
  float *tile;                        /* [panels][B][UNIT_VECTORS][LANES] */
} Layer;

static inline vec derivative_f(int second, vec y) { return second ? second_slope_f(y) : slope_f(y); }
static inline vec derivative_g(int second, vec y) { return second ? second_slope_g(y) : slope_g(y); }
static inline vec derivative_h(int second, vec y) { return second ? second_slope_h(y) : slope_h(y); }
static inline vec function_h(int second, vec x) { return second ? second_h(x) : activation_h(x); }

/* One vector of units of one sample at a step. */
typedef struct Unit {
  const float *saved;               /* of the unit; gate g at g * H */
  float *gates, *next;              /* likewise */
  const float *h_before, *c_before; /* NULL: zeros */
  int64_t unit, count, at;
} Unit;

SIMD_FUNCTION vec saved_of(const Layer *l, const Unit *u, int place) {
  return panel_load(u->saved + place * l->extents.hidden, u->count);
}

SIMD_FUNCTION vec before_of(const float *from, int64_t count) { return from ? panel_load(from, count) : vzero(); }

/* The gradient of a gate's sum, for all steps together, and for the next product. */
SIMD_FUNCTION void give_gate(const Layer *l, const Unit *u, int gate, vec gradient) {
  panel_store(u->gates + gate * l->extents.hidden, gradient, u->count);
}
SIMD_FUNCTION void give_next(const Layer *l, const Unit *u, int gate, vec gradient) {
  panel_store(u->next + gate * l->extents.hidden, gradient, u->count);
}
SIMD_FUNCTION void give_both(const Layer *l, const Unit *u, int gate, vec gradient) {
  give_gate(l, u, gate, gradient);
  give_next(l, u, gate, gradient);
}

/* What follows the gates in S stays there. */
SIMD_FUNCTION void keep_part(const Layer *l, const Unit *u) {
  if (l->gates != l->saved) give_gate(l, u, GATES, saved_of(l, u, GATES));
}

SIMD_FUNCTION vec peephole(const Layer *l, const Unit *u, int gate, vec sum, vec gradient) {
  if (!PEEPHOLES) return sum;
  return vfma(sum, panel_load(l->peepholes + gate * l->extents.hidden + u->unit, u->count), gradient);
}

SIMD_FUNCTION void lstm_gates(const Layer *l, const Unit *u, int second, vec dh, vec dc) {
  vec in = saved_of(l, u, 0), out = saved_of(l, u, 1), forget = saved_of(l, u, 2), candidate = saved_of(l, u, 3);
  vec c_before = before_of(u->c_before, u->count), value = function_h(second, saved_of(l, u, 4));
  vec dout = vmul(vmul(dh, value), derivative_f(second, out));
  if (PEEPHOLES) keep_part(l, u);
  dc = peephole(l, u, 1, vfma(dc, vmul(dh, out), derivative_h(second, value)), dout);
  vec seen = INPUT_FORGET ? vsub(candidate, c_before) : candidate;
  vec din = vmul(vmul(dc, seen), derivative_f(second, in));
  vec dforget = INPUT_FORGET ? vzero() : vmul(vmul(dc, c_before), derivative_f(second, forget));
  give_both(l, u, 0, din);
  give_both(l, u, 1, dout);
  give_both(l, u, 2, dforget);
  give_both(l, u, 3, vmul(vmul(dc, in), derivative_g(second, candidate)));
  vstore(l->cell + u->at, peephole(l, u, 2, peephole(l, u, 0, vmul(dc, forget), din), dforget));
}

/* All of a GRU_AFTER; of GRU_BEFORE all but the reset gate, which waits for the candidate's product. */
SIMD_FUNCTION void gru_gates(const Layer *l, const Unit *u, int second, vec dh) {
  vec update = saved_of(l, u, 0), reset = saved_of(l, u, 1), candidate = saved_of(l, u, 2);
  vec h_before = before_of(u->h_before, u->count);
  vec dupdate = vmul(vmul(dh, vsub(h_before, candidate)), derivative_f(second, update));
  vec dcandidate = vmul(vmul(dh, vsub(vset(1), update)), derivative_g(second, candidate));
  give_both(l, u, 0, dupdate);
  give_gate(l, u, 2, dcandidate);
  vstore(l->carry + u->at, vmul(dh, update));
  if (CELL == CELL_GRU_BEFORE) {
    give_next(l, u, 2, dcandidate);
    keep_part(l, u);
    return;
  }
  vec dproduct = vmul(dcandidate, reset);
  give_both(l, u, 1, vmul(vmul(dcandidate, saved_of(l, u, 3)), derivative_f(second, reset)));
  give_next(l, u, 2, dproduct);
  give_gate(l, u, GATES, dproduct);
}

/* GRU_BEFORE, second half: `sum` is the gradient of the reset gate times the state. */
SIMD_FUNCTION void gru_reset(const Layer *l, const Unit *u, int second, vec sum) {
  vec reset = saved_of(l, u, 1);
  give_both(l, u, 1, vmul(vmul(sum, before_of(u->h_before, u->count)), derivative_f(second, reset)));
  vstore(l->carry + u->at, vfma(vload(l->carry + u->at), sum, reset));
}

SIMD_FUNCTION void no_gates(const Layer *l, const Unit *u) {
  for (int gate = 0; gate < GATES; gate++) give_both(l, u, gate, vzero());
  if (CELL == CELL_GRU_AFTER) give_gate(l, u, GATES, vzero());
  vstore(l->carry + u->at, vzero());
  if (CELL == CELL_LSTM) vstore(l->cell + u->at, vzero());
}

/* What comes to the hidden state of a step: through the step after it, from Y, and at the last step from Y_h. */
SIMD_FUNCTION vec hidden_gradient(const Layer *l, const Unit *u, vec sum, int64_t output, int64_t state, bool last) {
  vec dh = CELL == CELL_LSTM || CELL == CELL_RNN || last ? sum : vadd(sum, vload(l->carry + u->at));
  if (l->dy) dh = vadd(dh, panel_load(l->dy + output + u->unit, u->count));
  if (l->dy_h && last) dh = vadd(dh, panel_load(l->dy_h + state + u->unit, u->count));
  return dh;
}

SIMD_FUNCTION void finish_unit(const Layer *l, const Unit *u, int second, vec sum, int64_t output, int64_t state,
                               bool last) {
  vec dh = hidden_gradient(l, u, sum, output, state, last);
  if (CELL == CELL_LSTM) {
    vec dc = last ? before_of(l->dy_c ? l->dy_c + state + u->unit : NULL, u->count) : vload(l->cell + u->at);
    lstm_gates(l, u, second, dh, dc);
  } else if (CELL == CELL_RNN) {
    give_both(l, u, 0, vmul(dh, derivative_f(second, saved_of(l, u, 0))));
  } else {
    gru_gates(l, u, second, dh);
  }
}

/* Where a sample's step is in X's rows and Y's, in S and the gates' gradients, and the states that it began with: NULL
 * where these are zero. */
typedef struct Place {
  int64_t length, output, state;
  const float *saved, *h_before, *c_before;
  float *gates;
} Place;

static inline Place place_of(const Layer *l, int64_t step, int64_t sample) {
  const Extents *e = &l->extents;
  int64_t H = e->hidden, length = length_of(e, sample), time = time_of(e, l->direction, step, length);
  int64_t own = l->direction * H, row = row_at(e, time, sample) * l->units_row + own;
  Place at = {.length = length,
              .output = output_at(e, l->direction, time, sample),
              .state = state_at(e, l->direction, sample),
              .gates = l->gates + row * SAVED};
  bool first = step == 0;
  int64_t before = step < length && !first ? time_of(e, l->direction, step - 1, length) : 0;
  const float *h = first ? l->initial_h : l->y, *c = first ? l->initial_c : l->saved;
  at.saved = CELL == CELL_RNN ? l->y + at.output : l->saved + row * SAVED;
  if (h) at.h_before = h + (first ? at.state : output_at(e, l->direction, before, sample));
  if (CELL == CELL_LSTM && c)
    at.c_before = c + (first ? at.state : (row_at(e, before, sample) * l->units_row + own) * SAVED + GATES * H);
  return at;
}

static inline void fetch_sample(const Layer *l, int64_t step, int64_t panel, int64_t sample) {
  int64_t unit = panel * PANEL_UNITS, state = sample * l->state_row + unit;
  Place at = place_of(l, step, sample);
  for (int k = 0; k < SAVED; k++) fetch_units(at.saved + k * l->extents.hidden + unit);
  if (l->dy) fetch_units(l->dy + at.output + unit);
  if (CELL == CELL_LSTM) {
    if (at.c_before) fetch_units(at.c_before + unit);
    fetch_units(l->cell + state);
  } else if (CELL != CELL_RNN) {
    if (at.h_before) fetch_units(at.h_before + unit);
    fetch_units(l->carry + state);
  }
}

/* Ends a sample's step; `half`: of GRU_BEFORE its second half. */
SIMD_FUNCTION void finish_sample(const Layer *l, int64_t step, int64_t panel, int64_t sample, const float *tile,
                                 int second, bool half) {
  Place at = place_of(l, step, sample);
  bool inside = step < at.length;
  for (int v = 0; v < UNIT_VECTORS; v++) {
    int64_t unit = panel * PANEL_UNITS + v * LANES;
    Unit u = {.unit = unit, .count = l->extents.hidden - unit};
    u.saved = at.saved + unit;
    u.gates = at.gates + unit;
    u.next = l->next[step & 1] + sample * l->next_row + unit;
    u.h_before = at.h_before ? at.h_before + unit : NULL;
    if (CELL == CELL_LSTM) u.c_before = at.c_before ? at.c_before + unit : NULL;
    u.at = sample * l->state_row + unit;
    vec sum = vload(tile + v * LANES);
    if (!inside) {
      if (!half) no_gates(l, &u);
    } else if (half) {
      gru_reset(l, &u, second, sum);
    } else {
      finish_unit(l, &u, second, sum, at.output, at.state, step == at.length - 1);
    }
  }
}

SIMD_FUNCTION void finish_panel(const Layer *l, int64_t step, int64_t panel, const float *tile, int second, bool half) {
  const int64_t first = l->share.sample, end = l->share.sample_end;
  for (int64_t sample = first; sample < min_i64(first + SAMPLES_AHEAD, end); sample++)
    fetch_sample(l, step, panel, sample);
  for (int64_t sample = first; sample < end; sample++) {
    if (sample + SAMPLES_AHEAD < end) fetch_sample(l, step, panel, sample + SAMPLES_AHEAD);
    finish_sample(l, step, panel, sample, tile + (sample - first) * PANEL_UNITS, second, half);
  }
}

#include "parts/trained_finish.h"

/* The product of a panel, of depth 0 at the last step. half: of the candidate's gradients at this step, else of the
 * gates' at the step after it. Returns the tile. */
static const float *multiply(const Layer *l, int64_t step, int64_t panel, int64_t next, bool half) {
  const Share *s = &l->share;
  int64_t H = l->extents.hidden, floats = GATES * H * PANEL_UNITS, from = half ? PRODUCT_GATES * H : 0;
  int64_t depth = half ? H : step == l->extents.steps - 1 ? 0 : PRODUCT_GATES * H;
  const float *a = l->next[(half ? step : step + 1) & 1] + s->sample * l->next_row + from;
  float *tile = l->tile + (panel * l->extents.batch + s->sample) * PANEL_UNITS;
  multiply_panel(l->weights + panel * floats + from * PANEL_UNITS, l->weights + next * floats + from * PANEL_UNITS,
                 depth, a, l->next_row, tile, s->sample_end - s->sample, half);
  return tile;
}

/* This worker's panels, forwards on even steps and backwards on odd ones. */
static void sweep(const Layer *l, int64_t step, bool half) {
  const Share *s = &l->share;
  for (int64_t i = s->panel; i < s->panel_end; i++) {
    int64_t panel = panel_of(s, step, i), next = panel_after(s, step, panel);
    const float *tile = multiply(l, step, panel, next, half);
    finish(l, step, panel, tile, half);
  }
}

/* What came to the states before the first step. */
static void give_initial(const Layer *l, float *initial_dh, float *initial_dc) {
  const Share *s = &l->share;
  bool carries = CELL == CELL_GRU_AFTER || CELL == CELL_GRU_BEFORE;
  for (int64_t panel = s->panel; initial_dh && panel < s->panel_end; panel++) {
    const float *tile = multiply(l, -1, panel, panel, false);
    for (int64_t sample = s->sample; sample < s->sample_end; sample++) {
      for (int v = 0; v < UNIT_VECTORS; v++) {
        int64_t unit = panel * PANEL_UNITS + v * LANES;
        vec sum = vload(tile + ((sample - s->sample) * UNIT_VECTORS + v) * LANES);
        if (carries && l->extents.steps > 0) sum = vadd(sum, vload(l->carry + sample * l->state_row + unit));
        panel_store(initial_dh + state_at(&l->extents, l->direction, sample) + unit, sum, l->extents.hidden - unit);
      }
    }
  }
  for (int64_t sample = s->sample; CELL == CELL_LSTM && initial_dc && sample < s->sample_end; sample++) {
    for (int64_t unit = s->panel * PANEL_UNITS; unit < s->panel_end * PANEL_UNITS; unit += LANES) {
      vec dc = l->extents.steps > 0 ? vload(l->cell + sample * l->state_row + unit) : vzero();
      panel_store(initial_dc + state_at(&l->extents, l->direction, sample) + unit, dc, l->extents.hidden - unit);
    }
  }
}

static void run_steps(Team *team, const Layer *layers, int64_t directions, int64_t steps, bool meets) {
  for (int64_t step = steps - 1; step >= 0; step--) {
    if (meets) team_barrier(team);
    for (int64_t d = 0; d < directions; d++) sweep(&layers[d], step, false);
    if (CELL == CELL_GRU_BEFORE) {
      if (meets) team_barrier(team);
      for (int64_t d = 0; d < directions; d++) sweep(&layers[d], step, true);
    }
  }
}

/* weights: R, its columns packed. memory: D * B * (2 * GATES * H + 2 * (H padded to panels) + 4 * LANES) floats. tiles:
 * D * B * (H padded to panels). gates: [T * B][D][SAVED][H], S itself or elsewhere. Of what may be absent pointers are
 * NULL. */
static void recurrent_gradient(Team *team, const float *weights, const float *peepholes, const Length *lengths,
                               const float *initial_h, const float *initial_c, const float *y, const float *saved,
                               const float *dy, const float *dy_h, const float *dy_c, float *gates, float *initial_dh,
                               float *initial_dc, float *memory, float *tiles, int64_t steps, int64_t batch,
                               int64_t hidden, int64_t directions, int64_t reverse, int64_t batch_first) {
  Layer layers[2];
  Extents extents = {steps, batch, hidden, directions, lengths, reverse, batch_first};
  bool meets = false;
  for (int64_t d = 0; d < directions; d++) {
    Layer l = {.extents = extents, .direction = d, .panels = ceil_div(hidden, PANEL_UNITS), .y = y, .saved = saved};
    Crew crew = crew_of(team, directions, d, l.panels, batch);
    meets |= crew.unit_ways > 1;
    l.share = share_of(team, &crew, l.panels, batch);
    l.state_row = l.panels * PANEL_UNITS + LANES;
    l.next_row = GATES * hidden + LANES;
    l.units_row = directions * hidden;
    l.weights = weights + d * l.panels * GATES * hidden * PANEL_UNITS;
    if (PEEPHOLES) l.peepholes = peepholes + d * 3 * hidden;
    l.initial_h = initial_h;
    l.initial_c = initial_c;
    l.dy = dy;
    l.dy_h = dy_h;
    l.dy_c = dy_c;
    l.gates = gates;
    float *own = memory + d * batch * 2 * (l.next_row + l.state_row);
    l.next[0] = own;
    l.next[1] = own + batch * l.next_row;
    l.carry = own + batch * 2 * l.next_row;
    l.cell = l.carry + batch * l.state_row;
    l.tile = tiles + d * batch * l.panels * PANEL_UNITS;
    layers[d] = l;
  }
  run_steps(team, layers, directions, steps, meets);
  if (!INITIAL) return;
  if (meets) team_barrier(team);
  for (int64_t d = 0; d < directions; d++) give_initial(&layers[d], initial_dh, initial_dc);
}
