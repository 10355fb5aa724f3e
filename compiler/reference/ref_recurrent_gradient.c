/* SPDX-License-Identifier: MIT */
/*
 * Gradients of RNN, GRU and LSTM: one sequence of one direction at a time, from its last step to its first. All sums
 * are in double. The layer's forward steps are those of ref_recurrent.c; S has the activated gates, of RNN Y.
 *
 * An activation's derivative is a function of its value, so that no sum before an activation is kept. dgates are the
 * gradients of these sums. Names: dh and dc are those of the state that a step makes, when it begins; of the state that
 * the step was given, when it ends.
 */
#include <math.h>
#include <string.h>

#include "reference/recurrent.h"

/* A gradient in double, which becomes an output at the end. */
typedef struct Total {
  int64_t count;
  double *sums;
} Total;

typedef struct Gradient {
  Network net;
  const Tensor *y, *s, *dy, *dy_h, *dy_c; /* s: NULL of RNN; the last three NULL where they are zero */
  Total totals[GRADIENT_P + 1];           /* by output */
} Gradient;

/* One step of one sequence in one direction. H each. */
typedef struct Step {
  const Gradient *g;
  const Activation *activations;
  int64_t d, batch, t;
  double *dh, *dc;
  double *gate[MAX_GATES + 1]; /* what S has: the gates, then a cell or a reset part */
  double *h_before, *c_before; /* the state that the step was given */
  double *dgate[MAX_GATES];    /* of the sums that go into the activations */
  double *dproduct;            /* linear_before_reset: of the candidate's product with R, and its bias */
  double *factor;              /* what the candidate's rows of R multiply: the state, or the reset gate times it */
} Step;

/* ---- derivatives of activations, by their value ---- */

static double slope_Affine(double y, const Activation *a) { return (void)y, a->alpha; }
static double slope_Elu(double y, const Activation *a) { return y > 0 ? 1 : y + a->alpha; }
static double slope_LeakyRelu(double y, const Activation *a) { return y > 0 ? 1 : a->alpha; }
static double slope_Relu(double y, const Activation *a) { return (void)a, y > 0; }
static double slope_ScaledTanh(double y, const Activation *a) { return a->beta * (a->alpha - y * y / a->alpha); }
static double slope_Sigmoid(double y, const Activation *a) { return (void)a, y * (1 - y); }
static double slope_Softplus(double y, const Activation *a) { return (void)a, -expm1(-y); }
static double slope_Softsign(double y, const Activation *a) { return (void)a, (1 - fabs(y)) * (1 - fabs(y)); }
static double slope_Tanh(double y, const Activation *a) { return (void)a, 1 - y * y; }
static double slope_ThresholdedRelu(double y, const Activation *a) { return (void)a, y != 0; }
static double slope_HardSigmoid(double y, const Activation *a) { return y > 0 && y < 1 ? a->alpha : 0; }

static double (*const slopes[])(double y, const Activation *activation) = {
#define ACTIVATION(name, ...) slope_##name,
#include "ir/cells.def"
};

/* Of activation f, g or h (0, 1, 2) where its value is y. */
static double slope(const Step *s, int activation, double y) {
  return slopes[s->activations[activation].kind](y, &s->activations[activation]);
}

/* ---- cells: dgate and dproduct of a step; what of dh and dc goes to the state before past the products ---- */

static void rnn_backward(Step *s) {
  for (int64_t j = 0; j < s->g->net.H; j++) {
    s->dgate[RNN_h][j] = s->dh[j] * slope(s, 0, s->gate[RNN_h][j]);
    s->dh[j] = 0;
  }
}

/* sum_k of dgate[gate][k] R[gate, k, unit]: a gate's part of the gradient of what R multiplies. */
static double through_hidden(const Step *s, const double *dgate, int gate, int64_t unit) {
  const Network *net = &s->g->net;
  int64_t r = (s->d * net->cell->gates + gate) * net->H * net->H + unit;
  double sum = 0;
  for (int64_t k = 0; k < net->H; k++) sum += dgate[k] * tensor_get(net->r, r + k * net->H);
  return sum;
}

static void gru_backward(Step *s) {
  const Network *net = &s->g->net;
  const double *z = s->gate[GRU_z], *r = s->gate[GRU_r], *h = s->gate[GRU_h], *part = s->gate[GRU_GATES];
  for (int64_t j = 0; j < net->H; j++) {
    s->dgate[GRU_z][j] = s->dh[j] * (s->h_before[j] - h[j]) * slope(s, 0, z[j]);
    s->dgate[GRU_h][j] = s->dh[j] * (1 - z[j]) * slope(s, 1, h[j]);
    s->dh[j] *= z[j];
  }
  for (int64_t j = 0; j < net->H; j++) {
    double candidate = s->dgate[GRU_h][j];
    double dr = candidate * part[j];
    if (net->linear_before_reset) {
      s->dproduct[j] = candidate * r[j];
    } else {
      double dreset = through_hidden(s, s->dgate[GRU_h], GRU_h, j);
      dr = dreset * s->h_before[j];
      s->dh[j] += dreset * r[j];
    }
    s->dgate[GRU_r][j] = dr * slope(s, 0, r[j]);
    s->factor[j] = net->linear_before_reset ? s->h_before[j] : part[j];
  }
}

/* P[gate, unit]; 0 without peepholes. Order i o f. */
static double peephole(const Step *s, int gate, int64_t unit) {
  const Network *net = &s->g->net;
  return net->p ? tensor_get(net->p, (s->d * 3 + gate) * net->H + unit) : 0;
}

static void lstm_backward(Step *s) {
  const Network *net = &s->g->net;
  for (int64_t j = 0; j < net->H; j++) {
    double in = s->gate[LSTM_i][j], out = s->gate[LSTM_o][j], forget = s->gate[LSTM_f][j];
    double candidate = s->gate[LSTM_c][j], c = s->gate[LSTM_GATES][j];
    double value = activation_apply(&s->activations[2], c);
    double dout = s->dh[j] * value * slope(s, 0, out);
    double dc = s->dc[j] + s->dh[j] * out * slope(s, 2, value) + peephole(s, LSTM_o, j) * dout;
    double coupled = net->input_forget ? s->c_before[j] : 0;
    double din = dc * (candidate - coupled) * slope(s, 0, in);
    double dforget = net->input_forget ? 0 : dc * s->c_before[j] * slope(s, 0, forget);
    s->dgate[LSTM_i][j] = din;
    s->dgate[LSTM_o][j] = dout;
    s->dgate[LSTM_f][j] = dforget;
    s->dgate[LSTM_c][j] = dc * in * slope(s, 1, candidate);
    s->dc[j] = dc * forget + peephole(s, LSTM_i, j) * din + peephole(s, LSTM_f, j) * dforget;
    s->dh[j] = 0;
  }
}

/* ---- what a step adds to the gradients ---- */

/* The gradient of what R's rows of this gate make, and what they multiply. */
static const double *product_gradient(const Step *s, int gate) {
  bool after = s->g->net.linear_before_reset && gate == GRU_h;
  return after ? s->dproduct : s->dgate[gate];
}
static const double *hidden_factor(const Step *s, int gate) {
  return s->g->net.cell->op == OP_GRU && gate == GRU_h ? s->factor : s->h_before;
}

static void add_weights(const Step *s) {
  const Gradient *g = s->g;
  const Network *net = &g->net;
  int64_t x = input_row(net, s->batch, s->t), gates = net->cell->gates;
  for (int gate = 0; gate < gates; gate++) {
    const double *dgate = s->dgate[gate], *dproduct = product_gradient(s, gate), *factor = hidden_factor(s, gate);
    for (int64_t j = 0; j < net->H; j++) {
      int64_t row = (s->d * gates + gate) * net->H + j;
      for (int64_t i = 0; i < net->I; i++) {
        g->totals[GRADIENT_W].sums[row * net->I + i] += dgate[j] * tensor_get(net->x, x + i);
        g->totals[GRADIENT_X].sums[x + i] += dgate[j] * tensor_get(net->w, row * net->I + i);
      }
      for (int64_t k = 0; k < net->H; k++) g->totals[GRADIENT_R].sums[row * net->H + k] += dproduct[j] * factor[k];
      int64_t bias = (s->d * 2 * gates + gate) * net->H + j;
      g->totals[GRADIENT_B].sums[bias] += dgate[j];
      g->totals[GRADIENT_B].sums[bias + gates * net->H] += dproduct[j];
    }
  }
}

static void add_peepholes(const Step *s) {
  const Network *net = &s->g->net;
  double *sums = s->g->totals[GRADIENT_P].sums;
  for (int gate = LSTM_i; gate <= LSTM_f; gate++) {
    const double *c = gate == LSTM_o ? s->gate[LSTM_GATES] : s->c_before;
    for (int64_t j = 0; j < net->H; j++) sums[(s->d * 3 + gate) * net->H + j] += s->dgate[gate][j] * c[j];
  }
}

/* Without reset (GRU_before's candidate) the product was of the state. */
static void add_hidden(const Step *s) {
  const Network *net = &s->g->net;
  for (int gate = 0; gate < net->cell->gates; gate++) {
    if (net->cell->op == OP_GRU && gate == GRU_h && !net->linear_before_reset) continue;
    for (int64_t j = 0; j < net->H; j++) s->dh[j] += through_hidden(s, product_gradient(s, gate), gate, j);
  }
}

/* ---- steps ---- */

static void load_row(double *to, const Tensor *from, int64_t row, int64_t n) {
  for (int64_t j = 0; j < n; j++) to[j] = from ? tensor_get(from, row + j) : 0;
}

static void add_row(double *to, const Tensor *from, int64_t row, int64_t n) {
  for (int64_t j = 0; from && j < n; j++) to[j] += tensor_get(from, row + j);
}

/* What S has of the step, and the state before it: of the step before, or the initial one. before: its time, or -1. */
static void load_step(Step *s, int64_t before) {
  const Network *net = &s->g->net;
  int64_t H = net->H, saved = saved_row(net, s->d, s->batch, s->t), state = state_row(net, s->d, s->batch);
  for (int k = 0; k < cell_saved(net->cell); k++) load_row(s->gate[k], s->g->s, saved + k * H, H);
  if (!s->g->s) load_row(s->gate[RNN_h], s->g->y, output_row(net, s->d, s->batch, s->t), H);
  if (before < 0) {
    load_row(s->h_before, net->h0, state, H);
    load_row(s->c_before, net->c0, state, H);
    return;
  }
  load_row(s->h_before, s->g->y, output_row(net, s->d, s->batch, before), H);
  if (net->cell->op == OP_LSTM)
    load_row(s->c_before, s->g->s, saved_row(net, s->d, s->batch, before) + LSTM_GATES * H, H);
}

static void (*const backward[N_OPS])(Step *) = {
    [OP_RNN] = rnn_backward, [OP_GRU] = gru_backward, [OP_LSTM] = lstm_backward};

static void run_sequence(Step *s, int64_t length) {
  const Gradient *g = s->g;
  const Network *net = &g->net;
  int64_t state = state_row(net, s->d, s->batch);
  load_row(s->dh, length ? g->dy_h : NULL, state, net->H);
  load_row(s->dc, length ? g->dy_c : NULL, state, net->H);
  for (int64_t step = length - 1; step >= 0; step--) {
    s->t = step_time(net, s->d, length, step);
    load_step(s, step ? step_time(net, s->d, length, step - 1) : -1);
    add_row(s->dh, g->dy, output_row(net, s->d, s->batch, s->t), net->H);
    backward[net->cell->op](s);
    add_weights(s);
    if (net->cell->op == OP_LSTM) add_peepholes(s);
    add_hidden(s);
  }
  for (int64_t j = 0; j < net->H; j++) {
    g->totals[GRADIENT_H].sums[state + j] += s->dh[j];
    g->totals[GRADIENT_C].sums[state + j] += s->dc[j];
  }
}

static double *numbers(Arena *arena, int64_t n) { return ARENA_ARRAY(arena, double, n ? n : 1); }

static void make_totals(Gradient *g, Arena *scratch) {
  const Network *net = &g->net;
  int64_t D = net->directions, gates = D * net->cell->gates * net->H, state = D * net->B * net->H;
  const int64_t counts[] = {[GRADIENT_X] = net->T * net->B * net->I,
                            [GRADIENT_W] = gates * net->I,
                            [GRADIENT_R] = gates * net->H,
                            [GRADIENT_B] = 2 * gates,
                            [GRADIENT_H] = state,
                            [GRADIENT_C] = state,
                            [GRADIENT_P] = D * 3 * net->H};
  for (int i = 0; i <= GRADIENT_P; i++) g->totals[i] = (Total){counts[i], numbers(scratch, counts[i])};
}

static void run_gradient(const Gradient *g, Arena *scratch) {
  int64_t H = g->net.H;
  Step s = {.g = g, .dh = numbers(scratch, H), .dc = numbers(scratch, H)};
  s.h_before = numbers(scratch, H), s.c_before = numbers(scratch, H);
  s.dproduct = numbers(scratch, H), s.factor = numbers(scratch, H);
  for (int i = 0; i <= MAX_GATES; i++) s.gate[i] = numbers(scratch, H);
  for (int i = 0; i < MAX_GATES; i++) s.dgate[i] = numbers(scratch, H);
  for (s.d = 0; s.d < g->net.directions; s.d++) {
    s.activations = g->net.activations + s.d * g->net.cell->activations;
    for (s.batch = 0; s.batch < g->net.B; s.batch++) run_sequence(&s, sequence_length(&g->net, s.batch));
  }
}

const char *ref_recurrent_gradient(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  Gradient g = {0};
  const char *wrong = read_network(node, inputs, &g.net);
  if (wrong) return wrong;
  const CellKind *cell = g.net.cell;
  g.y = inputs[gradient_input(cell, GRADIENT_Y)];
  g.s = cell_saved(cell) ? inputs[gradient_input(cell, GRADIENT_S)] : NULL;
  g.dy = optional_input(node, inputs, gradient_input(cell, GRADIENT_DY));
  g.dy_h = optional_input(node, inputs, gradient_input(cell, GRADIENT_DY_H));
  g.dy_c = optional_input(node, inputs, gradient_input(cell, GRADIENT_DY_C));
  Arena *scratch = arena_new();
  make_totals(&g, scratch);
  run_gradient(&g, scratch);
  for (int i = 0; i < node->n_outputs; i++) {
    Tensor *output = optional_output(node, outputs, i);
    for (int64_t k = 0; output && k < g.totals[i].count; k++) tensor_set(output, k, g.totals[i].sums[k]);
  }
  arena_free(scratch);
  return NULL;
}
