/* SPDX-License-Identifier: MIT */
/* Numbers of which the compiler was told the range. Another one is reported, and copied as the nearest in the range: no
 * kernel behind it has room for more. */
#include "kernel.h"
#include "rows.h"

/* legal: int32_t int64_t */
typedef int64_t T;

/* y[i] = max(least, min(x[i], most)), n of each. */
static void expect_between(const Team *team, atomic_int *fault, const T *x, T *y, int64_t n, int64_t least,
                           int64_t most) {
  int64_t piece, end;
  team_share(team, ceil_div(n, ROWS_PIECE), &piece, &end);
  for (int64_t i = piece * ROWS_PIECE; i < min_i64(n, end * ROWS_PIECE); i++) {
    int64_t in_range = max_i64(least, min_i64(x[i], most));
    if (x[i] != in_range) fault_report(fault, RNNCC_ERROR_VALUE);
    y[i] = (T)in_range;
  }
}
