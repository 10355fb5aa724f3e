/* SPDX-License-Identifier: MIT */
/* Means, and what is normalised by them. */
#include "expand/expansion.h"

void expand_mean(const Formula *f, const Node *node, Value **results) {
  Value *sum = build_op(f, "Sum", node->n_inputs, node->inputs, 1, 0, NULL)->outputs[0];
  results[0] = node->n_inputs == 1 ? sum : over(f, sum, number(f, sum, node->n_inputs));
}

/* (x - mean) / (deviation + 1e-9), the deviation from the mean of (x - mean)^2, which does not cancel. */
void expand_mean_variance(const Formula *f, const Node *node, Value **results) {
  static const int64_t usual[] = {0, 2, 3};
  const Attribute *axes = node_attribute(node, "axes");
  int n = axes ? (int)axes->count : 3;
  const int64_t *over_axes = axes ? axes->ints : usual;
  Value *x = node->inputs[0];
  Value *centred = minus(f, x, reduced(f, "ReduceMean", x, n, over_axes));
  Value *deviation = apply(f, "Sqrt", reduced(f, "ReduceMean", times(f, centred, centred), n, over_axes));
  results[0] = over(f, centred, plus(f, deviation, number(f, x, 1e-9)));
}
