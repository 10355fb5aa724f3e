/* SPDX-License-Identifier: MIT */
/* Range whose operands only the run knows, whole numbers, though they may be floats: out[i] = start + i * delta, as
 * many as there are before the limit. */
#include "kernel.h"
#include "rows.h"

/* legal: int16_t int32_t int64_t float double */
typedef int64_t T;

/* A float beyond 2^62 is as good as that. */
static inline int64_t whole(T number) {
  const bool is_float = (T)0.5 > 0;
  const int64_t far = INT64_C(1) << 62;
  if (is_float && number >= (T)far) return far;
  if (is_float && number <= (T)-far) return -far;
  return (int64_t)number;
}

/* ceil((limit - start) / delta), in unsigned numbers: the distance may be no int64_t. */
static inline int64_t elements_of(int64_t start, int64_t limit, int64_t delta) {
  uint64_t distance = delta < 0 ? (uint64_t)start - (uint64_t)limit : (uint64_t)limit - (uint64_t)start;
  uint64_t step = delta < 0 ? 0 - (uint64_t)delta : (uint64_t)delta;
  bool none = delta < 0 ? limit >= start : limit <= start;
  return none || step == 0 ? 0 : (int64_t)((distance - 1) / step + 1);
}

/* *measured is set to the length, at most `most`: out has no room for more. */
static void range_found(const Team *team, const T *start, const T *limit, const T *delta, T *out, int64_t *measured,
                        int64_t most) {
  int64_t first = whole(*start), step = whole(*delta), piece, end;
  int64_t n = min_i64(most, elements_of(first, whole(*limit), step));
  if (team->rank == 0) *measured = n;
  team_share(team, ceil_div(n, ROWS_PIECE), &piece, &end);
  for (int64_t i = piece * ROWS_PIECE; i < min_i64(n, end * ROWS_PIECE); i++) out[i] = (T)(first + i * step);
}
