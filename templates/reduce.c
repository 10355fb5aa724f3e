/* SPDX-License-Identifier: MIT */
/*
 * Reductions of f32 over any axes, neighbours merged: y[kept] = finish(combine over reduced of map(x)). Where the last
 * axis is reduced, a vector runs along it and is reduced across at the end; else a vector holds LANES neighbours of the
 * last axis. Either way the order of the sum depends on the shape and LANES alone. NaN propagates, also in maxima.
 */
#include "kernel.h"
#include "knobs.h"
#include "rows.h"
#include "simd/math.h"

/* How elements combine: COMBINE_SUM, ...
 * legal: 0..3 */
enum { COMBINE = COMBINE_SUM };
/* 1: the sum of exponentials, shifted by the maximum, to which finish's result is added.
 * legal: 0 1 */
enum { EXPONENTIALS = 0 };
/* 1: the last axis is reduced.
 * legal: 0 1 */
enum { LAST_AXIS = 1 };
/* Axes before the last, kept and reduced.
 * legal: 0..8 */
enum { KEPT = 1 };
/* legal: 0..8 */
enum { REDUCED = 0 };

/* hook: what an element contributes. */
static inline vec map(vec x) { return x; }

/* hook: from the combined value and the number of elements to the result. */
static inline vec finish(vec total, vec count) {
  (void)count;
  return total;
}

typedef struct Reduce {
  const int64_t *extent, *stride; /* of the reduced axes before the last */
  int64_t n, rows;                /* extent of the last axis, and how often it comes up in one result */
} Reduce;

/* The first pass of EXPONENTIALS looks for the maximum. */
enum { PASS_MAXIMUM = 0, PASS_RESULT = 1 };

SIMD_FUNCTION int operation(int pass) { return pass == PASS_MAXIMUM ? COMBINE_MAX : COMBINE; }

SIMD_FUNCTION vec combine(int pass, vec a, vec b) {
  if (operation(pass) == COMBINE_MAX) return vmax(a, b);
  if (operation(pass) == COMBINE_MIN) return vmin(a, b);
  return operation(pass) == COMBINE_PRODUCT ? vmul(a, b) : vadd(a, b);
}

SIMD_FUNCTION vec neutral(int pass) {
  const float of[4] = {0.0f, -__builtin_inff(), __builtin_inff(), 1.0f};
  return vset(of[operation(pass)]);
}

SIMD_FUNCTION vec across(int pass, vec v) {
  if (operation(pass) == COMBINE_MAX) return vset(vhmax(v));
  if (operation(pass) == COMBINE_MIN) return vset(vhmin(v));
  if (operation(pass) == COMBINE_SUM) return vset(vhsum(v));
  float lane[LANES];
  vstore(lane, v);
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) lane[i] *= lane[i + half];
  return vset(lane[0]);
}

SIMD_FUNCTION vec contribution(int pass, vec x, vec shift) {
  if (pass == PASS_MAXIMUM) return x;
  if (EXPONENTIALS) return vexp(vsub(x, shift));
  return map(x);
}

SIMD_FUNCTION vec add_row(int pass, vec total, const float *x, int64_t n, vec shift) {
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) total = combine(pass, total, contribution(pass, vload(x + i), shift));
  int rest = (int)(n - i);
  if (rest == 0) return total;
  vec with_rest = combine(pass, total, contribution(pass, vload_n(x + i, rest), shift));
  return vselect(vmask_first(rest), with_rest, total);
}

/* One result, or `lanes` neighbouring ones. */
SIMD_FUNCTION vec fold(const Reduce *r, int pass, const float *x, int lanes, vec shift) {
  Rows reduced = {.axes = REDUCED, .extent = r->extent, .stride = {r->stride, r->stride, r->stride}};
  vec total = neutral(pass);
  if (r->rows > 0) rows_seek(&reduced, 0);
  for (int64_t row = 0; row < r->rows; row++) {
    const float *at = x + reduced.offset[0];
    if (LAST_AXIS)
      total = add_row(pass, total, at, r->n, shift);
    else
      total = combine(pass, total, contribution(pass, vload_n(at, lanes), shift));
    rows_next(&reduced);
  }
  return LAST_AXIS ? across(pass, total) : total;
}

static void reduce_some(const Reduce *r, const float *x, float *y, int lanes, vec count) {
  vec shift = vzero();
  if (EXPONENTIALS) {
    shift = fold(r, PASS_MAXIMUM, x, lanes, shift);
    shift = vselect(vlt(vabs(shift), vset(__builtin_inff())), shift, vzero());
  }
  vec total = finish(fold(r, PASS_RESULT, x, lanes, shift), count);
  if (EXPONENTIALS) total = vadd(total, shift);
  vstore_n(y, total, lanes);
}

/* kept_* and reduced_*: the axes before the last, strides in elements; n: the last axis. count: elements in a result.
 */
static void reduce(const Team *team, const float *x, float *y, const int64_t *kept_extent, const int64_t *kept_stride,
                   const int64_t *reduced_extent, const int64_t *reduced_stride, int64_t n, int64_t count) {
  Reduce r = {reduced_extent, reduced_stride, n, rows_count(REDUCED, reduced_extent)};
  Rows kept = {.axes = KEPT, .extent = kept_extent, .stride = {kept_stride, kept_stride, kept_stride}};
  int64_t blocks = LAST_AXIS ? 1 : ceil_div(n, LANES), row = LAST_AXIS ? 1 : n, item, end;
  team_share(team, rows_count(KEPT, kept_extent) * blocks, &item, &end);
  if (item == end) return;
  rows_seek(&kept, item / blocks);
  for (; item < end; item++) {
    int64_t column = item % blocks * LANES;
    reduce_some(&r, x + kept.offset[0] + column, y + item / blocks * row + column, (int)min_i64(LANES, row - column),
                vset((float)count));
    if ((item + 1) % blocks == 0) rows_next(&kept);
  }
}
