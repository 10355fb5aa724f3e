/* SPDX-License-Identifier: MIT */
/* Convolution, pooling and batch normalisation over N, C, and one to three spatial axes. */
#include "shapes/shape.h"
#include "support/numbers.h"

static bool set_windowed(Graph *graph, Node *node, const Dim *channels) {
  Window window;
  if (!read_window(graph, node, &window)) return false;
  const Dim *shape[2 + MAX_SPATIAL] = {node->inputs[0]->shape[0], channels};
  for (int i = 0; i < window.n_spatial; i++) shape[2 + i] = window.out[i];
  for (int output = 0; output < node->n_outputs; output++) set_shape(graph, node, output, 2 + window.n_spatial, shape);
  return true;
}

/* `axis`: of W, that has the channels of X, by group if it is 1. */
static bool check_constant_channels(Graph *graph, const Node *node, int axis) {
  const Value *x = node->inputs[0], *w = node->inputs[1];
  int64_t group = node_int(node, ATTR_group);
  if (group < 1) return shape_error(node, "`group` is %lld; it must be at least 1", (long long)group);
  if (!dim_is_const(x->shape[1]) || !dim_is_const(w->shape[0]) || !dim_is_const(w->shape[1])) {
    const Dim *groups = dim_const(graph->dims, axis == 1 ? min_int(group, INT32_MAX) : 1);
    const Dim *due = dim_mul(graph->dims, w->shape[axis], groups);
    return shape_unsupported(node, "channels must be constant, found %s and %s%s", shape_text(graph, x),
                             shape_text(graph, w), equal_where(graph, x->shape[1], due));
  }
  return true;
}

/* X [N, C, ...], W [M, C/group, ...]. */
static bool check_groups(Graph *graph, const Node *node) {
  if (!check_constant_channels(graph, node, 1)) return false;
  const Value *x = node->inputs[0], *w = node->inputs[1];
  int64_t group = node_int(node, ATTR_group), C = dim_value(x->shape[1]), M = dim_value(w->shape[0]);
  if (C % group || M % group)
    return shape_error(node, "`group` is %lld; it must divide the channels, %lld in and %lld out", (long long)group,
                       (long long)C, (long long)M);
  return dim_value(w->shape[1]) == C / group ||
         shape_error(node, "the weights are %s; axis 1 must be %lld, the channels of %s by group %lld",
                     shape_text(graph, w), (long long)(C / group), shape_text(graph, x), (long long)group);
}

bool shape_conv(Graph *graph, Node *node) {
  if (!check_rank(graph, node, 0, 3, MAX_RANK)) return false;
  int rank = node->inputs[0]->rank;
  if (!check_rank(graph, node, 1, rank, rank) || !check_groups(graph, node)) return false;
  const Dim *M = node->inputs[1]->shape[0];
  return check_shape(graph, node, 2, 1, &M, "the bias, [M]") && set_windowed(graph, node, M);
}

/* X and W as of a Conv, and the gradient of its result. */
bool shape_conv_weight_gradient(Graph *graph, Node *node) {
  int rank = node->inputs[0]->rank;
  Window window;
  if (!check_rank(graph, node, 0, 3, MAX_RANK) || !check_rank(graph, node, 1, rank, rank)) return false;
  if (!check_groups(graph, node) || !read_window(graph, node, &window)) return false;
  const Value *w = node->inputs[1];
  const Dim *shape[2 + MAX_SPATIAL] = {node->inputs[0]->shape[0], w->shape[0]};
  for (int i = 0; i < window.n_spatial; i++) shape[2 + i] = window.out[i];
  return check_shape(graph, node, 2, rank, shape, "the shape of the convolution's result") &&
         set_shape(graph, node, 0, rank, w->shape);
}

/* X [N, C, ...], W [C, M/group, ...]. */
static bool check_transposed_groups(Graph *graph, const Node *node) {
  if (!check_constant_channels(graph, node, 0)) return false;
  const Value *x = node->inputs[0], *w = node->inputs[1];
  int64_t group = node_int(node, ATTR_group), C = dim_value(x->shape[1]);
  if (dim_value(w->shape[0]) != C)
    return shape_error(node, "the weights are %s; axis 0 must be %lld, the channels of %s", shape_text(graph, w),
                       (long long)C, shape_text(graph, x));
  return C % group == 0 ||
         shape_error(node, "`group` is %lld; it must divide the channels, %lld in", (long long)group, (long long)C);
}

bool shape_conv_transpose(Graph *graph, Node *node) {
  if (!check_rank(graph, node, 0, 3, MAX_RANK)) return false;
  int rank = node->inputs[0]->rank;
  if (!check_rank(graph, node, 1, rank, rank) || !check_transposed_groups(graph, node)) return false;
  const Dim *M = dim_mul(graph->dims, node->inputs[1]->shape[1], dim_const(graph->dims, node_int(node, ATTR_group)));
  return check_shape(graph, node, 2, 1, &M, "the bias, [M]") && set_windowed(graph, node, M);
}

static bool check_power(const Node *node) {
  if (!op_has_attribute(node->op, ATTR_p)) return true;
  int64_t p = node_int(node, ATTR_p);
  return (p >= 1 && p <= 1024) || shape_error(node, "`p` is %lld; it must be in 1..1024", (long long)p);
}

bool shape_pool(Graph *graph, Node *node) {
  return check_power(node) && check_rank(graph, node, 0, 3, MAX_RANK) &&
         set_windowed(graph, node, node->inputs[0]->shape[1]);
}

bool shape_global_pool(Graph *graph, Node *node) {
  if (!check_power(node) || !check_rank(graph, node, 0, 3, MAX_RANK)) return false;
  const Value *x = node->inputs[0];
  const Dim *shape[MAX_RANK] = {x->shape[0], x->shape[1]};
  for (int axis = 2; axis < x->rank; axis++) shape[axis] = dim_const(graph->dims, 1);
  return set_shape(graph, node, 0, x->rank, shape);
}

/* The shape of the input of a MaxPool of these windows, or output_shape, which may be larger: elements are written at
 * its begin. */
bool shape_max_unpool(Graph *graph, Node *node) {
  const Value *x = node->inputs[0];
  Window window;
  DimList wanted;
  const Dim *shape[MAX_RANK];
  if (!check_rank(graph, node, 0, 3, 2 + MAX_SPATIAL) ||
      !check_shape(graph, node, 1, x->rank, x->shape, "the indices of input 0's elements"))
    return false;
  if (!read_unpooled(graph, node, &window) || !operand_dims(graph, node, ATTR_NONE, 2, &wanted)) return false;
  if (wanted.given && wanted.n != x->rank)
    return shape_error(node, "`output_shape` has %d entries; %d are needed", wanted.n, x->rank);
  shape[0] = x->shape[0];
  shape[1] = x->shape[1];
  for (int i = 0; i < window.n_spatial; i++) shape[2 + i] = window.out[i];
  for (int axis = 0; wanted.given && axis < x->rank; axis++) {
    bool fits = axis < 2 ? same_dim(wanted.items[axis], shape[axis])
                         : dim_lower(dim_sub(graph->dims, wanted.items[axis], shape[axis])) >= 0;
    if (!fits)
      return shape_error(node, "`output_shape` has %s on axis %d; what is unpooled has %s",
                         dim_text(graph, wanted.items[axis]), axis, dim_text(graph, shape[axis]));
    shape[axis] = wanted.items[axis];
  }
  return set_shape(graph, node, 0, x->rank, shape);
}

/* Of one axis there is one channel. */
bool shape_batch_norm(Graph *graph, Node *node) {
  const Value *x = node->inputs[0];
  if (!check_rank(graph, node, 0, 1, MAX_RANK)) return false;
  bool trains = node_int(node, ATTR_training_mode) != 0;
  if (node->n_outputs > 1 && !trains) return shape_error(node, "statistics are given only where `training_mode` is 1");
  const Dim *C = x->rank > 1 ? x->shape[1] : dim_const(graph->dims, 1);
  bool good = true;
  for (int i = 1; i < 5; i++) good &= check_shape(graph, node, i, 1, &C, "[channels]");
  for (int i = 1; good && i < node->n_outputs; i++) good &= !node->outputs[i] || set_shape(graph, node, i, 1, &C);
  return good && shape_same(graph, node);
}
