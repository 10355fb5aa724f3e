/* SPDX-License-Identifier: MIT */
/* Means, normalisation by them, and one-hot maxima. */
#include "expand/expansion.h"
#include "support/list.h"

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

/* Of x[N, C, ...]; of x[N] there is one. */
static const Dim *channels_of(const Formula *f, const Value *x) {
  return x->rank > 1 ? x->shape[1] : dim_const(f->graph->dims, 1);
}

/* A number a channel, [C], as an operand beside x. */
static Value *by_channel(const Formula *f, Value *numbers, const Value *x) {
  if (x->rank == 1) return numbers;
  const Dim *shape[MAX_RANK] = {x->shape[1]};
  for (int axis = 2; axis < x->rank; axis++) shape[axis - 1] = dim_const(f->graph->dims, 1);
  return build_reshape(f, numbers, x->rank - 1, shape);
}

/* The weight that the value is a copy of: exporters write some for weights with equal numbers. NULL: it is of none. */
static Value *copied_weight(Value *value) {
  while (is_op(value->producer, OP_Identity)) value = value->producer->inputs[0];
  return value->is_weight ? value : NULL;
}

/* kept * momentum + now * (1 - momentum). A step of training makes it the weight's next value: a copy of it, as the
 * result may get another name. */
static Value *running(const Formula *f, const Node *node, int input, Value *now) {
  Graph *graph = f->graph;
  Value *kept = node->inputs[input], *weight = copied_weight(kept);
  double momentum = node_float(node, ATTR_momentum);
  const Dim *channels = channels_of(f, node->inputs[0]);
  now = build_reshape(f, now, 1, &channels);
  Value *next = plus(f, times(f, kept, number(f, kept, momentum)), times(f, now, number(f, now, 1 - momentum)));
  if (weight && graph->config && graph->config->training.wanted)
    *LIST_APPEND(graph->arena, graph->statistics, graph->n_statistics) =
        (Statistic){weight, apply(f, OP_Identity, next)};
  return next;
}

/* In training, by the mean and variance of the batch, and of all pixels; else there is a kernel. */
void expand_batch_norm(const Formula *f, const Node *node, Value **results) {
  if (node_int(node, ATTR_training_mode) == 0) return;
  Value *x = node->inputs[0];
  int64_t axes[MAX_RANK] = {0};
  int n_axes = x->rank > 1 ? x->rank - 1 : 1;
  for (int axis = 2; axis < x->rank; axis++) axes[axis - 1] = axis;
  Value *mean = reduced(f, OP_ReduceMean, x, n_axes, axes), *centred = minus(f, x, mean);
  Value *variance = reduced(f, OP_ReduceMean, times(f, centred, centred), n_axes, axes);
  Value *deviation = apply(f, OP_Sqrt, plus(f, variance, number(f, x, node_float(node, ATTR_epsilon))));
  Value *normal = over(f, centred, deviation);
  results[0] = plus(f, times(f, normal, by_channel(f, node->inputs[1], x)), by_channel(f, node->inputs[2], x));
  Value *statistics[] = {running(f, node, 3, mean), running(f, node, 4, variance)};
  for (int i = 1; i < node->n_outputs; i++) results[i] = statistics[i - 1];
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
