/* SPDX-License-Identifier: MIT */
/*
 * Reductions of f32 over any axes: y[kept] = finish(combine over reduced of map(element)). An element is read, or
 * computed of operands that broadcast to the shape that is reduced, and then never stored. Where the last axis is
 * reduced, a vector runs along it and is reduced across at the end; else a vector holds LANES neighbours of the last
 * axis. Either way the order of the sum depends on the shape and LANES alone. NaN propagates, also in maxima.
 */
#include "chain.h"
#include "kernel.h"
#include "knobs.h"

/* How elements combine: COMBINE_SUM, ...
 * legal: 0..3 */
enum { COMBINE = COMBINE_SUM };
/* 1: the sum of exponentials, shifted by the maximum, to which finish's result is added.
 * legal: 0 1 */
enum { EXPONENTIALS = 0 };
/* 1: the last axis is reduced.
 * legal: 0 1 */
enum { LAST_AXIS = 1 };
/* legal: 1..8 */
enum { OPERANDS = 1 };
/* Axes before the last, kept and reduced.
 * legal: 0..8 */
enum { KEPT = 1 };
/* legal: 0..8 */
enum { REDUCED = 0 };

/* Of the reduced axes before the last one the inmost is a plain loop, the others are an odometer. */
enum { OUTER = REDUCED > 0 ? REDUCED - 1 : 0 };
/* Sums that hide each other's latency: parts of a row, or vectors of columns. */
enum { PARTS = 4 };

/* hook: n of LANES elements of the operands' rows, from element i on. */
SIMD_FUNCTION vec element(const char *const *in, int64_t i, int n) { return chain_load(in[0], i, n); }

/* hook: what an element contributes. */
static inline vec map(vec x) { return x; }

/* hook: from the combined value and the number of elements to the result. */
static inline vec finish(vec total, vec count) {
  (void)count;
  return total;
}

/* hook: maps a result. */
static inline vec epilogue(vec x) { return x; }

typedef struct Reduce {
  const int64_t *extent, *stride; /* of the outer reduced axes; strides in bytes, OUTER for each operand */
  int64_t outer, inner;           /* how often the outer axes come up, and the extent of the inmost one */
  int64_t inner_stride[OPERANDS];
  int64_t n; /* extent of the last axis */
  float count;
} Reduce;

/* The first pass of EXPONENTIALS looks for the maximum. */
enum { PASS_MAXIMUM = 0, PASS_RESULT = 1 };

/* ---- one operation ---- */

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

SIMD_FUNCTION float across(int pass, vec v) {
  if (operation(pass) == COMBINE_MAX) return vhmax(v);
  if (operation(pass) == COMBINE_MIN) return vhmin(v);
  if (operation(pass) == COMBINE_SUM) return vhsum(v);
  float lane[LANES];
  vstore(lane, v);
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) lane[i] *= lane[i + half];
  return lane[0];
}

SIMD_FUNCTION vec contribution(int pass, vec x, vec shift) {
  if (pass == PASS_MAXIMUM) return x;
  if (EXPONENTIALS) return vexp(vsub(x, shift));
  return map(x);
}

/* By which exponents are shifted: the maximum, if that is a number. */
SIMD_FUNCTION vec shift_of(vec maximum) {
  return vselect(vlt(vabs(maximum), vset(__builtin_inff())), maximum, vzero());
}

SIMD_FUNCTION vec result_of(const Reduce *r, vec total, vec shift) {
  vec result = finish(total, vset(r->count));
  return epilogue(EXPONENTIALS ? vadd(result, shift) : result);
}

/* ---- walks over axes ---- */

/* Where it is, in each operand. strides: in bytes, `axes` of each. */
typedef struct Walk {
  int64_t index[RNNCC_MAX_RANK];
  const char *in[OPERANDS];
} Walk;

static inline void walk_begin(Walk *walk, const char *const *in) {
  for (int axis = 0; axis < RNNCC_MAX_RANK; axis++) walk->index[axis] = 0;
  for (int k = 0; k < OPERANDS; k++) walk->in[k] = in[k];
}

static inline void walk_seek(Walk *walk, int axes, int64_t number, const int64_t *extent, const int64_t *strides) {
  for (int axis = axes - 1; axis >= 0; axis--) {
    walk->index[axis] = number % extent[axis];
    number /= extent[axis];
    for (int k = 0; k < OPERANDS; k++) walk->in[k] += walk->index[axis] * strides[k * axes + axis];
  }
}

static inline void walk_next(Walk *walk, int axes, const int64_t *extent, const int64_t *strides) {
  for (int axis = axes - 1; axis >= 0; axis--) {
    bool carry = ++walk->index[axis] == extent[axis];
    int64_t steps = carry ? 1 - extent[axis] : 1;
    for (int k = 0; k < OPERANDS; k++) walk->in[k] += steps * strides[k * axes + axis];
    if (!carry) return;
    walk->index[axis] = 0;
  }
}

/* ---- the last axis is reduced ---- */

SIMD_FUNCTION void add_row(const Reduce *r, int pass, int parts, vec *totals, const char *const *in, vec shift) {
  int64_t i = 0;
  for (; parts > 1 && i + parts * LANES <= r->n; i += parts * LANES) {
#pragma clang loop unroll(full)
    for (int p = 0; p < parts; p++)
      totals[p] = combine(pass, totals[p], contribution(pass, element(in, i + p * LANES, LANES), shift));
  }
  for (; i + LANES <= r->n; i += LANES)
    totals[0] = combine(pass, totals[0], contribution(pass, element(in, i, LANES), shift));
  int rest = (int)(r->n - i);
  if (rest == 0) return;
  vec with_rest = combine(pass, totals[0], contribution(pass, element(in, i, rest), shift));
  totals[0] = vselect(vmask_first(rest), with_rest, totals[0]);
}

SIMD_FUNCTION float fold_row(const Reduce *r, int pass, int parts, const char *const *start, vec shift) {
  vec totals[PARTS];
  Walk walk;
  for (int p = 0; p < parts; p++) totals[p] = neutral(pass);
  walk_begin(&walk, start);
  for (int64_t outer = 0; outer < (OUTER ? r->outer : 1); outer++) {
    const char *in[OPERANDS];
    for (int k = 0; k < OPERANDS; k++) in[k] = walk.in[k];
    for (int64_t row = 0; row < (REDUCED ? r->inner : 1); row++) {
      add_row(r, pass, parts, totals, in, shift);
      for (int k = 0; k < OPERANDS; k++) in[k] += r->inner_stride[k];
    }
    walk_next(&walk, OUTER, r->extent, r->stride);
  }
  if (parts == 1) return across(pass, totals[0]);
  vec even = combine(pass, totals[0], totals[2]), odd = combine(pass, totals[1], totals[3]);
  return across(pass, combine(pass, even, odd));
}

/* Results item .. end, LANES of them finished at once. */
SIMD_FUNCTION void reduce_rows(const Reduce *r, int parts, Walk *kept, const int64_t *extent, const int64_t *strides,
                               float *y, int64_t item, int64_t end) {
  while (item < end) {
    int count = (int)min_i64(LANES, end - item);
    float totals[LANES] = {0}, shifts[LANES] = {0};
    for (int lane = 0; lane < count; lane++) {
      vec shift = vzero();
      if (EXPONENTIALS) shift = shift_of(vset(fold_row(r, PASS_MAXIMUM, parts, kept->in, shift)));
      if (EXPONENTIALS) shifts[lane] = vhmax(shift);
      totals[lane] = fold_row(r, PASS_RESULT, parts, kept->in, shift);
      walk_next(kept, KEPT, extent, strides);
    }
    vstore_n(y + item, result_of(r, vload(totals), vload(shifts)), count);
    item += count;
  }
}

/* ---- the last axis is kept ---- */

SIMD_FUNCTION void fold_columns(const Reduce *r, int pass, const char *const *start, int64_t column, int vectors,
                                int lanes, const vec *shifts, vec *totals) {
  Walk walk;
  for (int v = 0; v < vectors; v++) totals[v] = neutral(pass);
  walk_begin(&walk, start);
  for (int64_t outer = 0; outer < (OUTER ? r->outer : 1); outer++) {
    const char *in[OPERANDS];
    for (int k = 0; k < OPERANDS; k++) in[k] = walk.in[k];
    for (int64_t row = 0; row < (REDUCED ? r->inner : 1); row++) {
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++)
        totals[v] = combine(pass, totals[v], contribution(pass, element(in, column + v * LANES, lanes), shifts[v]));
      for (int k = 0; k < OPERANDS; k++) in[k] += r->inner_stride[k];
    }
    walk_next(&walk, OUTER, r->extent, r->stride);
  }
}

/* Columns of one row of results: so many whole vectors, or the first `lanes` of one. */
SIMD_FUNCTION void reduce_columns(const Reduce *r, const char *const *start, float *y, int64_t column, int vectors,
                                  int lanes) {
  vec shifts[PARTS], totals[PARTS];
  for (int v = 0; v < vectors; v++) shifts[v] = vzero();
  if (EXPONENTIALS) {
    fold_columns(r, PASS_MAXIMUM, start, column, vectors, lanes, shifts, totals);
    for (int v = 0; v < vectors; v++) shifts[v] = shift_of(totals[v]);
  }
  fold_columns(r, PASS_RESULT, start, column, vectors, lanes, shifts, totals);
  for (int v = 0; v < vectors; v++) vstore_n(y + column + v * LANES, result_of(r, totals[v], shifts[v]), lanes);
}

static void reduce_block(const Reduce *r, const char *const *start, float *y, int64_t column) {
  int64_t end = min_i64(column + PARTS * LANES, r->n);
  if (end - column == PARTS * LANES) {
    reduce_columns(r, start, y, column, PARTS, LANES);
    return;
  }
  for (; column < end; column += LANES) reduce_columns(r, start, y, column, 1, (int)min_i64(LANES, end - column));
}

/* ---- all ---- */

/* kept_* and reduced_*: the axes before the last, with strides in bytes for each operand; n: the last axis. count:
 * elements in a result. inner_strides: of the last reduced axis, if there is one, of which reduced_strides have none.
 */
static void reduce(const Team *team, const void *const *operands, float *y, const int64_t *kept_extent,
                   const int64_t *kept_strides, const int64_t *reduced_extent, const int64_t *reduced_strides,
                   const int64_t *inner_strides, int64_t n, int64_t count) {
  Reduce r = {reduced_extent, reduced_strides, 1, REDUCED ? reduced_extent[OUTER] : 1, {0}, n, (float)count};
  for (int axis = 0; axis < OUTER; axis++) r.outer *= reduced_extent[axis];
  for (int k = 0; REDUCED && k < OPERANDS; k++) r.inner_stride[k] = inner_strides[k];
  int64_t blocks = LAST_AXIS ? 1 : ceil_div(n, PARTS * LANES), rows = 1, item, end;
  for (int axis = 0; axis < KEPT; axis++) rows *= kept_extent[axis];
  team_share(team, rows * blocks, &item, &end);
  if (item == end) return;
  Walk kept;
  walk_begin(&kept, (const char *const *)operands);
  walk_seek(&kept, KEPT, item / blocks, kept_extent, kept_strides);
  if (LAST_AXIS) {
    if (n < PARTS * LANES)
      reduce_rows(&r, 1, &kept, kept_extent, kept_strides, y, item, end);
    else
      reduce_rows(&r, PARTS, &kept, kept_extent, kept_strides, y, item, end);
    return;
  }
  for (; item < end; item++) {
    reduce_block(&r, kept.in, y + item / blocks * n, item % blocks * PARTS * LANES);
    if ((item + 1) % blocks == 0) walk_next(&kept, KEPT, kept_extent, kept_strides);
  }
}
