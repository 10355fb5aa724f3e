/* SPDX-License-Identifier: MIT */
/* Means, normalisation by them, and one-hot maxima. */
#include "expand/expansion.h"

void expand_mean(const Formula *f, const Node *node, Value **results) {
  Value *sum = build_op(f, OP_Sum, node->n_inputs, node->inputs, 1, 0, NULL)->outputs[0];
  results[0] = node->n_inputs == 1 ? sum : over(f, sum, number(f, sum, node->n_inputs));
}

/* (x - mean) / (deviation + 1e-9), the deviation from the mean of (x - mean)^2, which does not cancel. */
void expand_mean_variance(const Formula *f, const Node *node, Value **results) {
  static const int64_t usual[] = {0, 2, 3};
  const Attribute *axes = node_attribute(node, ATTR_axes);
  int n = axes ? (int)axes->count : 3;
  const int64_t *over_axes = axes ? axes->ints : usual;
  Value *x = node->inputs[0];
  Value *centred = minus(f, x, reduced(f, OP_ReduceMean, x, n, over_axes));
  Value *deviation = apply(f, OP_Sqrt, reduced(f, OP_ReduceMean, times(f, centred, centred), n, over_axes));
  results[0] = over(f, centred, plus(f, deviation, number(f, x, 1e-9)));
}

/* 1 where the first maximum stands. */
void expand_hardmax(const Formula *f, const Node *node, Value **results) {
  Value *x = node->inputs[0];
  int64_t axis = normal_axis(node_int(node, ATTR_axis), x->rank), n = dim_value(x->shape[axis]), shape[MAX_RANK];
  const Attribute attribute = attribute_int(ATTR_axis, axis);
  Value *first = build_op(f, OP_ArgMax, 1, &x, 1, 1, &attribute)->outputs[0];
  int64_t *positions = ARENA_ARRAY(f->graph->arena, int64_t, n);
  for (int64_t i = 0; i < n; i++) positions[i] = i;
  for (int k = 0; k < x->rank; k++) shape[k] = k == axis ? n : 1;
  Value *along = graph_constant(f->graph, f->name, RNNCC_I64, x->rank, shape, positions);
  results[0] = cast(f, apply2(f, OP_Equal, along, first), x->dtype);
}
