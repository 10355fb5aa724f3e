/* SPDX-License-Identifier: MIT */
/* Elements picked by index: GatherElements, GatherND, OneHot, ReverseSequence, TopK. Negative indices count from the
 * end. */
#include <math.h>

#include "reference/kernels.h"

int64_t index_position(int64_t index, int64_t length) {
  if (index < -length || index >= length) return -1;
  return index < 0 ? index + length : index;
}

Walk walk_lines(const Tensor *data, const Tensor *indices, int axis, int64_t *stride) {
  int64_t strides[MAX_RANK];
  Walk walk = walk_over(indices->rank, indices->shape);
  tensor_strides(data, strides);
  *stride = strides[axis];
  strides[axis] = 0;
  walk_add(&walk, 0, strides);
  return walk;
}

const char *ref_gather_elements(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *indices = inputs[1];
  int axis = normal_axis(node_int(node, ATTR_axis), x->rank);
  if (axis < 0 || indices->rank != x->rank) return "axis out of range, or ranks differ";
  int64_t stride, i = 0;
  Walk walk = walk_lines(x, indices, axis, &stride);
  for (bool on = walk_begin(&walk); on; on = walk_next(&walk), i++) {
    int64_t at = index_position(tensor_get_int(indices, i), x->shape[axis]);
    if (at < 0) return "index out of range";
    copy_element(outputs[0], i, x, walk.offset[0] + at * stride);
  }
  return NULL;
}

int64_t tuple_offset(const Tensor *data, int first, const Tensor *indices, int64_t tuple, int length) {
  int64_t offset = 0, strides[MAX_RANK];
  tensor_strides(data, strides);
  for (int k = 0; k < length; k++) {
    int64_t at = index_position(tensor_get_int(indices, tuple * length + k), data->shape[first + k]);
    if (at < 0) return -1;
    offset += at * strides[first + k];
  }
  return offset;
}

const char *ref_gather_nd(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *indices = inputs[1];
  int batch_dims = (int)node_int(node, ATTR_batch_dims), length = (int)indices->shape[indices->rank - 1];
  if (batch_dims + length > x->rank) return "more indices than axes";
  int64_t batches = tensor_extent(x, 0, batch_dims), inner = tensor_extent(x, batch_dims + length, x->rank);
  int64_t tuples = tensor_count(indices) / length, batch = batches ? tensor_count(x) / batches : 0;
  for (int64_t tuple = 0; tuple < tuples; tuple++) {
    int64_t offset = tuple_offset(x, batch_dims, indices, tuple, length);
    if (offset < 0) return "index out of range";
    offset += tuple / (tuples / batches) * batch;
    for (int64_t i = 0; i < inner; i++) copy_element(outputs[0], tuple * inner + i, x, offset + i);
  }
  return NULL;
}

/* An index out of range is nowhere: all of its values are off. */
const char *ref_one_hot(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *indices = inputs[0], *values = inputs[2];
  Tensor *y = outputs[0];
  int axis = normal_axis(node_int(node, ATTR_axis), y->rank);
  if (axis < 0) return "axis out of range";
  int64_t depth = y->shape[axis], inner = tensor_extent(y, axis + 1, y->rank);
  for (int64_t i = 0, count = tensor_count(y); i < count; i++) {
    double index = tensor_get(indices, i / (depth * inner) * inner + i % inner);
    double at = (double)(i / inner % depth);
    copy_element(y, i, values, index == at || index == at - (double)depth);
  }
  return NULL;
}

const char *ref_reverse_sequence(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *lengths = inputs[1];
  int time = (int)node_int(node, ATTR_time_axis), batch = (int)node_int(node, ATTR_batch_axis);
  int64_t strides[MAX_RANK], i = 0;
  tensor_strides(x, strides);
  Walk walk = walk_over(x->rank, x->shape);
  for (bool on = walk_begin(&walk); on; on = walk_next(&walk), i++) {
    int64_t length = tensor_get_int(lengths, walk.index[batch]), t = walk.index[time];
    if (length < 0 || length > x->shape[time]) return "a sequence length is out of range";
    copy_element(outputs[0], i, x, t < length ? i + (length - 1 - 2 * t) * strides[time] : i);
  }
  return NULL;
}

/* One column that TopK chooses from. */
typedef struct Column {
  const Tensor *tensor;
  int64_t first, stride;
  bool largest;
} Column;

/* Whether element a comes before element b. NaN counts as the greatest. */
static bool ahead(const Column *c, int64_t a, int64_t b) {
  int64_t at_a = c->first + a * c->stride, at_b = c->first + b * c->stride;
  if (!dtype_is_float(c->tensor->dtype)) {
    int64_t x = tensor_get_int(c->tensor, at_a), y = tensor_get_int(c->tensor, at_b);
    return x == y ? a < b : (x > y) == c->largest;
  }
  double x = tensor_get(c->tensor, at_a), y = tensor_get(c->tensor, at_b);
  if (isnan(x) != isnan(y)) return isnan(x) == c->largest;
  return x == y || isnan(x) ? a < b : (x > y) == c->largest;
}

/* Selection: the best of those after the last one selected. */
const char *ref_top_k(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  int axis = normal_axis(node_int(node, ATTR_axis), x->rank);
  if (axis < 0) return "axis out of range";
  int64_t n = x->shape[axis], k = outputs[0]->shape[axis], inner = tensor_extent(x, axis + 1, x->rank);
  if (k > n) return "more elements wanted than there are";
  for (int64_t i = 0, columns = n ? tensor_count(x) / n : 0; i < columns; i++) {
    Column c = {x, i / inner * n * inner + i % inner, inner, node_int(node, ATTR_largest) != 0};
    for (int64_t place = 0, last = -1; place < k; place++) {
      int64_t best = -1, to = (i / inner * k + place) * inner + i % inner;
      for (int64_t at = 0; at < n; at++)
        if ((last < 0 || ahead(&c, last, at)) && at != last && (best < 0 || ahead(&c, at, best))) best = at;
      copy_element(outputs[0], to, x, c.first + best * inner);
      tensor_set_int(outputs[1], to, best);
      last = best;
    }
  }
  return NULL;
}
