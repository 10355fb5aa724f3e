/* SPDX-License-Identifier: MIT */
/* CTCLikelihood, by tables over frames t and states s: the labels with a blank around each. */
#include <math.h>

#include "ir/op.h"
#include "ir/tensor.h"
#include "reference/kernels.h"
#include "support/arena.h"

typedef struct Sample {
  const Tensor *scores, *targets;
  int64_t n, batch, classes, steps, length, blank;
  double *alpha, *beta; /* [steps][2 length + 1], logarithms */
} Sample;

static int64_t label_of(const Sample *x, int64_t s) {
  return s % 2 ? tensor_get_int(x->targets, x->n * x->targets->shape[1] + s / 2) : x->blank;
}

static int64_t place_of(const Sample *x, int64_t t, int64_t s) {
  return (t * x->batch + x->n) * x->classes + label_of(x, s);
}

static double log_add(double a, double b) {
  double most = fmax(a, b);
  if (isnan(a) || isnan(b)) return NAN;
  return most == -INFINITY ? most : most + log(exp(a - most) + exp(b - most));
}

/* Do ways go from state s to state `to` in one frame? */
static bool leads(const Sample *x, int64_t s, int64_t to) {
  return to == s || to == s + 1 || (to == s + 2 && to % 2 && label_of(x, to) != label_of(x, s));
}

static void fill_alpha(const Sample *x) {
  int64_t states = 2 * x->length + 1;
  for (int64_t t = 0; t < x->steps; t++)
    for (int64_t s = 0; s < states; s++) {
      double ways = t || s > 1 ? -INFINITY : 0;
      for (int64_t from = s > 2 ? s - 2 : 0; t && from <= s; from++)
        if (leads(x, from, s)) ways = log_add(ways, x->alpha[(t - 1) * states + from]);
      x->alpha[t * states + s] = ways + tensor_get(x->scores, place_of(x, t, s));
    }
}

static void fill_beta(const Sample *x) {
  int64_t states = 2 * x->length + 1;
  for (int64_t t = x->steps - 1; t >= 0; t--)
    for (int64_t s = 0; s < states; s++) {
      bool last = t == x->steps - 1;
      double ways = last && s + 2 >= states ? 0 : -INFINITY;
      for (int64_t to = s; !last && to < states && to <= s + 2; to++)
        if (leads(x, s, to))
          ways = log_add(ways, x->beta[(t + 1) * states + to] + tensor_get(x->scores, place_of(x, t + 1, to)));
      x->beta[t * states + s] = ways;
    }
}

static double loss_of(const Sample *x) {
  int64_t states = 2 * x->length + 1;
  const double *last = x->alpha + (x->steps - 1) * states;
  if (x->steps == 0) return x->length ? INFINITY : 0;
  return -log_add(last[states - 1], x->length ? last[states - 2] : -INFINITY);
}

static void add_gradient(const Sample *x, double loss, Tensor *gradient) {
  int64_t states = 2 * x->length + 1;
  for (int64_t at = 0; at < x->steps * states; at++) {
    int64_t place = place_of(x, at / states, at % states);
    tensor_set(gradient, place, tensor_get(gradient, place) - exp(x->alpha[at] + x->beta[at] + loss));
  }
}

static const char *check_sample(const Sample *x, int64_t most_steps) {
  if (x->blank >= x->classes) return "the blank is no class";
  if (x->steps < 0 || x->steps > most_steps) return "an input length is out of range";
  if (x->length < 0 || x->length > x->targets->shape[1]) return "a target length is out of range";
  for (int64_t s = 1; s < 2 * x->length; s += 2)
    if (label_of(x, s) < 0 || label_of(x, s) >= x->classes || label_of(x, s) == x->blank)
      return "a label is no class, or the blank";
  return NULL;
}

static void run_sample(Sample *x, bool zero_infinity, Tensor *losses, Tensor *gradient) {
  fill_alpha(x);
  fill_beta(x);
  double loss = loss_of(x);
  bool never = loss == INFINITY;
  tensor_set(losses, x->n, never && zero_infinity ? 0 : loss);
  if (gradient && !never) add_gradient(x, loss, gradient);
  for (int64_t t = 0; gradient && never && !zero_infinity && t < x->steps; t++)
    for (int64_t k = 0; k < x->classes; k++) tensor_set(gradient, (t * x->batch + x->n) * x->classes + k, NAN);
}

const char *ref_ctc(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  Tensor *gradient = optional_output(node, outputs, 1);
  int64_t most_steps = inputs[0]->shape[0], room = most_steps * (2 * inputs[1]->shape[1] + 1);
  Arena *arena = arena_new();
  Sample x = {.scores = inputs[0], .targets = inputs[1], .batch = inputs[0]->shape[1], .classes = inputs[0]->shape[2]};
  x.blank = node_int(node, ATTR_blank);
  x.alpha = ARENA_ARRAY(arena, double, room + 1);
  x.beta = ARENA_ARRAY(arena, double, room + 1);
  for (int64_t i = 0; gradient && i < tensor_count(gradient); i++) tensor_set(gradient, i, 0);
  const char *mistake = NULL;
  for (x.n = 0; x.n < x.batch && !mistake; x.n++) {
    x.steps = tensor_get_int(inputs[2], x.n);
    x.length = tensor_get_int(inputs[3], x.n);
    mistake = check_sample(&x, most_steps);
    if (!mistake) run_sample(&x, node_int(node, ATTR_zero_infinity) != 0, outputs[0], gradient);
  }
  arena_free(arena);
  return mistake;
}
