/* SPDX-License-Identifier: MIT */
/*
 * TopK along the middle axis of x[outer, n, inner]: values and positions, best first, of equal ones the lower position
 * first. NaN counts as the greatest. The outputs hold a heap of the best k so far, with the worst at the root, which is
 * then sorted: O(n log k) without other memory. Along the last axis many values at a time are compared with the root,
 * because few are better.
 */
#include "kernel.h"

/* legal: float double int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t */
typedef float T;

/* 1: the greatest; 0: the least.
 * legal: 0 1 */
enum { LARGEST = 1 };

enum { BLOCK = 64 }; /* values compared with the root together */

enum { CACHE_LINE = 64 / sizeof(int64_t) }; /* columns of a worker: their positions share a line */

typedef struct Entry {
  T value;
  int64_t position;
} Entry;

/* One column of the outputs; entries are `stride` apart. */
typedef struct Column {
  T *values;
  int64_t *positions;
  int64_t stride;
} Column;

static inline Entry entry(const Column *c, int64_t i) {
  return (Entry){c->values[i * c->stride], c->positions[i * c->stride]};
}

static inline void put(const Column *c, int64_t i, Entry e) {
  c->values[i * c->stride] = e.value;
  c->positions[i * c->stride] = e.position;
}

static inline bool ahead(Entry a, Entry b) {
  bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
  if (a_is_nan != b_is_nan) return LARGEST ? a_is_nan : b_is_nan;
  if (LARGEST ? a.value > b.value : a.value < b.value) return true;
  if (LARGEST ? b.value > a.value : b.value < a.value) return false;
  return a.position < b.position;
}

/* Sinks `e` from the root of the heap at `i` of `n` entries: better entries are below. */
static void sink(const Column *c, int64_t i, int64_t n, Entry e) {
  for (int64_t child; (child = 2 * i + 1) < n; i = child) {
    Entry worse = entry(c, child);
    if (child + 1 < n && ahead(worse, entry(c, child + 1))) worse = entry(c, ++child);
    if (!ahead(e, worse)) break;
    put(c, i, worse);
  }
  put(c, i, e);
}

/* May one of BLOCK values, which come later, be ahead of `worst`? */
static bool any_ahead(const T *x, T worst) {
  int any = 0;
  for (int i = 0; i < BLOCK; i++) any |= LARGEST ? !(x[i] <= worst) : !(x[i] >= worst);
  return any;
}

static void select_column(const Column *c, const T *x, int64_t n, int64_t k) {
  for (int64_t i = 0; i < k; i++) put(c, i, (Entry){x[i * c->stride], i});
  for (int64_t i = k / 2 - 1; i >= 0; i--) sink(c, i, k, entry(c, i));
  for (int64_t first = k; first < n; first += BLOCK) {
    int64_t end = min_i64(first + BLOCK, n);
    if (c->stride == 1 && end - first == BLOCK && !any_ahead(x + first, c->values[0])) continue;
    for (int64_t i = first; i < end; i++) {
      Entry e = {x[i * c->stride], i};
      if (ahead(e, entry(c, 0))) sink(c, 0, k, e);
    }
  }
  for (int64_t left = k - 1; left > 0; left--) {
    Entry worst = entry(c, 0), last = entry(c, left);
    put(c, left, worst);
    sink(c, 0, left, last);
  }
}

/* 1 <= k <= n. */
static void top_k(const Team *team, const T *x, T *values, int64_t *positions, int64_t outer, int64_t n, int64_t inner,
                  int64_t k) {
  int64_t blocks = ceil_div(inner, CACHE_LINE), item, end;
  team_share(team, outer * blocks, &item, &end);
  for (; item < end; item++) {
    int64_t first = item % blocks * CACHE_LINE, last = min_i64(inner, first + CACHE_LINE);
    for (int64_t column = first; column < last; column++) {
      int64_t at = item / blocks * k * inner + column;
      Column c = {values + at, positions + at, inner};
      select_column(&c, x + item / blocks * n * inner + column, n, k);
    }
  }
}
