/* SPDX-License-Identifier: MIT */
/* ArgMax and ArgMin along one axis of x[outer, n, inner]. The first NaN wins over everything, as in numpy. */
#include "kernel.h"

/* legal: float double int64_t int32_t int16_t int8_t uint64_t uint32_t uint16_t uint8_t */
typedef float T;

/* 1: ArgMin.
 * legal: 0 1 */
enum { MINIMUM = 0 };
/* 1: of equal elements the last.
 * legal: 0 1 */
enum { LAST = 0 };

/* Does x replace the best so far? */
static inline bool beats(T x, T best) {
  bool better = MINIMUM ? x < best : x > best;
  if (LAST && x == best) better = true;
  return !__builtin_isnan((double)best) && (better || __builtin_isnan((double)x));
}

/* Elements are `inner` apart. */
static int64_t find(const T *x, int64_t n, int64_t inner) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; i++)
    if (beats(x[i * inner], x[best * inner])) best = i;
  return best;
}

static void arg_extreme(const Team *team, const T *x, int64_t *y, int64_t outer, int64_t n, int64_t inner) {
  int64_t item, end;
  team_share(team, outer * inner, &item, &end);
  for (; item < end; item++) y[item] = find(x + item / inner * n * inner + item % inner, n, inner);
}
