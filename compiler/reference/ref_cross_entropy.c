/* SPDX-License-Identifier: MIT */
/* CrossEntropy and its gradient, of scores [N, C, ...] and targets [N, ...]. */
#include <math.h>

#include "ir/op.h"
#include "ir/tensor.h"
#include "reference/kernels.h"

typedef struct Scores {
  const Tensor *x, *targets;
  int64_t classes, inner;
  const Attribute *ignored;
} Scores;

static Scores scores_of(const Node *node, const Tensor *const *inputs) {
  return (Scores){.x = inputs[0],
                  .targets = inputs[1],
                  .classes = inputs[0]->shape[1],
                  .inner = tensor_extent(inputs[0], 2, inputs[0]->rank),
                  .ignored = node_attribute(node, ATTR_ignore_index)};
}

/* Class k of a place. */
static int64_t at(const Scores *s, int64_t place, int64_t k) {
  return (place / s->inner * s->classes + k) * s->inner + place % s->inner;
}

static bool is_ignored(const Scores *s, int64_t place) {
  return s->ignored && tensor_get_int(s->targets, place) == s->ignored->i;
}

static double maximum_of(const Scores *s, int64_t place) {
  double most = -INFINITY;
  for (int64_t k = 0; k < s->classes; k++) {
    double score = tensor_get(s->x, at(s, place, k));
    if (isnan(score) || score > most) most = score;
    if (isnan(score)) break;
  }
  return most;
}

static double sum_of(const Scores *s, int64_t place, double maximum) {
  double sum = 0;
  for (int64_t k = 0; k < s->classes; k++) sum += exp(tensor_get(s->x, at(s, place, k)) - maximum);
  return sum;
}

const char *ref_cross_entropy(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  Scores s = scores_of(node, inputs);
  Tensor *maxima = optional_output(node, outputs, 1), *sums = optional_output(node, outputs, 2);
  for (int64_t place = 0; place < tensor_count(outputs[0]); place++) {
    int64_t target = tensor_get_int(s.targets, place);
    bool ignored = is_ignored(&s, place);
    if (!ignored && (target < 0 || target >= s.classes)) return "a target is no class";
    double maximum = maximum_of(&s, place), sum = sum_of(&s, place, maximum);
    double loss = ignored ? 0 : log(sum) - (tensor_get(s.x, at(&s, place, target)) - maximum);
    tensor_set(outputs[0], place, loss);
    if (maxima) tensor_set(maxima, place, maximum);
    if (sums) tensor_set(sums, place, sum);
  }
  return NULL;
}

const char *ref_cross_entropy_gradient(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  Scores s = scores_of(node, inputs);
  for (int64_t place = 0; place < tensor_count(s.targets); place++) {
    double maximum = tensor_get(inputs[2], place), sum = tensor_get(inputs[3], place), d = tensor_get(inputs[4], place);
    for (int64_t k = 0; k < s.classes; k++) {
      double share = exp(tensor_get(s.x, at(&s, place, k)) - maximum) / sum;
      double here = k == tensor_get_int(s.targets, place);
      tensor_set(outputs[0], at(&s, place, k), is_ignored(&s, place) ? 0 : d * (share - here));
    }
  }
  return NULL;
}
