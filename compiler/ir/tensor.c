/* SPDX-License-Identifier: MIT */
#include "ir/tensor.h"

#include <math.h>

#include "small_float.h"

Tensor *tensor_new(Arena *arena, DType dtype, int rank, const int64_t *shape) {
  Tensor *tensor = ARENA_NEW(arena, Tensor);
  tensor->dtype = dtype;
  tensor->rank = rank;
  for (int axis = 0; axis < rank; axis++) tensor->shape[axis] = shape[axis];
  tensor->data = arena_array(arena, (size_t)tensor_count(tensor), dtype_size(dtype));
  return tensor;
}

int64_t tensor_count(const Tensor *tensor) {
  int64_t count = 1;
  for (int axis = 0; axis < tensor->rank; axis++) count *= tensor->shape[axis];
  return count;
}

double tensor_get(const Tensor *tensor, int64_t index) {
  if (tensor->dtype == RNNCC_F32) return (double)((const float *)tensor->data)[index];
  if (tensor->dtype == RNNCC_F64) return ((const double *)tensor->data)[index];
  if (dtype_is_coded(tensor->dtype)) return (double)coded_to_f32(tensor->dtype, tensor->data, index);
  if (tensor->dtype == RNNCC_U64) return (double)((const uint64_t *)tensor->data)[index];
  return (double)tensor_get_int(tensor, index);
}

/* Towards zero; beyond i64 its end. */
static int64_t to_i64(double value) {
  if (value >= 0x1p63) return INT64_MAX;
  return value >= -0x1p63 ? (int64_t)value : isnan(value) ? 0 : INT64_MIN;
}

void tensor_set(Tensor *tensor, int64_t index, double value) {
  if (tensor->dtype == RNNCC_F32)
    ((float *)tensor->data)[index] = (float)value;
  else if (tensor->dtype == RNNCC_F64)
    ((double *)tensor->data)[index] = value;
  else if (dtype_is_coded(tensor->dtype))
    f64_to_coded(tensor->dtype, tensor->data, index, value, true, POWER_UP);
  else if (tensor->dtype == RNNCC_U64 && value >= 0x1p63)
    ((uint64_t *)tensor->data)[index] = value < 0x1p64 ? (uint64_t)value : UINT64_MAX;
  else
    tensor_set_int(tensor, index, to_i64(value));
}

/* The lowest bits of an element that has a byte of its own; else the element. */
static int64_t narrowed(DType dtype, int64_t value) {
  int bits = dtype_info(dtype)->bits;
  if (bits >= 8) return value;
  return dtype_info(dtype)->kind == DTYPE_SIGNED ? signed_bits(value, bits) : unsigned_bits((uint64_t)value, bits);
}

int64_t tensor_get_int(const Tensor *tensor, int64_t index) {
  if (dtype_is_float(tensor->dtype)) return to_i64(tensor_get(tensor, index));
  switch (tensor->dtype) {
#define DTYPE(name, code, type, ...)                                                                                   \
  case RNNCC_##name:                                                                                                   \
    return narrowed(RNNCC_##name, (int64_t)((const type *)tensor->data)[index]);
#include "dtypes.def"
  case RNNCC_NONE:
    break;
  }
  bug("a tensor without a type");
}

void tensor_set_int(Tensor *tensor, int64_t index, int64_t value) {
  if (dtype_is_coded(tensor->dtype)) {
    tensor_set(tensor, index, (double)value);
    return;
  }
  if (tensor->dtype == RNNCC_BOOL) value = value != 0;
  switch (tensor->dtype) {
#define DTYPE(name, code, type, ...)                                                                                   \
  case RNNCC_##name:                                                                                                   \
    ((type *)tensor->data)[index] = (type)narrowed(RNNCC_##name, (int64_t)value);                                      \
    return;
#include "dtypes.def"
  case RNNCC_NONE:
    break;
  }
  bug("a tensor without a type");
}

/* What is decided by numbers that are made up would be wrong without a sign of it. */
static void check_known(const Value *value) {
  if (value->block) bug("the numbers of t%d are looked at, which can change", value->id);
}

double value_element(const Value *value, int64_t index) {
  check_known(value);
  const Tensor elements = {.dtype = value->dtype, .data = (void *)value->data};
  return tensor_get(&elements, index);
}

int64_t value_integer(const Value *value, int64_t index) {
  check_known(value);
  const Tensor elements = {.dtype = value->dtype, .data = (void *)value->data};
  return tensor_get_int(&elements, index);
}

bool value_number(const Value *value, double *number) {
  if (!value_is_known(value) || value_max_count(value) != 1) return false;
  *number = value_element(value, 0);
  return true;
}
