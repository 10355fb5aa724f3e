/* SPDX-License-Identifier: MIT */
/* Sizes of values: elements and bytes, in memory and at the dims' optimum. */
#include "ir/graph.h"

#include "support/numbers.h"

bool value_is_constant(const Value *value) { return value->data != NULL; }
bool value_is_known(const Value *value) { return value->data && !value->block; }

bool value_static(const Value *value) {
  for (int axis = 0; axis < value->rank; axis++)
    if (!dim_is_const(value->shape[axis])) return false;
  return value->rank >= 0;
}

const char *weight_name(const Value *value) { return value->trained_as ? value->trained_as : value->name; }

bool value_may_be_trained(const Graph *graph, const Value *value) {
  const Training *training = graph->config ? &graph->config->training : NULL;
  return training && training->wanted && value->is_weight && value->dtype == RNNCC_F32 && value->rank > 0 &&
         training_takes(training, weight_name(value));
}

int64_t value_count(const Value *value) {
  int64_t count = 1;
  for (int axis = 0; axis < value->rank; axis++) count *= dim_value(value->shape[axis]);
  return count;
}

/* The extent in memory: a blocked value has whole blocks of channels. */
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

bool value_plane_is_large(const Value *value) {
  double pixels = 1;
  for (int axis = 2; axis < value->rank; axis++)
    if (dim_is_const(value->shape[axis])) pixels *= (double)dim_value(value->shape[axis]);
  return pixels > MAX_PLANE_PIXELS;
}

double value_optimum(const Value *value) {
  double count = 1;
  for (int axis = 0; axis < value->rank; axis++) count *= (double)dim_optimum(value->shape[axis]);
  return count;
}

double value_optimum_bytes(const Value *value) { return value_optimum(value) * (double)dtype_size(value->dtype); }

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
