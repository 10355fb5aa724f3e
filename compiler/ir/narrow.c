/* SPDX-License-Identifier: MIT */
#include "ir/narrow.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "ir/tensor.h"
#include "support/numbers.h"

static int largest_integer(DType dtype) { return dtype == RNNCC_I4 ? 7 : 127; }

static int most_of(const NarrowWeights *narrow) { return narrow->most ? narrow->most : largest_integer(narrow->dtype); }

/* The channel's elements are consecutive, or if inner is 1, a row of all channels apart. */
static int64_t scale_place(const NarrowWeights *narrow, int64_t i) {
  int64_t channel = i / narrow->inner % narrow->count;
  int64_t along = narrow->inner == 1 ? i / narrow->count : i % narrow->inner;
  return channel * narrow->groups + (narrow->group ? along / narrow->group : 0);
}

bool narrow_alike(const NarrowWeights *a, const NarrowWeights *b) {
  if (a == b) return true;
  if (!a || !b || a->dtype != b->dtype) return false;
  if (!narrow_is_scaled(a)) return true;
  if (a->inner != b->inner || a->count != b->count || a->group != b->group || a->groups != b->groups) return false;
  return !memcmp(a->scales, b->scales, (size_t)(a->count * a->groups) * sizeof *a->scales);
}

const NarrowWeights *narrow_columns(const Value *value, int64_t depth, int64_t depth_stride) {
  const NarrowWeights *narrow = value->narrow;
  if (!narrow || !narrow_is_scaled(narrow) || narrow->count == 1) return narrow;
  bool rows = narrow->inner == depth && depth_stride == 1;
  return rows || (narrow->inner == 1 && narrow->count == depth_stride) ? narrow : NULL;
}

float narrow_scale(const NarrowWeights *narrow, int64_t i) { return narrow->scales[scale_place(narrow, i)]; }

int narrow_integer(const Value *value, int64_t i) {
  float scale = narrow_scale(value->narrow, i), number = ((const float *)value->data)[i];
  int largest = largest_integer(value->narrow->dtype);
  return scale != 0 && isfinite(number) ? (int)clamp_int(-largest - 1, (int64_t)rintf(number / scale), largest) : 0;
}

static Value *new_constant(Graph *graph, const Value *value, float *data, const NarrowWeights *narrow) {
  int64_t shape[MAX_RANK];
  for (int axis = 0; axis < value->rank; axis++) shape[axis] = dim_value(value->shape[axis]);
  Value *made = graph_constant(graph, value->name, RNNCC_F32, value->rank, shape, data);
  made->narrow = narrow;
  made->block = value->block;
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

/* The largest magnitude of each group; NaN where a number is not finite. */
static float *largest_of(Arena *arena, const Value *value, const NarrowWeights *narrow) {
  const float *data = value->data;
  float *largest = ARENA_ARRAY(arena, float, narrow->count * narrow->groups);
  for (int64_t i = 0; i < value_count(value); i++) {
    float *of = &largest[scale_place(narrow, i)];
    if (!isfinite(data[i])) *of = NAN;
    if (fabsf(data[i]) > *of) *of = fabsf(data[i]);
  }
  return largest;
}

/* The numbers of a channel, rounded one after the other. carried: what those before add to each, zeros at first. */
static void round_channel(const Value *value, const NarrowWeights *narrow, int64_t channel, const double *feedback,
                          double *carried, float *data) {
  int64_t depth = value_count(value) / narrow->count, largest = most_of(narrow);
  for (int64_t k = 0; k < depth; k++) {
    int64_t i = narrow->inner == 1 ? k * narrow->count + channel : channel * depth + k;
    float scale = narrow_scale(narrow, i), number = ((const float *)value->data)[i];
    double wanted = feedback ? (double)number + carried[k] : (double)number;
    float steps = scale == 0 ? 0 : rintf((float)wanted / scale);
    data[i] = fmaxf((float)-largest, fminf(steps, (float)largest)) * scale;
    double error = (double)number - (double)data[i];
    for (int64_t j = k + 1; feedback && isfinite(error) && j < depth; j++)
      carried[j] += error * feedback[k * depth + j];
  }
}

Value *narrow_scaled(Graph *graph, const Value *value, const NarrowWeights *channels, const double *feedback) {
  if (value->block)
    error_at(value->where, EXIT_UNSUPPORTED, "--weights=mutable: a weight with scales, of %s, is not packed again",
             dtype_name(channels->dtype));
  NarrowWeights *narrow = ARENA_NEW(graph->arena, NarrowWeights);
  *narrow = *channels;
  int64_t depth = value_count(value) / narrow->count;
  if (narrow->group >= depth) narrow->group = 0;
  narrow->groups = narrow->group ? ceil_div(depth, narrow->group) : 1;
  float *scales = largest_of(graph->arena, value, narrow), *data;
  data = ARENA_ARRAY(graph->arena, float, value_count(value));
  narrow->scales = scales;
  for (int64_t c = 0; c < narrow->count * narrow->groups; c++) {
    scales[c] /= (float)most_of(narrow);
    if (scales[c] < FLT_MIN) scales[c] = 0;
  }
  double *carried = ARENA_ARRAY(graph->arena, double, depth);
  for (int64_t channel = 0; channel < narrow->count; channel++) {
    memset(carried, 0, (size_t)depth * sizeof *carried);
    round_channel(value, narrow, channel, feedback, carried, data);
  }
  return new_constant(graph, value, data, narrow);
}

bool narrow_scales_fit(const float *scales, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (scales[i] != 0 && (!isnormal(scales[i]) || !isfinite(256 * scales[i]))) return false;
  return true;
}
