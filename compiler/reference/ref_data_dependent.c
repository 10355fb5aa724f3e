/* SPDX-License-Identifier: MIT */
/* Ops with data-dependent output shapes. */
#include "reference/kernels.h"

const char *ref_nonzero(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  Tensor *y = outputs[0];
  int64_t found = 0, count = tensor_count(x), strides[MAX_RANK] = {1};
  (void)node;
  tensor_strides(x, strides);
  for (int64_t i = 0; i < count; i++) found += tensor_get(x, i) != 0;
  y->shape[1] = found;
  for (int64_t i = 0, at = 0; i < count; i++) {
    if (tensor_get(x, i) == 0) continue;
    for (int64_t axis = 0, rest = i; axis < y->shape[0]; rest %= strides[axis++])
      tensor_set_int(y, axis * found + at, rest / strides[axis]);
    at++;
  }
  return NULL;
}

const char *ref_compress(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *condition = inputs[1];
  Tensor *y = outputs[0];
  int axis = node_has(node, ATTR_axis) ? normal_axis(node_int(node, ATTR_axis), x->rank) : 0;
  int end = node_has(node, ATTR_axis) ? axis + 1 : x->rank;
  int64_t outer = tensor_extent(x, 0, axis), whole = tensor_extent(x, axis, end);
  int64_t inner = tensor_extent(x, end, x->rank), kept = 0, to = 0;
  int64_t length = condition->shape[0] < whole ? condition->shape[0] : whole;
  for (int64_t i = 0; i < length; i++) kept += tensor_get(condition, i) != 0;
  y->shape[axis] = kept;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < length; i++)
      for (int64_t k = 0; k < inner; k++)
        if (tensor_get(condition, i) != 0) copy_element(y, to++, x, (o * whole + i) * inner + k);
  return NULL;
}
