/* SPDX-License-Identifier: MIT */
/* Trilu: each matrix on and above (or below) its k-th diagonal; zero elsewhere. */
#include "kernel.h"

/* The element.
 * legal: bits8 bits16 bits32 bits64 */
typedef bits32 T;

/* 1: keeps the upper part; 0: the lower.
 * legal: 0 1 */
enum { UPPER = 1 };

static void trilu(const Team *team, const T *in, T *out, int64_t matrices, int64_t rows, int64_t columns, int64_t k) {
  int64_t item, end;
  k = max_i64(-rows, min_i64(k, columns)); /* larger ones are equivalent */
  team_share(team, matrices * rows, &item, &end);
  for (; item < end; item++) {
    const T *restrict from = in + item * columns;
    T *restrict to = out + item * columns;
    int64_t split = max_i64(0, min_i64(item % rows + k + !UPPER, columns));
    for (int64_t i = 0; i < split; i++) to[i] = UPPER ? 0 : from[i];
    for (int64_t i = split; i < columns; i++) to[i] = UPPER ? from[i] : 0;
  }
}
