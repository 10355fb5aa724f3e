/* SPDX-License-Identifier: MIT */
/* Walking several tensors at once by strides, the one loop beneath most reference kernels. */
#include "reference/kernels.h"

#include <string.h>

Walk walk_over(int rank, const int64_t *shape) {
  Walk walk = {.rank = rank};
  for (int axis = 0; axis < rank; axis++) walk.shape[axis] = shape[axis];
  return walk;
}

void walk_add(Walk *walk, int64_t offset, const int64_t *strides) {
  int operand = walk->n_operands++;
  walk->offset[operand] = offset;
  for (int axis = 0; axis < walk->rank; axis++) walk->stride[operand][axis] = strides[axis];
}

bool walk_add_broadcast(Walk *walk, const Tensor *tensor) {
  int64_t dense[MAX_RANK], strides[MAX_RANK] = {0};
  int lead = walk->rank - tensor->rank;
  if (lead < 0) return false;
  tensor_strides(tensor, dense);
  for (int axis = 0; axis < tensor->rank; axis++) {
    if (tensor->shape[axis] != 1 && tensor->shape[axis] != walk->shape[lead + axis]) return false;
    strides[lead + axis] = tensor->shape[axis] == 1 ? 0 : dense[axis];
  }
  walk_add(walk, 0, strides);
  return true;
}

bool walk_begin(Walk *walk) {
  for (int axis = 0; axis < walk->rank; axis++) {
    walk->index[axis] = 0;
    if (walk->shape[axis] <= 0) return false;
  }
  return true;
}

/* Like an odometer: the last axis steps; one that is through goes back to its start and the next one to the left
 * steps. After the last point all offsets are back at the start, so the walk can begin again. */
bool walk_next(Walk *walk) {
  for (int axis = walk->rank - 1; axis >= 0; axis--) {
    bool through = ++walk->index[axis] == walk->shape[axis];
    int64_t steps = through ? 1 - walk->shape[axis] : 1;
    for (int operand = 0; operand < walk->n_operands; operand++)
      walk->offset[operand] += steps * walk->stride[operand][axis];
    if (!through) return true;
    walk->index[axis] = 0;
  }
  return false;
}

int64_t node_int_at(const Node *node, AttributeName name, int index, int64_t otherwise) {
  const Attribute *attribute = node_attribute(node, name);
  return attribute && (size_t)index < attribute->count ? attribute->ints[index] : otherwise;
}

const Tensor *optional_input(const Node *node, const Tensor *const *inputs, int input) {
  return input < node->n_inputs ? inputs[input] : NULL;
}

Tensor *optional_output(const Node *node, Tensor *const *outputs, int output) {
  return output < node->n_outputs ? outputs[output] : NULL;
}

int64_t tensor_extent(const Tensor *tensor, int first, int end) {
  int64_t count = 1;
  for (int axis = first; axis < end; axis++) count *= tensor->shape[axis];
  return count;
}

void tensor_strides(const Tensor *tensor, int64_t strides[MAX_RANK]) {
  int64_t stride = 1;
  for (int axis = tensor->rank - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= tensor->shape[axis];
  }
}

void copy_element(Tensor *to, int64_t to_index, const Tensor *from, int64_t from_index) {
  size_t size = dtype_size(to->dtype);
  memcpy((char *)to->data + (size_t)to_index * size, (const char *)from->data + (size_t)from_index * size, size);
}

Wide tensor_get_wide(const Tensor *tensor, int64_t index) {
  int64_t value = tensor_get_int(tensor, index);
  return tensor->dtype == RNNCC_U64 ? (Wide)(uint64_t)value : (Wide)value;
}

int64_t wrap_int(DType dtype, int64_t value) {
  const DTypeInfo *type = dtype_info(dtype);
  int spare = 64 - type->bits;
  if (type->kind == DTYPE_BOOL) return value != 0;
  uint64_t high = (uint64_t)value << spare;
  return type->kind == DTYPE_SIGNED ? (int64_t)high >> spare : (int64_t)(high >> spare);
}
