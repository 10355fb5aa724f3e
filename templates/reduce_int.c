/* SPDX-License-Identifier: MIT */
/* Reductions of integers over any axes, as reduce.c. Sums and products wrap around; a mean is rounded towards zero. */
#include "kernel.h"
#include "rows.h"

/* legal: int32_t int64_t uint8_t */
typedef int64_t T;

/* 0: sum; 1: maximum; 2: minimum; 3: product; 4: sum of squares; 5: sum of magnitudes; 6: mean.
 * legal: 0..6 */
enum { OPERATION = 0 };
/* Axes before the last that are kept. The last is one of extent n: reduced, or of extent 1.
 * legal: 0..8 */
enum { KEPT = 1 };
/* Axes before the last that are reduced.
 * legal: 0..8 */
enum { REDUCED = 0 };

static inline uint64_t neutral(void) {
  uint64_t least = (T)-1 < 0 ? (uint64_t)1 << (8 * sizeof(T) - 1) : 0;
  if (OPERATION == 1) return least;
  if (OPERATION == 2) return least - 1;
  return OPERATION == 3;
}

static inline uint64_t combined(uint64_t total, T x) {
  uint64_t wide = (uint64_t)x;
  if (OPERATION == 1) return x > (T)total ? wide : total;
  if (OPERATION == 2) return x < (T)total ? wide : total;
  if (OPERATION == 3) return total * wide;
  if (OPERATION == 4) return total + wide * wide;
  if (OPERATION == 5) return total + (x < 0 ? 0 - wide : wide);
  return total + wide;
}

/* n elements, `step` apart, of each reduced row. */
static T reduce_one(const T *x, Rows *reduced, int64_t rows, int64_t n, int64_t step) {
  uint64_t total = neutral();
  if (rows > 0) rows_seek(reduced, 0);
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t i = 0; i < n; i++) total = combined(total, x[reduced->offset[0] + i * step]);
    rows_next(reduced);
  }
  if (OPERATION == 6) return rows * n ? (T)((int64_t)total / (rows * n)) : 0;
  return (T)total;
}

/* kept_* and reduced_*: axes with their strides in elements, but for the last reduced one: n elements, `step` apart. */
static void reduce_int(const Team *team, const T *x, T *y, const int64_t *kept_extent, const int64_t *kept_stride,
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
