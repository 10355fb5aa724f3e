/* SPDX-License-Identifier: MIT */
/*
 * Ops with data-dependent output shapes. The extent is a new dim, from 0 to what the input shapes allow; of constant
 * data it is counted now.
 */
#include "ir/tensor.h"
#include "shapes/shape.h"

static int64_t count_nonzero(const Value *value, int64_t among) {
  int64_t count = 0;
  for (int64_t i = 0; i < among; i++) count += value_element(value, i) != 0;
  return count;
}

/* The number of nonzero elements among the value's first `among`. */
static const Dim *nonzero_dim(Graph *graph, const Value *value, const Dim *among) {
  if (value->data && dim_is_const(among)) return dim_const(graph->dims, count_nonzero(value, dim_value(among)));
  return data_dependent_dim(graph, 0, among);
}

const Dim *data_dependent_dim(Graph *graph, int64_t least, const Dim *limit) {
  return dim_symbol(graph->dims, dim_symbol_own(graph->dims, DIM_DATA_DEPENDENT, least, dim_upper(limit)));
}

/* ONNX NonZero: one row an axis; a scalar counts as a list of one. */
bool shape_nonzero(Graph *graph, Node *node) {
  const Value *x = node->inputs[0];
  const Dim *shape[] = {dim_const(graph->dims, x->rank ? x->rank : 1),
                        nonzero_dim(graph, x, value_count_dim(graph, x, 0, x->rank))};
  return set_shape(graph, node, 0, 2, shape);
}

/* The node's shape before elements of `*axis` are left out; without the attribute, that of the flattened elements. -1
 * after an error. */
static int rank_with_axis(Graph *graph, const Node *node, int *axis, const Dim *shape[MAX_RANK]) {
  const Value *x = node->inputs[0];
  *axis = 0;
  shape[0] = value_count_dim(graph, x, 0, x->rank);
  if (!node_has(node, ATTR_axis)) return 1;
  *axis = check_axis(node, "axis", node_int(node, ATTR_axis), x->rank);
  for (int k = 0; k < x->rank; k++) shape[k] = x->shape[k];
  return *axis < 0 ? -1 : x->rank;
}

/* ONNX Compress: without `axis`, of the flattened elements. Conditions beyond the axis are ignored. */
bool shape_compress(Graph *graph, Node *node) {
  const Value *condition = node->inputs[1];
  const Dim *shape[MAX_RANK];
  int axis, rank = rank_with_axis(graph, node, &axis, shape);
  if (rank < 0 || !check_rank(graph, node, 1, 1, 1)) return false;
  shape[axis] = nonzero_dim(graph, condition, dim_min(graph->dims, shape[axis], condition->shape[0]));
  return set_shape(graph, node, 0, rank, shape);
}

/* ONNX Unique: the different slices along `axis`, or elements; first index, inverse index and count of each. */
bool shape_unique(Graph *graph, Node *node) {
  const Dim *shape[MAX_RANK];
  int axis, rank = rank_with_axis(graph, node, &axis, shape);
  if (rank < 0) return false;
  const Dim *n = shape[axis];
  shape[axis] = data_dependent_dim(graph, 0, n);
  set_shape(graph, node, 0, rank, shape);
  set_shape(graph, node, 1, 1, &shape[axis]);
  set_shape(graph, node, 2, 1, &n);
  return set_shape(graph, node, 3, 1, &shape[axis]);
}
