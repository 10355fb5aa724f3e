/* SPDX-License-Identifier: MIT */
/* The first half of NonZero: counts nonzero elements in each of NONZERO_CHUNKS equal shares of x. */
#include "kernel.h"
#include "knobs.h"

/* The element.
 * legal: bits8 bits16 bits32 bits64 */
typedef bits32 T;

/* 1: the highest bit is a sign; an element with this bit alone is -0, which is zero.
 * legal: 0 1 */
enum { FLOATS = 1 };

static inline bool is_set(T x) { return FLOATS ? (T)(x << 1) != 0 : x != 0; }

/* counts: [NONZERO_CHUNKS][NONZERO_APART], of which the first are written. */
static void nonzero_count(const Team *team, const T *x, int64_t *counts, int64_t n) {
  int64_t chunk, end;
  team_share(team, NONZERO_CHUNKS, &chunk, &end);
  for (; chunk < end; chunk++) {
    int64_t count = 0, last = n * (chunk + 1) / NONZERO_CHUNKS;
    for (int64_t i = n * chunk / NONZERO_CHUNKS; i < last; i++) count += is_set(x[i]);
    counts[chunk * NONZERO_APART] = count;
  }
}
