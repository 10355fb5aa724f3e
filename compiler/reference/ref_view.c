/* SPDX-License-Identifier: MIT */
/* Views, constants and Shape. */
#include <string.h>

#include "reference/kernels.h"

/* Reshape, Flatten, Squeeze, Unsqueeze, Identity: the same bytes. */
const char *ref_view(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  (void)node;
  int64_t count = tensor_count(inputs[0]);
  if (count != tensor_count(outputs[0])) return "a view cannot change the number of elements";
  if (count) memcpy(outputs[0]->data, inputs[0]->data, (size_t)count * dtype_size(inputs[0]->dtype));
  return NULL;
}

const char *ref_expect_extent(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  int axis = normal_axis(node_int(node, ATTR_axis), inputs[0]->rank);
  if (inputs[0]->shape[axis] != outputs[0]->shape[axis]) return "an extent is not the expected one";
  return ref_view(node, inputs, outputs);
}

const char *ref_expect_between(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  for (int64_t i = 0, n = tensor_count(inputs[0]); i < n; i++) {
    int64_t number = tensor_get_int(inputs[0], i);
    if (number < node_int(node, ATTR_least) || number > node_int(node, ATTR_most)) return "a number is out of bounds";
  }
  return ref_view(node, inputs, outputs);
}

const char *ref_bit_cast(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  return ref_view(node, inputs, outputs);
}

/* ONNX allows exactly one of these attributes; their order here is of no matter. */
const char *ref_constant(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  (void)inputs;
  Tensor *y = outputs[0];
  int64_t count = tensor_count(y);
  for (int i = 0; i < node->n_attributes; i++) {
    const Attribute *given = &node->attributes[i];
    bool list = given->kind == ATTRIBUTE_FLOATS || given->kind == ATTRIBUTE_INTS;
    if (count != (given->kind == ATTRIBUTE_TENSOR ? value_count(given->tensor) : list ? (int64_t)given->count : 1))
      return "the constant does not fit its shape";
    if (given->kind == ATTRIBUTE_TENSOR && count)
      memcpy(y->data, given->tensor->data, (size_t)count * dtype_size(y->dtype));
    if (given->kind == ATTRIBUTE_FLOAT) tensor_set(y, 0, given->f);
    if (given->kind == ATTRIBUTE_INT) tensor_set_int(y, 0, given->i);
    for (int64_t k = 0; list && k < count; k++) {
      if (given->kind == ATTRIBUTE_FLOATS)
        tensor_set(y, k, given->floats[k]);
      else
        tensor_set_int(y, k, given->ints[k]);
    }
  }
  return NULL;
}

/* Axes start..end-1; out of range bounds are clamped. */
const char *ref_shape(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  int64_t start = node_int(node, ATTR_start);
  if (start < 0) start = start < -x->rank ? 0 : start + x->rank;
  for (int64_t i = 0, n = tensor_count(outputs[0]); i < n; i++) {
    if (start + i >= x->rank) return "more axes asked for than there are";
    tensor_set_int(outputs[0], i, x->shape[start + i]);
  }
  return NULL;
}
