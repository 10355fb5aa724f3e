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
  int64_t outer = 1, length = tensor_count(x), inner = 1, kept = 0;
  if (node_has(node, ATTR_axis)) {
    length = x->shape[axis];
    for (int i = 0; i < axis; i++) outer *= x->shape[i];
    for (int i = axis + 1; i < x->rank; i++) inner *= x->shape[i];
  }
  if (condition->shape[0] < length) length = condition->shape[0];
  for (int64_t i = 0; i < length; i++) kept += tensor_get(condition, i) != 0;
  y->shape[axis] = kept;
  int64_t whole = node_has(node, ATTR_axis) ? x->shape[axis] : tensor_count(x), to = 0;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < length; i++)
      for (int64_t k = 0; k < inner; k++)
        if (tensor_get(condition, i) != 0) copy_element(y, to++, x, (o * whole + i) * inner + k);
  return NULL;
}
