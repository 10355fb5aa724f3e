/* SPDX-License-Identifier: MIT */
/* Gradients of reductions, and of what normalises by them. */
#include "differentiate/rule.h"
#include "ir/op.h"
#include "ir/tensor.h"
#include "shapes/shape.h"

/* ---- reductions ---- */

/* The axes of x that are reduced. */
typedef struct Axes {
  int n;
  int64_t list[MAX_RANK];
} Axes;

static Axes axes_of(const Gradient *g) {
  const Value *x = g->node->inputs[0];
  bool reduced_axes[MAX_RANK] = {false};
  Axes axes = {0};
  bool pool = op_is_global_pool(g->node->op);
  if (!pool && !read_reduced(g->f->graph, g->node, reduced_axes)) bug("the axes were good before");
  for (int axis = 0; axis < x->rank; axis++)
    if (pool ? axis >= 2 : reduced_axes[axis]) axes.list[axes.n++] = axis;
  return axes;
}

/* A result of the reduction with the axes that it has lost, of extent 1. */
static Value *with_axes(const Formula *f, Value *result, const Value *x, const Axes *axes) {
  const Dim *shape[MAX_RANK];
  for (int axis = 0; axis < x->rank; axis++) shape[axis] = x->shape[axis];
  for (int i = 0; i < axes->n; i++) shape[axes->list[i]] = dim_const(f->graph->dims, 1);
  return in_shape(f, result, x->rank, shape);
}

static Value *summed(const Formula *f, Value *x, const Axes *axes) {
  return axes->n ? reduced(f, OP_ReduceSum, x, axes->n, axes->list) : x;
}

/* Those that equal the extreme share the gradient. */
static Value *to_extremes(const Formula *f, Value *x, Value *y, Value *d, const Axes *axes) {
  Value *equal = cast(f, apply2(f, OP_Equal, x, y), x->dtype);
  return times(f, equal, over(f, d, summed(f, equal, axes)));
}

/* x / y, and 0 where the norm is. */
static Value *by_norm(const Formula *f, Value *x, Value *y, Value *d) {
  Value *some = apply2(f, OP_Greater, y, number(f, y, 0));
  return times(f, x, where_true(f, some, over(f, d, y)));
}

/* d and y have x's axes. */
static Value *reduction_gradient(const Formula *f, OpKind op, Value *x, Value *y, Value *d, const Axes *axes) {
  switch (op) {
  case OP_ReduceSum:
    return spread_to(f, d, x);
  case OP_ReduceMean:
  case OP_GlobalAveragePool:
    return spread_to(f, over(f, d, elements_for_each(f, x, d)), x);
  case OP_ReduceMax:
  case OP_ReduceMin:
  case OP_GlobalMaxPool:
    return to_extremes(f, x, y, d, axes);
  case OP_ReduceSumSquare:
    return times(f, times(f, number(f, x, 2), x), d);
  case OP_ReduceL1:
    return times(f, apply(f, OP_Sign, x), d);
  case OP_ReduceL2:
    return by_norm(f, x, y, d);
  case OP_ReduceLogSum:
    return spread_to(f, over(f, d, apply(f, OP_Exp, y)), x);
  case OP_ReduceLogSumExp:
    return times(f, d, apply(f, OP_Exp, minus(f, x, y)));
  default:
    bug("a reduction without a gradient");
  }
}

const char *of_reduction(const Gradient *g) {
  const Formula *f = g->f;
  Value *x = g->node->inputs[0];
  Axes axes = axes_of(g);
  if (x->dtype != RNNCC_F32) return "elements other than f32";
  Value *y = with_axes(f, g->node->outputs[0], x, &axes), *d = with_axes(f, gradient_in(g), x, &axes);
  g->dx[0] = reduction_gradient(f, g->node->op->kind, x, y, d, &axes);
  return NULL;
}

/* Each element is in the sums from its own on: their gradients are summed from the other end. */
const char *of_cumsum(const Gradient *g) {
  const Node *node = g->node;
  const Attribute attributes[] = {attribute_int(ATTR_exclusive, node_int(node, ATTR_exclusive)),
                                  attribute_int(ATTR_reverse, !node_int(node, ATTR_reverse))};
  g->dx[0] =
      build_op(g->f, OP_CumSum, 2, (Value *const[]){gradient_in(g), node->inputs[1]}, 1, 2, attributes)->outputs[0];
  return NULL;
}

/* ---- softmax ---- */

static Axes softmax_axis(const Gradient *g) {
  int rank = g->node->inputs[0]->rank;
  return rank ? (Axes){1, {normal_axis(node_int(g->node, ATTR_axis), rank)}} : (Axes){0};
}

/* y (d - sum(d y)). */
const char *of_softmax(const Gradient *g) {
  const Formula *f = g->f;
  Value *y = g->node->outputs[0], *d = gradient_in(g);
  Axes axes = softmax_axis(g);
  g->dx[0] = times(f, y, minus(f, d, summed(f, times(f, d, y), &axes)));
  return NULL;
}

static bool is_zero(const Value *value) {
  double x = 1;
  if (is_op(value->producer, OP_Expand)) value = value->producer->inputs[0];
  return value_number(value, &x) && x == 0;
}

/* d as zeros to which elements were added, some of each row along that axis: what a loss that reads the labels' classes
 * alone hands back. NULL: it is none. */
static const Node *scattered_in_rows(const Value *d, int axis) {
  const Node *node = d->producer;
  if (!is_op(node, OP_ScatterElements) || node_word(node, ATTR_reduction) != SCATTER_add) return NULL;
  const Value *some = node->inputs[2];
  for (int k = 0; k < d->rank; k++)
    if (k != axis && !same_dim(some->shape[k], d->shape[k])) return NULL;
  return normal_axis(node_int(node, ATTR_axis), d->rank) == axis && is_zero(node->inputs[0]) ? node : NULL;
}

/* d - exp(y) sum(d). Where d is zeros but for few elements, their sum is that of the row, and they are added to the
 * rest: no rows of zeros are written and read. */
const char *of_log_softmax(const Gradient *g) {
  const Formula *f = g->f;
  Value *y = g->node->outputs[0], *d = gradient_in(g);
  Axes axes = softmax_axis(g);
  const Node *few = axes.n ? scattered_in_rows(d, (int)axes.list[0]) : NULL;
  if (!few) {
    g->dx[0] = minus(f, d, times(f, apply(f, OP_Exp, y), summed(f, d, &axes)));
    return NULL;
  }
  Value *rest = times(f, apply(f, OP_Exp, y), apply(f, OP_Neg, summed(f, few->inputs[2], &axes)));
  Value *const inputs[] = {rest, few->inputs[1], few->inputs[2]};
  g->dx[0] = build_op(f, OP_ScatterElements, 3, inputs, 1, few->n_attributes, few->attributes)->outputs[0];
  return NULL;
}

/* ---- rows, normalised: y = scale n + bias, n = (x - mean) / deviation ---- */

static Axes row_axes(const Gradient *g) {
  int rank = g->node->inputs[0]->rank, first = normal_axis(node_int(g->node, ATTR_axis), rank);
  Axes axes = {0};
  for (int axis = first; axis < rank; axis++) axes.list[axes.n++] = axis;
  return axes;
}

static Value *row_mean(const Formula *f, Value *x, const Axes *axes) {
  return reduced(f, OP_ReduceMean, x, axes->n, axes->list);
}

/* x's. With e = d scale: (e - mean(e) - n mean(e n)) / deviation; of rows that are not centred without mean(e). */
static Value *of_normalised(const Formula *f, Value *e, Value *n, Value *inverse, bool centred, const Axes *axes) {
  Value *rest = times(f, n, row_mean(f, times(f, e, n), axes));
  if (centred) rest = plus(f, rest, row_mean(f, e, axes));
  return times(f, inverse, minus(f, e, rest));
}

static void of_rows(const Gradient *g, Value *n, Value *inverse, bool centred, const Axes *axes) {
  const Formula *f = g->f;
  Value *scale = g->node->inputs[1], *d = gradient_in(g);
  if (g->wanted[0]) g->dx[0] = of_normalised(f, times(f, d, scale), n, inverse, centred, axes);
  if (g->wanted[1]) g->dx[1] = sum_to(f, times(f, d, n), scale);
  if (g->node->n_inputs > 2 && g->wanted[2]) g->dx[2] = sum_to(f, d, g->node->inputs[2]);
}

/* The layer's own means and deviations are kept for it. */
const char *of_layer_norm(const Gradient *g) {
  const Formula *f = g->f;
  Node *node = g->node;
  if (!gradient_in(g) || (node->n_outputs > 1 && g->dy[1]) || (node->n_outputs > 2 && g->dy[2]))
    return "means and deviations that the loss depends on";
  Axes axes = row_axes(g);
  Value **outputs = all_outputs(g, 3);
  Value *n = times(f, minus(f, node->inputs[0], outputs[1]), outputs[2]);
  of_rows(g, n, outputs[2], true, &axes);
  return NULL;
}

const char *of_rms_norm(const Gradient *g) {
  const Formula *f = g->f;
  Value *x = g->node->inputs[0];
  Axes axes = row_axes(g);
  Value *variance = plus(f, row_mean(f, times(f, x, x), &axes), number(f, x, node_float(g->node, ATTR_epsilon)));
  Value *inverse = apply(f, OP_Reciprocal, apply(f, OP_Sqrt, variance));
  of_rows(g, times(f, x, inverse), inverse, false, &axes);
  return NULL;
}

/* Scale and bias have a number for each channel, or for each group. */
static const char *of_groups(const Gradient *g, const Dim *groups) {
  const Formula *f = g->f;
  DimTable *dims = f->graph->dims;
  Value *x = g->node->inputs[0], *scale = g->node->inputs[1];
  const Axes row = {.n = 2, .list = {2, 3}};
  const Dim *one = dim_const(dims, 1), *of_group = dim_div(dims, x->shape[1], groups);
  const Dim *shape[] = {x->shape[0], groups, of_group, value_count_dim(f->graph, x, 2, x->rank)};
  const Dim *parameters[] = {groups, dim_div(dims, scale->shape[0], groups), one};
  Value *rows = in_shape(f, x, 4, shape), *d = in_shape(f, gradient_in(g), 4, shape);
  Value *by = in_shape(f, scale, 3, parameters), *centred = minus(f, rows, row_mean(f, rows, &row));
  Value *variance = row_mean(f, times(f, centred, centred), &row);
  Value *deviation = apply(f, OP_Sqrt, plus(f, variance, number(f, x, node_float(g->node, ATTR_epsilon))));
  Value *inverse = apply(f, OP_Reciprocal, deviation), *n = times(f, centred, inverse);
  if (g->wanted[0]) g->dx[0] = shaped_as(f, of_normalised(f, times(f, d, by), n, inverse, true, &row), x);
  if (g->wanted[1]) g->dx[1] = shaped_as(f, sum_to(f, times(f, d, n), by), scale);
  if (g->wanted[2]) g->dx[2] = shaped_as(f, sum_to(f, d, by), g->node->inputs[2]);
  return NULL;
}

const char *of_group_norm(const Gradient *g) {
  return of_groups(g, dim_const(g->f->graph->dims, node_int(g->node, ATTR_num_groups)));
}

const char *of_instance_norm(const Gradient *g) { return of_groups(g, g->node->inputs[0]->shape[1]); }

/* By the statistics that the model keeps; what trains by those of the batch is a formula. */
const char *of_batch_norm(const Gradient *g) {
  const Formula *f = g->f;
  const Node *node = g->node;
  Value *x = node->inputs[0], *d = gradient_in(g), *of_channel[5];
  const Dim *shape[MAX_RANK];
  int64_t axes[MAX_RANK] = {0};
  int n_axes = x->rank > 1 ? x->rank - 1 : 1; /* of one axis there is one channel */
  for (int axis = 2; axis < x->rank; axis++) axes[axis - 1] = axis;
  for (int axis = 0; axis < x->rank; axis++) shape[axis] = axis == 1 ? x->shape[1] : dim_const(f->graph->dims, 1);
  for (int i = 1; i < 5; i++) of_channel[i] = in_shape(f, node->inputs[i], x->rank, shape);
  Value *variance = plus(f, of_channel[4], number(f, x, node_float(node, ATTR_epsilon)));
  Value *inverse = apply(f, OP_Reciprocal, apply(f, OP_Sqrt, variance));
  if (g->wanted[0]) g->dx[0] = times(f, d, times(f, of_channel[1], inverse));
  if (g->wanted[1]) {
    Value *normal = times(f, minus(f, x, of_channel[3]), inverse);
    g->dx[1] = in_shape(f, summed_away(f, times(f, d, normal), n_axes, axes), 1, node->inputs[1]->shape);
  }
  if (g->wanted[2]) g->dx[2] = in_shape(f, summed_away(f, d, n_axes, axes), 1, node->inputs[2]->shape);
  return NULL;
}

/* ---- losses ---- */

/* By one kernel, from what the forward one keeps. Maxima and sums have no gradient of their own: only this reads them.
 */
const char *of_cross_entropy(const Gradient *g) {
  Node *node = g->node;
  Value **kept = all_outputs(g, 3);
  Value *const inputs[] = {node->inputs[0], node->inputs[1], kept[1], kept[2], gradient_in(g)};
  g->dx[0] = build_op(g->f, OP_CrossEntropyGradient, 5, inputs, 1, node->n_attributes, node->attributes)->outputs[0];
  return NULL;
}

/* The operator gives the gradient of each sample's loss, too. */
const char *of_ctc(const Gradient *g) {
  const Formula *f = g->f;
  Value *d = gradient_in(g), *of_scores = all_outputs(g, 2)[1];
  g->dx[0] = times(f, of_scores, with_axis(f, with_axis(f, d, 1), 0));
  return NULL;
}
