/* SPDX-License-Identifier: MIT */
/*
 * Padding whose elements come from the input itself: out[i] = in[map(i - before)] along every axis, where map(j) = j
 * for j in 0..extent-1.
 */
#include "kernel.h"
#include "knobs.h"

/* The element.
 * legal: bits8 bits16 bits32 bits64 */
typedef bits32 T;

/* legal: 1..8 */
enum { RANK = 4 };
/* MAP_EDGE, ...
 * legal: 0 1 2 */
enum { MODE = MAP_EDGE };

static inline int64_t modulo(int64_t a, int64_t n) { return (a % n + n) % n; }

/* The input index for index i, on an axis of n elements. */
static inline int64_t source(int64_t i, int64_t n) {
  if (i >= 0 && i < n) return i;
  if (MODE == MAP_EDGE) return i < 0 ? 0 : n - 1;
  if (MODE == MAP_WRAP) return modulo(i, n);
  int64_t period = n > 1 ? 2 * (n - 1) : 1, at = modulo(i, period);
  return at < n ? at : period - at;
}

/* One output row of `length` elements. */
static void pad_row(const T *in, T *out, int64_t length, int64_t before, int64_t extent) {
  int64_t inside = min_i64(before, length), after = min_i64(before + extent, length);
  for (int64_t i = 0; i < inside; i++) out[i] = in[source(i - before, extent)];
  for (int64_t i = inside; i < after; i++) out[i] = in[i - before];
  for (int64_t i = after; i < length; i++) out[i] = in[source(i - before, extent)];
}

/* shape: the output's; extent: the input's, all positive; in_stride: in elements, 1 for the last axis. */
static void pad_map(const Team *team, const T *in, T *out, const int64_t *shape, const int64_t *before,
                    const int64_t *extent, const int64_t *in_stride) {
  int64_t rows = 1, item, end;
  for (int axis = 0; axis < RANK - 1; axis++) rows *= shape[axis];
  team_share(team, rows, &item, &end);
  for (; item < end; item++) {
    int64_t rest = item;
    const T *from = in;
    for (int axis = RANK - 2; axis >= 0; axis--) {
      from += source(rest % shape[axis] - before[axis], extent[axis]) * in_stride[axis];
      rest /= shape[axis];
    }
    pad_row(from, out + item * shape[RANK - 1], shape[RANK - 1], before[RANK - 1], extent[RANK - 1]);
  }
}
