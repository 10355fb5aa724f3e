/* SPDX-License-Identifier: MIT */
/*
 * The second half of NonZero: writes the indices of nonzero elements. Row `axis` of y has their indices along that
 * axis, so the number of elements is the length of y's rows; the counts tell where each share begins.
 */
#include "kernel.h"
#include "knobs.h"

/* The element.
 * legal: bits8 bits16 bits32 bits64 */
typedef bits32 T;

/* 1: the highest bit is a sign; an element with this bit alone is -0, which is zero.
 * legal: 0 1 */
enum { FLOATS = 1 };

/* Axes of x.
 * legal: 1..8 */
enum { RANK = 1 };

static inline bool is_set(T x) { return FLOATS ? (T)(x << 1) != 0 : x != 0; }

static void write_place(int64_t *y, int64_t found, const int64_t *shape, int64_t i) {
  for (int axis = RANK - 1; axis > 0; axis--) {
    y[axis * found] = i % shape[axis];
    i /= shape[axis];
  }
  y[0] = i;
}

/* counts: [NONZERO_CHUNKS][NONZERO_APART]. *measured is set to their sum. */
static void nonzero(const Team *team, const T *x, const int64_t *counts, int64_t *y, int64_t *measured,
                    const int64_t *shape, int64_t n) {
  int64_t chunk, end, found = 0, at = 0;
  team_share(team, NONZERO_CHUNKS, &chunk, &end);
  for (int64_t c = 0; c < NONZERO_CHUNKS; c++) {
    if (c == chunk) at = found;
    found += counts[c * NONZERO_APART];
  }
  if (team->rank == 0) *measured = found;
  for (int64_t i = n * chunk / NONZERO_CHUNKS; i < n * end / NONZERO_CHUNKS; i++)
    if (is_set(x[i])) write_place(y + at++, found, shape, i);
}
