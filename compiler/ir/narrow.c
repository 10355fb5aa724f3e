/* SPDX-License-Identifier: MIT */
#include "ir/narrow.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "ir/feedback.h"
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
  if (!a || !b || a->dtype != b->dtype || a->rounds_rows != b->rounds_rows) return false;
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

Value *narrow_rounded(Graph *graph, const Value *value, const NarrowWeights *form) {
  int64_t count = value_count(value), one[] = {count};
  Tensor *rounded = tensor_new(graph->arena, form->dtype, 1, one);
  float *data = ARENA_ARRAY(graph->arena, float, count);
  for (int64_t i = 0; i < count; i++) {
    tensor_set(rounded, i, (double)((const float *)value->data)[i]);
    data[i] = (float)tensor_get(rounded, i);
  }
  NarrowWeights *narrow = ARENA_NEW(graph->arena, NarrowWeights);
  narrow->dtype = form->dtype;
  narrow->rounds_rows = form->rounds_rows;
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

/* Weights whose numbers are rounded one after the other, a channel at a time. */
typedef struct Rounding {
  const Value *value;
  const NarrowWeights *narrow;
  float *scales, *data;
  int64_t depth;
  const double *feedback;
  double *carried; /* of the channel: what those before add to each, zeros at first */
  bool choose;     /* scales are those by which the groups err least */
} Rounding;

static int64_t element_of(const Rounding *r, int64_t channel, int64_t k) {
  return r->narrow->inner == 1 ? k * r->narrow->count + channel : channel * r->depth + k;
}

/* Numbers that are not finite have the scale that they have. */
static void choose_scale(const Rounding *r, int64_t channel, int64_t first, int64_t n) {
  float numbers[FEEDBACK_MOST_GROUP], *scale = &r->scales[scale_place(r->narrow, element_of(r, channel, first))];
  if (!isfinite(*scale)) return;
  for (int64_t k = 0; k < n; k++) numbers[k] = ((const float *)r->value->data)[element_of(r, channel, first + k)];
  *scale = feedback_scale(r->feedback + first * r->depth + first, r->depth, n, numbers, r->carried + first,
                          most_of(r->narrow));
}

static void round_group(const Rounding *r, int64_t channel, int64_t first, int64_t n) {
  if (r->choose) choose_scale(r, channel, first, n);
  for (int64_t k = first; k < first + n; k++) {
    int64_t i = element_of(r, channel, k);
    float number = ((const float *)r->value->data)[i];
    double wanted = r->feedback ? (double)number + r->carried[k] : (double)number;
    r->data[i] = feedback_round(wanted, narrow_scale(r->narrow, i), most_of(r->narrow));
    double error = (double)number - (double)r->data[i];
    for (int64_t j = k + 1; r->feedback && isfinite(error) && j < r->depth; j++)
      r->carried[j] += error * r->feedback[k * r->depth + j];
  }
}

static void round_channel(const Rounding *r, int64_t channel) {
  int64_t group = r->narrow->group ? r->narrow->group : r->depth;
  memset(r->carried, 0, (size_t)r->depth * sizeof *r->carried);
  for (int64_t first = 0; first < r->depth; first += group)
    round_group(r, channel, first, min_int(group, r->depth - first));
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
  float *scales = largest_of(graph->arena, value, narrow), *data = ARENA_ARRAY(graph->arena, float, value_count(value));
  narrow->scales = scales;
  for (int64_t c = 0; c < narrow->count * narrow->groups; c++) {
    scales[c] /= (float)most_of(narrow);
    if (scales[c] < FLT_MIN) scales[c] = 0;
  }
  bool choose = feedback && channels->group > 0 && channels->group <= FEEDBACK_MOST_GROUP;
  double *carried = ARENA_ARRAY(graph->arena, double, depth);
  const Rounding rounding = {value, narrow, scales, data, depth, feedback, carried, choose};
  for (int64_t channel = 0; channel < narrow->count; channel++) round_channel(&rounding, channel);
  return new_constant(graph, value, data, narrow);
}

bool narrow_scales_fit(const float *scales, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (scales[i] != 0 && (!isnormal(scales[i]) || !isfinite(256 * scales[i]))) return false;
  return true;
}
