/* SPDX-License-Identifier: MIT */
/* Ops that pick or place elements by index: GatherElements, GatherND, ScatterElements, ScatterND, TensorScatter,
 * OneHot. */
#include "ir/tensor.h"
#include "shapes/shape.h"

bool constant_range(const Value *value, int64_t first, int64_t step, IntRange *range) {
  if (!value->data || value_count(value) <= first) return false;
  *range = (IntRange){INT64_MAX, INT64_MIN};
  for (int64_t i = first, count = value_count(value); i < count; i += step) {
    int64_t at = value_integer(value, i);
    if (at < range->least) range->least = at;
    if (at > range->most) range->most = at;
  }
  return true;
}

/* Reports constant indices that are outside for every value of the extent. */
static bool check_constant(Graph *graph, const Node *node, int64_t first, int64_t step, const Dim *extent) {
  IntRange range;
  if (!constant_range(node->inputs[1], first, step, &range)) return true;
  if (range.most < dim_upper(extent) && range.least >= -dim_upper(extent)) return true;
  return shape_error(node, "index %lld is outside an axis of %s",
                     (long long)(range.most < dim_upper(extent) ? range.least : range.most), dim_text(graph, extent));
}

/* Checks indices along `axis`; along other axes they must not be longer than the data. */
static bool check_along_axis(Graph *graph, const Node *node, int axis) {
  const Value *data = node->inputs[0], *indices = node->inputs[1];
  if (indices->rank != data->rank)
    return shape_error(node, "the indices must have the data's rank, found %s and %s", shape_text(graph, indices),
                       shape_text(graph, data));
  for (int k = 0; k < data->rank; k++)
    if (k != axis && !dim_at_most(graph->dims, indices->shape[k], data->shape[k]))
      return shape_error(node, "the indices, %s, reach past the data, %s, on axis %d", shape_text(graph, indices),
                         shape_text(graph, data), k);
  return check_constant(graph, node, 0, 1, data->shape[axis]);
}

bool shape_gather_elements(Graph *graph, Node *node) {
  const Value *data = node->inputs[0], *indices = node->inputs[1];
  int axis = check_axis(node, "axis", node_int(node, ATTR_axis), data->rank);
  if (axis < 0 || !check_along_axis(graph, node, axis)) return false;
  return set_shape(graph, node, 0, indices->rank, indices->shape);
}

/* Reductions need a numeric type. */
static bool check_reduction(const Node *node) {
  DType dtype = node->inputs[0]->dtype;
  if (dtype != RNNCC_BOOL || node_word(node, ATTR_reduction) == SCATTER_none) return true;
  return shape_unsupported(node, "reduction \"%s\" of %s", node_string(node, ATTR_reduction),
                           dtype_name(node->inputs[0]->dtype));
}

bool shape_scatter_elements(Graph *graph, Node *node) {
  const Value *data = node->inputs[0], *indices = node->inputs[1];
  int axis = check_axis(node, "axis", node_int(node, ATTR_axis), data->rank);
  if (axis < 0 || !check_reduction(node) || !check_along_axis(graph, node, axis)) return false;
  if (!check_shape(graph, node, 2, indices->rank, indices->shape, "the indices' shape")) return false;
  return set_shape(graph, node, 0, data->rank, data->shape);
}

/* Index tuples are the last axis, and index the data from axis `first` on. Their length, or -1 after an error. */
static int tuple_length(Graph *graph, const Node *node, int first) {
  const Value *data = node->inputs[0], *indices = node->inputs[1];
  const Dim *last = indices->rank ? indices->shape[indices->rank - 1] : NULL;
  if (!last || !dim_is_const(last) || dim_value(last) < 1 || dim_value(last) > data->rank - first) {
    shape_error(node, "the last axis of the indices must be 1 to %d, the axes that they name; found %s",
                data->rank - first, shape_text(graph, indices));
    return -1;
  }
  int length = (int)dim_value(last);
  for (int k = 0; k < length; k++)
    if (!check_constant(graph, node, k, length, data->shape[first + k])) return -1;
  return length;
}

/* [the indices' axes but the last one, the data's axes from `first` on], the shape of `what`; false with an error if
 * the rank is too high. */
static bool tuple_shape(const Node *node, const char *what, int first, int *rank, const Dim **shape) {
  const Value *data = node->inputs[0], *indices = node->inputs[1];
  *rank = indices->rank - 1 + data->rank - first;
  if (!check_made_rank(node, what, *rank)) return false;
  for (int axis = 0; axis < indices->rank - 1; axis++) *shape++ = indices->shape[axis];
  for (int axis = first; axis < data->rank; axis++) *shape++ = data->shape[axis];
  return true;
}

bool shape_gather_nd(Graph *graph, Node *node) {
  const Value *data = node->inputs[0], *indices = node->inputs[1];
  int64_t batch_dims = node_int(node, ATTR_batch_dims);
  int least = data->rank < indices->rank ? data->rank : indices->rank;
  if (batch_dims < 0 || batch_dims >= least)
    return shape_error(node, "`batch_dims` is %lld; it must be in 0..%d", (long long)batch_dims, least - 1);
  for (int axis = 0; axis < (int)batch_dims; axis++)
    if (!same_dim(data->shape[axis], indices->shape[axis]))
      return shape_error(node, "the data and the indices differ on batch axis %d: %s and %s", axis,
                         shape_text(graph, data), shape_text(graph, indices));
  int length = tuple_length(graph, node, (int)batch_dims), rank;
  const Dim *shape[MAX_RANK];
  if (length < 0 || !tuple_shape(node, "the result", (int)batch_dims + length, &rank, shape)) return false;
  return set_shape(graph, node, 0, rank, shape);
}

bool shape_scatter_nd(Graph *graph, Node *node) {
  const Value *data = node->inputs[0];
  int length = tuple_length(graph, node, 0), rank;
  const Dim *shape[MAX_RANK];
  if (length < 0 || !check_reduction(node) || !tuple_shape(node, "the updates", length, &rank, shape)) return false;
  if (!check_shape(graph, node, 2, rank, shape, "one update a tuple")) return false;
  return set_shape(graph, node, 0, data->rank, data->shape);
}

/* Where bounds leave it open, places beyond the cache's end fail in a run; around a ring's end none are beyond. */
static bool check_block_fits(Graph *graph, const Node *node, int axis) {
  const Value *past = node->inputs[0], *block = node->inputs[1];
  const Dim *longest = block->shape[axis], *room = past->shape[axis];
  if (dim_at_most(graph->dims, longest, room)) return true;
  if (dim_lower(dim_sub(graph->dims, longest, room)) > 0)
    return shape_error(node, "the block, %s, is longer than the cache, %s, on axis %d", shape_text(graph, block),
                       shape_text(graph, past), axis);
  return node_word(node, ATTR_mode) == CACHE_linear ||
         shape_unsupported(node,
                           "the block, %s, may be longer than the circular cache, %s, on axis %d; expected bounds "
                           "(--dim) of %s that keep it from that",
                           shape_text(graph, block), shape_text(graph, past), axis, dim_text(graph, longest));
}

/* A block of at most the cache's places along the axis; elsewhere the shapes agree. */
bool shape_tensor_scatter(Graph *graph, Node *node) {
  const Value *past = node->inputs[0], *block = node->inputs[1];
  const Dim *wanted[MAX_RANK];
  if (!check_rank(graph, node, 0, 2, MAX_RANK)) return false;
  int axis = check_axis(node, "axis", node_int(node, ATTR_axis), past->rank);
  if (axis < 0 || !check_rank(graph, node, 1, past->rank, past->rank)) return false;
  if (axis == 0) return shape_error(node, "axis is 0, that of the samples; expected another one");
  for (int k = 0; k < past->rank; k++) wanted[k] = k == axis ? block->shape[k] : past->shape[k];
  if (!check_shape(graph, node, 1, past->rank, wanted, "the cache's, but for the axis")) return false;
  if (!check_shape(graph, node, 2, 1, past->shape, "a place for each sample")) return false;
  return check_block_fits(graph, node, axis) && shape_same(graph, node);
}

bool shape_one_hot(Graph *graph, Node *node) {
  const Value *indices = node->inputs[0];
  int axis = check_axis(node, "axis", node_int(node, ATTR_axis), indices->rank + 1);
  DimList depth;
  const Dim *two = dim_const(graph->dims, 2), *shape[MAX_RANK];
  if (axis < 0 || !operand_dims(graph, node, ATTR_NONE, 1, &depth)) return false;
  if (!check_shape(graph, node, 2, 1, &two, "[off, on]") || !check_made_rank(node, "the result", indices->rank + 1))
    return false;
  if (depth.n != 1 || dim_lower(depth.items[0]) < 1)
    return shape_error(node, "the depth (input 1) must be one number, at least 1");
  for (int k = 0, from = 0; k <= indices->rank; k++) shape[k] = k == axis ? depth.items[0] : indices->shape[from++];
  return set_shape(graph, node, 0, indices->rank + 1, shape);
}
