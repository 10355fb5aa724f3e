/* SPDX-License-Identifier: MIT */
#include <stdint.h>

/* Rows a step works on.
 * legal: 1..8 */
enum { ROWS = 4 };
/* Element.
 * legal: float int64_t */
typedef float T;

enum { EXTRA = 7, PARTS = 2 };

/* A field may be called like a function, and so may a local. */
typedef struct Pair {
  T ROWS_field, second, sum_of;
} Pair;

static inline T sum_of(const T parts[PARTS][PARTS]) { return parts[0][0] + parts[PARTS - 1][0]; }

enum Sign { PLUS = 1 };

/* hook: what becomes of each element */
static inline T finish(T x) { return x; }

static inline T used_only_when_negated(T x) { return -x; }

#include "parts/sample_sums.h"

/* Adds ROWS elements. */
static void sample(const T *in, T *out, int64_t n) {
  T sums[ROWS];
  clear(sums);
  Pair pair = {0, 0};
  enum Sign sign = PLUS;
  for (int64_t i = 0; i < n; i++) {
    if (NEGATE) {
      sums[i % ROWS] += used_only_when_negated(in[i]);
    } else {
      sums[i % ROWS] += in[i];
    }
    if (ROWS > 100) sums[0] = EXTRA;
  }
  pair.second = sums[0] * (T)sign;
  const T parts[PARTS][PARTS] = {{pair.second}, {pair.sum_of}};
  const T clear = sum_of(parts);
  for (int r = 0; r < ROWS; r++) out[r] = finish(sums[r] + pair.ROWS_field + clear);
}
