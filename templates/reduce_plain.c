/* SPDX-License-Identifier: MIT */
/*
 * Reductions of integers and of f64 over any axes, as reduce.c, one element after the other. Sums and products of
 * integers wrap around, and their mean is rounded towards zero.
 */
#include "double.h"
#include "kernel.h"
#include "knobs.h"
#include "rows.h"

/* legal: double int64_t int32_t int16_t int8_t uint64_t uint32_t uint16_t uint8_t */
typedef int64_t T;
/* The type of totals: of integers modulo 2^64.
 * legal: double uint64_t */
typedef uint64_t Total;

/* REDUCE_SUM, ...
 * legal: 0..9 */
enum { OPERATION = REDUCE_SUM };
/* Axes before the last that are kept. The last is one of extent n: reduced, or of extent 1.
 * legal: 0..8 */
enum { KEPT = 1 };
/* Axes before the last that are reduced.
 * legal: 0..8 */
enum { REDUCED = 0 };

enum { FLOATING = (Total)0.5 > 0, SIGNED = (T)-1 < 0 };

static inline Total neutral(void) {
  uint64_t least = SIGNED ? (uint64_t)1 << (8 * sizeof(T) - 1) : 0;
  if (OPERATION == REDUCE_MAX) return FLOATING ? (Total)-__builtin_inf() : (Total)least;
  if (OPERATION == REDUCE_MIN) return FLOATING ? (Total)__builtin_inf() : (Total)(least - 1);
  return OPERATION == REDUCE_PRODUCT;
}

/* NaN is the maximum and the minimum. */
static inline Total combined(Total total, T x) {
  Total wide = (Total)x;
  if (OPERATION == REDUCE_MAX) return x > (T)total || __builtin_isnan((double)x) ? wide : total;
  if (OPERATION == REDUCE_MIN) return x < (T)total || __builtin_isnan((double)x) ? wide : total;
  if (OPERATION == REDUCE_PRODUCT) return total * wide;
  if (OPERATION == REDUCE_SQUARES || OPERATION == REDUCE_NORM) return total + wide * wide;
  if (OPERATION == REDUCE_MAGNITUDES) return total + (x < 0 ? 0 - wide : wide);
  if (OPERATION == REDUCE_LOG_EXP) return total + (Total)exp_f64((double)x);
  return total + wide;
}

static inline T finished(Total total, T shift, int64_t count) {
  if (OPERATION == REDUCE_MEAN && count == 0) return 0;
  if (OPERATION == REDUCE_MEAN && FLOATING) return (T)(total / (Total)count);
  if (OPERATION == REDUCE_MEAN) return SIGNED ? (T)((int64_t)total / count) : (T)(total / (uint64_t)count);
  if (OPERATION == REDUCE_NORM) return (T)__builtin_sqrt((double)total);
  if (OPERATION == REDUCE_LOG) return (T)log_f64((double)total);
  if (OPERATION == REDUCE_LOG_EXP) return (T)log_f64((double)total) + shift;
  return (T)total;
}

/* The maximum, which is subtracted so that exponentials neither overflow nor all vanish. */
static T greatest(const T *x, Rows *reduced, int64_t rows, int64_t n, int64_t step) {
  T most = x[0];
  if (rows > 0) rows_seek(reduced, 0);
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t i = 0; i < n; i++)
      most = x[reduced->offset[0] + i * step] > most ? x[reduced->offset[0] + i * step] : most;
    rows_next(reduced);
  }
  return most - most == 0 ? most : 0;
}

/* n elements, `step` apart, of each reduced row. */
static T reduce_one(const T *x, Rows *reduced, int64_t rows, int64_t n, int64_t step) {
  Total total = neutral();
  T shift = 0;
  if (OPERATION == REDUCE_LOG_EXP && rows * n > 0) shift = greatest(x, reduced, rows, n, step);
  if (rows > 0) rows_seek(reduced, 0);
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t i = 0; i < n; i++) total = combined(total, (T)(x[reduced->offset[0] + i * step] - shift));
    rows_next(reduced);
  }
  return finished(total, shift, rows * n);
}

/* kept_* and reduced_*: axes with their strides in elements, except the last reduced one: n elements, `step` apart. */
static void reduce_plain(const Team *team, const T *x, T *y, const int64_t *kept_extent, const int64_t *kept_stride,
                         const int64_t *reduced_extent, const int64_t *reduced_stride, int64_t n, int64_t step) {
  Rows kept = {.axes = KEPT, .extent = kept_extent, .stride = {kept_stride, kept_stride, kept_stride}};
  Rows reduced = {
      .axes = REDUCED, .extent = reduced_extent, .stride = {reduced_stride, reduced_stride, reduced_stride}};
  int64_t item, end;
  team_share(team, rows_count(KEPT, kept_extent), &item, &end);
  if (item == end) return;
  rows_seek(&kept, item);
  for (; item < end; item++) {
    y[item] = reduce_one(x + kept.offset[0], &reduced, rows_count(REDUCED, reduced_extent), n, step);
    rows_next(&kept);
  }
}
