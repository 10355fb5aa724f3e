/* SPDX-License-Identifier: MIT */
/* Range: out[i] = start + i * delta. */
#include "kernel.h"
#include "rows.h"

/* legal: float double int16_t int32_t int64_t */
typedef float T;

/* 1: start and delta are integers; 0: they may have a fraction.
 * legal: 0 1 */
enum { WHOLE = 0 };

/* start and delta are quotients, of which the divisors are 1 for integers. */
static void range(const Team *team, T *out, int64_t n, int64_t start, int64_t start_divisor, int64_t delta,
                  int64_t delta_divisor) {
  int64_t piece, end;
  double first = (double)start / (double)start_divisor, step = (double)delta / (double)delta_divisor;
  team_share(team, ceil_div(n, ROWS_PIECE), &piece, &end);
  for (int64_t i = piece * ROWS_PIECE; i < min_i64(n, end * ROWS_PIECE); i++)
    out[i] = WHOLE ? (T)(start + i * delta) : (T)(first + (double)i * step);
}
