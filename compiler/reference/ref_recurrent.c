/* SPDX-License-Identifier: MIT */
/*
 * RNN, GRU and LSTM: one sequence of one direction at a time, state in double from first to last step.
 *
 * T steps, B sequences, I inputs, H units, D directions. Weights W[D, gates*H, I], R[D, gates*H, H],
 * biases B[D, 2*gates*H] (Wb then Rb), peepholes P[D, 3*H]. Gate orders are ONNX's: z r h (GRU), i o f c (LSTM),
 * i o f (peepholes).
 *
 * Where ONNX's text leaves room, this does what ONNX Runtime does:
 *   - clip bounds the sums that enter the gates' activations, biases and peepholes included; not the cell state;
 *   - the reverse direction turns each sequence around within its own length;
 *   - Y is zero past a sequence's length; Y_h and Y_c are taken at its last step, and are zero for an empty sequence;
 *   - input_forget replaces the forget gate by 1 - i, its weights and peephole go unread.
 *
 * GRUTraining and LSTMTraining also store S, see ir/cell.h.
 */
#include <math.h>
#include <string.h>

#include "reference/recurrent.h"

/* One sequence in one direction. */
typedef struct Sequence Sequence;
struct Sequence {
  const Network *net;
  void (*step)(Sequence *sequence, int64_t t);
  const Activation *activations; /* of this direction */
  int64_t d, batch, length;
  double *h, *c;           /* state, H each */
  double *gate[MAX_GATES]; /* of the current step, H each; a GRU's last one has its reset part */
};

/* ---- activation functions ---- */

static double apply_Affine(double x, double alpha, double beta) { return alpha * x + beta; }
static double apply_Elu(double x, double alpha, double beta) { return (void)beta, x < 0 ? alpha * expm1(x) : x; }
static double apply_LeakyRelu(double x, double alpha, double beta) { return (void)beta, x < 0 ? alpha * x : x; }
static double apply_Relu(double x, double alpha, double beta) { return (void)alpha, (void)beta, x < 0 ? 0 : x; }
static double apply_ScaledTanh(double x, double alpha, double beta) { return alpha * tanh(beta * x); }
static double apply_Sigmoid(double x, double alpha, double beta) { return (void)alpha, (void)beta, 1 / (1 + exp(-x)); }
static double apply_Softsign(double x, double alpha, double beta) { return (void)alpha, (void)beta, x / (1 + fabs(x)); }
static double apply_Tanh(double x, double alpha, double beta) { return (void)alpha, (void)beta, tanh(x); }
static double apply_ThresholdedRelu(double x, double alpha, double beta) { return (void)beta, x > alpha ? x : 0; }
static double apply_HardSigmoid(double x, double alpha, double beta) {
  return isnan(x) ? x : fmax(0, fmin(1, alpha * x + beta));
}
static double apply_Softplus(double x, double alpha, double beta) {
  return (void)alpha, (void)beta, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double (*const functions[])(double x, double alpha, double beta) = {
#define ACTIVATION(name, ...) apply_##name,
#include "ir/cells.def"
};

double activation_apply(const Activation *activation, double x) {
  return functions[activation->kind](x, activation->alpha, activation->beta);
}

/* ---- steps ---- */

/* sum_i x[t, i] W[gate, unit, i] */
static double input_sum(const Sequence *s, int64_t t, int gate, int64_t unit) {
  const Network *net = s->net;
  int64_t x = input_row(net, s->batch, t);
  int64_t w = ((s->d * net->cell->gates + gate) * net->H + unit) * net->I;
  double sum = 0;
  for (int64_t i = 0; i < net->I; i++) sum += tensor_get(net->x, x + i) * tensor_get(net->w, w + i);
  return sum;
}

/* sum_k h[k] R[gate, unit, k] */
static double hidden_sum(const Sequence *s, const double *h, int gate, int64_t unit) {
  const Network *net = s->net;
  int64_t r = ((s->d * net->cell->gates + gate) * net->H + unit) * net->H;
  double sum = 0;
  for (int64_t k = 0; k < net->H; k++) sum += h[k] * tensor_get(net->r, r + k);
  return sum;
}

/* Wb: half 0, Rb: half 1. */
static double bias(const Sequence *s, int half, int gate, int64_t unit) {
  const Network *net = s->net;
  int gates = net->cell->gates;
  return net->b ? tensor_get(net->b, ((s->d * 2 + half) * gates + gate) * net->H + unit) : 0;
}

/* c[unit] times its peephole weight; 0 without peepholes. Order i o f. */
static double peephole(const Sequence *s, int gate, int64_t unit) {
  const Network *net = s->net;
  return net->p ? s->c[unit] * tensor_get(net->p, (s->d * 3 + gate) * net->H + unit) : 0;
}

static double activate(const Sequence *s, int activation, double sum) {
  double clip = s->net->clip;
  sum = sum > clip ? clip : sum < -clip ? -clip : sum;
  return activation_apply(&s->activations[activation], sum);
}

static double all_sums(const Sequence *s, int64_t t, int gate, int64_t unit) {
  return input_sum(s, t, gate, unit) + hidden_sum(s, s->h, gate, unit) + bias(s, 0, gate, unit) +
         bias(s, 1, gate, unit);
}

/* Row `place` of S: of the gates, or what follows them. */
static void save(const Sequence *s, int64_t t, int place, const double *values) {
  const Network *net = s->net;
  int64_t row = saved_row(net, s->d, s->batch, t) + place * net->H;
  for (int64_t j = 0; net->saved && j < net->H; j++) tensor_set(net->saved, row + j, values[j]);
}

static void save_gates(const Sequence *s, int64_t t) {
  for (int gate = 0; gate < s->net->cell->gates; gate++) save(s, t, gate, s->gate[gate]);
}

/* H' = f(X W + H R + Wb + Rb) */
static void rnn_step(Sequence *s, int64_t t) {
  int64_t H = s->net->H;
  for (int64_t j = 0; j < H; j++) s->gate[RNN_h][j] = activate(s, 0, all_sums(s, t, RNN_h, j));
  memcpy(s->h, s->gate[RNN_h], (size_t)H * sizeof *s->h);
}

/* z = f(..), r = f(..), h = g(X Wh + (r . H) Rh + Wbh + Rbh), H' = (1 - z) . h + z . H;
 * with linear_before_reset: h = g(X Wh + r . (H Rh + Rbh) + Wbh). */
static void gru_step(Sequence *s, int64_t t) {
  enum { RESET = GRU_GATES }; /* r . H, or H Rh + Rbh, beside the gates */
  int64_t H = s->net->H;
  for (int64_t j = 0; j < H; j++) {
    s->gate[GRU_z][j] = activate(s, 0, all_sums(s, t, GRU_z, j));
    s->gate[GRU_r][j] = activate(s, 0, all_sums(s, t, GRU_r, j));
    s->gate[RESET][j] = s->net->linear_before_reset ? hidden_sum(s, s->h, GRU_h, j) + bias(s, 1, GRU_h, j)
                                                    : s->gate[GRU_r][j] * s->h[j];
  }
  for (int64_t j = 0; j < H; j++) {
    double sum = input_sum(s, t, GRU_h, j) + bias(s, 0, GRU_h, j);
    if (s->net->linear_before_reset)
      sum += s->gate[GRU_r][j] * s->gate[RESET][j];
    else
      sum += hidden_sum(s, s->gate[RESET], GRU_h, j) + bias(s, 1, GRU_h, j);
    s->gate[GRU_h][j] = activate(s, 1, sum);
  }
  for (int64_t j = 0; j < H; j++) s->h[j] = (1 - s->gate[GRU_z][j]) * s->gate[GRU_h][j] + s->gate[GRU_z][j] * s->h[j];
  save_gates(s, t);
  save(s, t, RESET, s->gate[RESET]);
}

/* i, f = f(.. + P . C), C' = f . C + i . g(..), o = f(.. + P . C'), H' = o . h(C') */
static void lstm_step(Sequence *s, int64_t t) {
  int64_t H = s->net->H;
  for (int gate = 0; gate < LSTM_GATES; gate++)
    for (int64_t j = 0; j < H; j++) s->gate[gate][j] = all_sums(s, t, gate, j);
  for (int64_t j = 0; j < H; j++) {
    double in = activate(s, 0, s->gate[LSTM_i][j] + peephole(s, LSTM_i, j));
    double forget = s->net->input_forget ? 1 - in : activate(s, 0, s->gate[LSTM_f][j] + peephole(s, LSTM_f, j));
    double candidate = activate(s, 1, s->gate[LSTM_c][j]);
    s->c[j] = forget * s->c[j] + in * candidate;
    double out = activate(s, 0, s->gate[LSTM_o][j] + peephole(s, LSTM_o, j));
    double values[] = {[LSTM_i] = in, [LSTM_o] = out, [LSTM_f] = forget, [LSTM_c] = candidate};
    for (int gate = 0; gate < LSTM_GATES; gate++) s->gate[gate][j] = values[gate];
    s->h[j] = out * activation_apply(&s->activations[2], s->c[j]);
  }
  save_gates(s, t);
  save(s, t, LSTM_GATES, s->c);
}

int64_t state_row(const Network *net, int64_t d, int64_t batch) {
  return (net->batch_first ? batch * net->directions + d : d * net->B + batch) * net->H;
}

int64_t output_row(const Network *net, int64_t d, int64_t batch, int64_t t) {
  int64_t row =
      net->batch_first ? (batch * net->T + t) * net->directions + d : (t * net->directions + d) * net->B + batch;
  return row * net->H;
}

int64_t saved_row(const Network *net, int64_t d, int64_t batch, int64_t t) {
  int64_t step = net->batch_first ? batch * net->T + t : t * net->B + batch;
  return (step * net->directions + d) * cell_saved(net->cell) * net->H;
}

int64_t input_row(const Network *net, int64_t batch, int64_t t) {
  return (net->batch_first ? batch * net->T + t : t * net->B + batch) * net->I;
}

int64_t step_time(const Network *net, int64_t d, int64_t length, int64_t step) {
  return net->reverse || d == 1 ? length - 1 - step : step;
}

static void load_row(double *state, const Tensor *from, int64_t row, int64_t H) {
  for (int64_t j = 0; j < H; j++) state[j] = from ? tensor_get(from, row + j) : 0;
}

static void store_row(Tensor *to, int64_t row, const double *state, int64_t H) {
  for (int64_t j = 0; to && j < H; j++) tensor_set(to, row + j, state[j]);
}

/* Outputs come zeroed, so what a short sequence does not reach needs no writing. */
static void run_sequence(Sequence *s) {
  const Network *net = s->net;
  int64_t state = state_row(net, s->d, s->batch);
  load_row(s->h, net->h0, state, net->H);
  load_row(s->c, net->c0, state, net->H);
  for (int64_t step = 0; step < s->length; step++) {
    int64_t t = step_time(net, s->d, s->length, step);
    s->step(s, t);
    store_row(net->y, output_row(net, s->d, s->batch, t), s->h, net->H);
  }
  if (s->length == 0) return;
  store_row(net->y_h, state, s->h, net->H);
  store_row(net->y_c, state, s->c, net->H);
}

static bool fits(const Tensor *tensor, int64_t count) { return !tensor || tensor_count(tensor) == count; }

static bool shapes_fit(const Network *net) {
  int64_t D = net->directions, gates = net->cell->gates, H = net->H, states = D * net->B * H;
  return fits(net->x, net->T * net->B * net->I) && fits(net->w, D * gates * H * net->I) &&
         fits(net->r, D * gates * H * H) && fits(net->b, 2 * D * gates * H) && fits(net->lengths, net->B) &&
         fits(net->h0, states) && fits(net->c0, states) && fits(net->p, 3 * D * H);
}

const char *read_network(const Node *node, const Tensor *const *inputs, Network *net) {
  const CellKind *cell = layer_cell(node->op->kind);
  Direction direction = node_word(node, ATTR_direction);
  *net = (Network){.cell = cell,
                   .x = inputs[INPUT_X],
                   .w = inputs[INPUT_W],
                   .r = inputs[INPUT_R],
                   .b = optional_input(node, inputs, INPUT_B),
                   .lengths = optional_input(node, inputs, INPUT_LENGTHS),
                   .h0 = optional_input(node, inputs, INPUT_H),
                   .c0 = cell->op == OP_LSTM ? optional_input(node, inputs, INPUT_C) : NULL,
                   .p = cell->op == OP_LSTM ? optional_input(node, inputs, INPUT_P) : NULL,
                   .directions = direction == DIRECTION_bidirectional ? 2 : 1,
                   .reverse = direction == DIRECTION_reverse,
                   .batch_first = node_int(node, ATTR_layout),
                   .linear_before_reset = cell->op == OP_GRU && node_int(node, ATTR_linear_before_reset),
                   .input_forget = cell->op == OP_LSTM && node_int(node, ATTR_input_forget),
                   .clip = node_has(node, ATTR_clip) ? node_float(node, ATTR_clip) : INFINITY};
  net->T = net->x->shape[net->batch_first ? 1 : 0];
  net->B = net->x->shape[net->batch_first ? 0 : 1];
  net->I = net->x->shape[2];
  net->H = net->r->shape[2];
  if (net->clip == 0) net->clip = INFINITY; /* as ONNX Runtime has it */
  if (!shapes_fit(net)) return "shapes of the recurrent op's tensors do not agree";
  read_activations(node, net->activations);
  for (int64_t batch = 0; net->lengths && batch < net->B; batch++) {
    int64_t length = tensor_get_int(net->lengths, batch);
    if (length < 0 || length > net->T) return "a sequence length is negative or past the number of steps";
  }
  return NULL;
}

static const char *take_outputs(const Node *node, Tensor *const *outputs, Network *net) {
  int states = net->cell->states;
  net->y = optional_output(node, outputs, 0);
  net->y_h = optional_output(node, outputs, 1);
  net->y_c = states > 1 ? optional_output(node, outputs, 2) : NULL;
  net->saved = optional_output(node, outputs, 1 + states);
  int64_t state = net->directions * net->B * net->H;
  bool fit = fits(net->y, net->T * state) && fits(net->y_h, state) && fits(net->y_c, state);
  return fit && fits(net->saved, net->T * state * cell_saved(net->cell)) ? NULL : "shapes of the results do not agree";
}

int64_t sequence_length(const Network *net, int64_t batch) {
  return net->lengths ? tensor_get_int(net->lengths, batch) : net->T;
}

static void run_network(const Network *net, void (*step)(Sequence *, int64_t), Arena *scratch) {
  Sequence s = {.net = net, .step = step};
  s.h = ARENA_ARRAY(scratch, double, net->H);
  s.c = ARENA_ARRAY(scratch, double, net->H);
  for (int gate = 0; gate < MAX_GATES; gate++) s.gate[gate] = ARENA_ARRAY(scratch, double, net->H);
  for (s.d = 0; s.d < net->directions; s.d++) {
    s.activations = net->activations + s.d * net->cell->activations;
    for (s.batch = 0; s.batch < net->B; s.batch++) {
      s.length = sequence_length(net, s.batch);
      run_sequence(&s);
    }
  }
}

const char *ref_recurrent(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  static void (*const steps[N_OPS])(Sequence *,
                                    int64_t) = {[OP_RNN] = rnn_step, [OP_GRU] = gru_step, [OP_LSTM] = lstm_step};
  Network net;
  const char *wrong = read_network(node, inputs, &net);
  if (!wrong) wrong = take_outputs(node, outputs, &net);
  if (wrong) return wrong;
  Arena *scratch = arena_new();
  run_network(&net, steps[net.cell->op], scratch);
  arena_free(scratch);
  return NULL;
}
