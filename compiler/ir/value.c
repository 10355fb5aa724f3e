/* SPDX-License-Identifier: MIT */
/* Element types, and what a value's shape comes to. */
#include <string.h>

#include "ir/graph.h"

#include "support/numbers.h"

static const struct TypeRow {
  const char *name, *c;
  size_t size;
} type_rows[] = {
    [RNNCC_NONE] = {"none", "void", 0},   [RNNCC_F32] = {"f32", "float", 4},    [RNNCC_I32] = {"i32", "int32_t", 4},
    [RNNCC_I64] = {"i64", "int64_t", 8},  [RNNCC_U8] = {"u8", "uint8_t", 1},    [RNNCC_BOOL] = {"bool", "uint8_t", 1},
    [RNNCC_F64] = {"f64", "double", 8},   [RNNCC_F16] = {"f16", "uint16_t", 2}, [RNNCC_I8] = {"i8", "int8_t", 1},
    [RNNCC_I16] = {"i16", "int16_t", 2},  [RNNCC_U16] = {"u16", "uint16_t", 2}, [RNNCC_U32] = {"u32", "uint32_t", 4},
    [RNNCC_U64] = {"u64", "uint64_t", 8},
};
enum { N_TYPES = sizeof type_rows / sizeof *type_rows };

size_t dtype_size(DType dtype) { return type_rows[dtype].size; }
bool dtype_is_float(DType dtype) { return dtype == RNNCC_F32 || dtype == RNNCC_F64 || dtype == RNNCC_F16; }
const char *dtype_name(DType dtype) { return type_rows[dtype].name; }
const char *dtype_c(DType dtype) { return type_rows[dtype].c; }

DType dtype_from_name(const char *name) {
  for (int type = RNNCC_F32; type < N_TYPES; type++)
    if (!strcmp(type_rows[type].name, name)) return (DType)type;
  return RNNCC_NONE;
}

bool value_is_constant(const Value *value) { return value->data != NULL; }

bool value_static(const Value *value) {
  for (int axis = 0; axis < value->rank; axis++)
    if (!dim_is_const(value->shape[axis])) return false;
  return value->rank >= 0;
}

int64_t value_count(const Value *value) {
  int64_t count = 1;
  for (int axis = 0; axis < value->rank; axis++) count *= dim_value(value->shape[axis]);
  return count;
}

/* As it stands in memory: a blocked value has whole blocks of channels. */
static int64_t extent_in_memory(const Value *value, int axis) {
  int64_t extent = dim_upper(value->shape[axis]), block = value->channel_block;
  return block && axis == 1 ? round_up(extent, block) : extent;
}

int64_t value_max_count(const Value *value) {
  int64_t count = 1;
  for (int axis = 0; axis < value->rank; axis++) {
    int64_t extent = extent_in_memory(value, axis);
    if (extent <= 0) return 0;
    if (__builtin_mul_overflow(count, extent, &count)) count = INT64_MAX;
  }
  return count;
}

int64_t value_max_bytes(const Value *value) {
  int64_t bytes;
  return __builtin_mul_overflow(value_max_count(value), (int64_t)dtype_size(value->dtype), &bytes) ? INT64_MAX : bytes;
}

const Dim *value_count_dim(Graph *graph, const Value *value, int first_axis, int end_axis) {
  const Dim *count = dim_const(graph->dims, 1);
  for (int axis = first_axis; axis < end_axis; axis++) count = dim_mul(graph->dims, count, value->shape[axis]);
  return count;
}

Value *value_root(Value *value) {
  while (value->view_of) value = value->view_of;
  return value;
}

bool value_is_part(const Value *value) {
  return value->view_of && value->channel_block && value->view_of->rank == value->rank &&
         value->view_of->shape[1] != value->shape[1];
}

int normal_axis(int64_t axis, int rank) {
  if (axis < -(int64_t)rank || axis >= rank) return -1;
  return (int)(axis < 0 ? axis + rank : axis);
}
