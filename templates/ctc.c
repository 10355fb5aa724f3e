/* SPDX-License-Identifier: MIT */
/*
 * Connectionist temporal classification (Graves, Fernandez, Gomez and Schmidhuber, ICML 2006): the negative logarithm
 * of the probability of all ways to write `lengths` labels in `steps` frames, and its gradient for the frames' scores.
 * States are the labels with a blank around each; sums over ways are of logarithms, in double. Workers share the
 * samples.
 */
#include "double.h"
#include "kernel.h"

/* 1: writes the gradient.
 * legal: 0 1 */
enum { GRADIENT = 1 };
/* 1: where no way is long enough the loss and the gradient are 0, not infinite.
 * legal: 0 1 */
enum { ZERO_INFINITY = 0 };

#define CTC_NEVER (-__builtin_inf())

/* One sample: frame t has its scores at scores + t * row. */
typedef struct Ctc {
  const float *scores;
  const int64_t *labels;
  int64_t row, steps, length, blank;
} Ctc;

static inline int64_t ctc_label(const Ctc *c, int64_t state) { return state & 1 ? c->labels[state / 2] : c->blank; }
static inline double ctc_score(const Ctc *c, int64_t t, int64_t state) {
  return (double)c->scores[t * c->row + ctc_label(c, state)];
}

/* May a way go from the state two before to this one, past a blank? */
static inline bool ctc_skips(const Ctc *c, int64_t state) {
  return (state & 1) && state >= 3 && c->labels[state / 2] != c->labels[state / 2 - 1];
}

static inline double ctc_power(double x) { return x == CTC_NEVER ? 0 : exp_f64(x); }

/* log(e^a + e^b + e^c) */
static inline double ctc_sum(double a, double b, double c) {
  double most = a > b ? a : b;
  most = c > most ? c : most;
  if (most == CTC_NEVER) return a + b + c; /* NaN stays */
  return most + log_f64(ctc_power(a - most) + ctc_power(b - most) + ctc_power(c - most));
}

/* alpha[state]: of all ways that are there at frame t, from those of the frame before. */
static void ctc_forward(const Ctc *c, int64_t t, const double *before, double *alpha) {
  for (int64_t s = 0; s < 2 * c->length + 1; s++) {
    double ways = t ? ctc_sum(before[s], s ? before[s - 1] : CTC_NEVER, ctc_skips(c, s) ? before[s - 2] : CTC_NEVER)
                  : s < 2 ? 0
                          : CTC_NEVER;
    alpha[s] = ways + ctc_score(c, t, s);
  }
}

/* beta[state]: of all ways on from there after frame t, from those after frame t + 1. */
static void ctc_backward(const Ctc *c, int64_t t, double *beta) {
  int64_t states = 2 * c->length + 1;
  for (int64_t s = 0; s < states; s++) beta[s] += ctc_score(c, t + 1, s);
  for (int64_t s = 0; s < states; s++) {
    double skip = s + 2 < states && ctc_skips(c, s + 2) ? beta[s + 2] : CTC_NEVER;
    beta[s] = ctc_sum(beta[s], s + 1 < states ? beta[s + 1] : CTC_NEVER, skip);
  }
}

/* alpha: [steps][states], or two rows in turns. Returns the loss. */
static double ctc_loss(const Ctc *c, double *alpha) {
  int64_t states = 2 * c->length + 1;
  if (c->steps == 0) return c->length ? -CTC_NEVER : 0;
  double *row = alpha;
  for (int64_t t = 0; t < c->steps; t++) {
    const double *before = row;
    row = alpha + (GRADIENT ? t : t & 1) * states;
    ctc_forward(c, t, before, row);
  }
  return -ctc_sum(row[states - 1], c->length ? row[states - 2] : CTC_NEVER, CTC_NEVER);
}

/* d[t * row + class] -= the share of the ways that are there at frame t; d is 0 before. */
static void ctc_gradient(const Ctc *c, double loss, const double *alpha, double *beta, float *d) {
  int64_t states = 2 * c->length + 1;
  for (int64_t s = 0; s < states; s++) beta[s] = s + 2 >= states ? 0 : CTC_NEVER;
  for (int64_t t = c->steps - 1; t >= 0; t--) {
    if (t < c->steps - 1) ctc_backward(c, t, beta);
    for (int64_t s = 0; s < states; s++)
      d[t * c->row + ctc_label(c, s)] -= (float)ctc_power(alpha[t * states + s] + beta[s] + loss);
  }
}

/* Are blank and labels classes, and no label a blank, and the lengths those of the tensors? */
static bool ctc_is_good(const Ctc *c, int64_t most_steps, int64_t most_labels, int64_t classes) {
  bool good =
      c->blank < classes && c->steps >= 0 && c->steps <= most_steps && c->length >= 0 && c->length <= most_labels;
  for (int64_t i = 0; good && i < c->length; i++)
    good = c->labels[i] >= 0 && c->labels[i] < classes && c->labels[i] != c->blank;
  return good;
}

static void ctc_fill(float *d, int64_t frames, int64_t row, int64_t classes, float value) {
  for (int64_t t = 0; t < frames; t++)
    for (int64_t k = 0; k < classes; k++) d[t * row + k] = value;
}

/* scores, gradient: [most_steps][batch][classes]; targets: [batch][most_labels]; steps, lengths, loss: [batch];
 * scratch: `slot` doubles for each of `slots` workers, rows of 2 most_labels + 1: the last for beta, the others for
 * alpha. */
static void ctc(const Team *team, const float *scores, const int64_t *targets, const int64_t *steps,
                const int64_t *lengths, float *loss, float *gradient, double *scratch, int64_t slots, int64_t slot,
                int64_t most_steps, int64_t batch, int64_t classes, int64_t most_labels, int64_t blank,
                atomic_int *fault) {
  int64_t workers = min_i64(slots, team->size), rank = min_i64(team->rank, workers), row = batch * classes;
  double *alpha = scratch + min_i64(rank, workers - 1) * slot, *beta = alpha + slot - (2 * most_labels + 1);
  for (int64_t n = batch * rank / workers; n < batch * min_i64(rank + 1, workers) / workers; n++) {
    Ctc c = {scores + n * classes, targets + n * most_labels, row, steps[n], lengths[n], blank};
    if (!ctc_is_good(&c, most_steps, most_labels, classes)) {
      fault_report(fault, RNNCC_ERROR_VALUE);
      c.steps = c.length = 0;
    }
    double worth = ctc_loss(&c, alpha);
    bool never = worth == -CTC_NEVER;
    loss[n] = never && ZERO_INFINITY ? 0 : (float)worth;
    if (!GRADIENT) continue;
    float *d = gradient + n * classes;
    ctc_fill(d, most_steps, row, classes, 0);
    if (!never)
      ctc_gradient(&c, worth, alpha, beta, d);
    else if (!ZERO_INFINITY)
      ctc_fill(d, c.steps, row, classes, __builtin_nanf(""));
  }
}
