/* SPDX-License-Identifier: MIT */
#include "ir/narrow.h"

#include <math.h>

#include "ir/tensor.h"

enum { LARGEST = 127 };

int narrow_integer(const Value *value, int64_t i) {
  const NarrowWeights *narrow = value->narrow;
  float scale = narrow->scales[i / narrow->inner % narrow->count];
  return scale != 0 ? (int)rintf(((const float *)value->data)[i] / scale) : 0;
}

static Value *new_constant(Graph *graph, const Value *value, float *data, const NarrowWeights *narrow) {
  int64_t shape[MAX_RANK];
  for (int axis = 0; axis < value->rank; axis++) shape[axis] = dim_value(value->shape[axis]);
  Value *made = graph_constant(graph, value->name, RNNCC_F32, value->rank, shape, data);
  made->narrow = narrow;
  return made;
}

Value *narrow_rounded(Graph *graph, const Value *value, DType dtype) {
  int64_t count = value_count(value), one[] = {count};
  Tensor *rounded = tensor_new(graph->arena, dtype, 1, one);
  float *data = ARENA_ARRAY(graph->arena, float, count);
  for (int64_t i = 0; i < count; i++) {
    tensor_set(rounded, i, (double)((const float *)value->data)[i]);
    data[i] = (float)tensor_get(rounded, i);
  }
  NarrowWeights *narrow = ARENA_NEW(graph->arena, NarrowWeights);
  narrow->dtype = dtype;
  return new_constant(graph, value, data, narrow);
}

/* The largest magnitude of each channel; NaN where a number is not finite. */
static float *largest_of(Arena *arena, const Value *value, int64_t inner, int64_t count) {
  const float *data = value->data;
  float *largest = ARENA_ARRAY(arena, float, count);
  for (int64_t i = 0; i < value_count(value); i++) {
    float *of = &largest[i / inner % count];
    if (!isfinite(data[i])) *of = NAN;
    if (fabsf(data[i]) > *of) *of = fabsf(data[i]);
  }
  return largest;
}

Value *narrow_scaled(Graph *graph, const Value *value, int64_t inner, int64_t count) {
  float *scales = largest_of(graph->arena, value, inner, count), *data;
  data = ARENA_ARRAY(graph->arena, float, value_count(value));
  for (int64_t c = 0; c < count; c++) scales[c] /= LARGEST;
  for (int64_t i = 0; i < value_count(value); i++) {
    float scale = scales[i / inner % count];
    data[i] = scale == 0 ? 0 : rintf(((const float *)value->data)[i] / scale) * scale;
  }
  NarrowWeights *narrow = ARENA_NEW(graph->arena, NarrowWeights);
  *narrow = (NarrowWeights){.dtype = RNNCC_I8, .scales = scales, .inner = inner, .count = count};
  return new_constant(graph, value, data, narrow);
}
