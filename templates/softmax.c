/* SPDX-License-Identifier: MIT */
/*
 * Softmax and LogSoftmax along one axis of x[outer, n, inner], shifted by the maximum so that exp cannot overflow.
 * Where the axis is the last, a vector runs along it; else a vector holds LANES neighbours of the inner axis. A NaN, or
 * an infinite maximum, makes its whole group NaN. Softmax leaves the exponentials in y until their sum is known.
 */
#include "kernel.h"
#include "simd/math.h"

/* 1: LogSoftmax.
 * legal: 0 1 */
enum { LOGARITHM = 0 };
/* 1: inner is 1.
 * legal: 0 1 */
enum { LAST_AXIS = 1 };

/* The result in two steps. `total`: the sum of the group's exponentials, or its logarithm. */
static inline vec first_result(vec shifted, vec exponential) { return LOGARITHM ? shifted : exponential; }
static inline vec result(vec first, vec total) { return LOGARITHM ? vsub(first, total) : vdiv(first, total); }

static inline vec sum_or_log(vec sum) { return LOGARITHM ? vlog(sum) : sum; }

static void softmax_row(const float *x, float *y, int64_t n) {
  int64_t whole = n - n % LANES;
  int rest = (int)(n - whole);
  vec top = vset(-__builtin_inff()), sum = vzero();
  for (int64_t i = 0; i < whole; i += LANES) top = vmax(top, vload(x + i));
  if (rest) top = vmax(top, vselect(vmask_first(rest), vload_n(x + whole, rest), top));
  top = vset(vhmax(top));
  /* Of two exponentials some constants would be on the stack where registers are few. */
#pragma clang loop unroll(disable)
  for (int64_t i = 0; i < whole; i += LANES) {
    vec shifted = vsub(vload(x + i), top), exponential = vexp_shifted(shifted);
    sum = vadd(sum, exponential);
    vstore(y + i, first_result(shifted, exponential));
  }
  vec last = vzero();
  if (rest) {
    vec shifted = vsub(vload_n(x + whole, rest), top), exponential = vexp_shifted(shifted);
    sum = vadd(sum, vselect(vmask_first(rest), exponential, vzero()));
    last = first_result(shifted, exponential);
  }
  vec total = sum_or_log(vset(vhsum(sum)));
  for (int64_t i = 0; i < whole; i += LANES) vstore(y + i, result(vload(y + i), total));
  if (rest) vstore_n(y + whole, result(last, total), rest);
}

/* `lanes` neighbouring groups, whose elements are `inner` apart. */
static void softmax_columns(const float *x, float *y, int64_t n, int64_t inner, int lanes) {
  vec top = vset(-__builtin_inff()), sum = vzero();
  for (int64_t i = 0; i < n; i++) top = vmax(top, vload_n(x + i * inner, lanes));
  for (int64_t i = 0; i < n; i++) {
    vec shifted = vsub(vload_n(x + i * inner, lanes), top), exponential = vexp_shifted(shifted);
    sum = vadd(sum, exponential);
    vstore_n(y + i * inner, first_result(shifted, exponential), lanes);
  }
  vec total = sum_or_log(sum);
  for (int64_t i = 0; i < n; i++) vstore_n(y + i * inner, result(vload_n(y + i * inner, lanes), total), lanes);
}

static void softmax(const Team *team, const float *x, float *y, int64_t outer, int64_t n, int64_t inner) {
  int64_t blocks = LAST_AXIS ? 1 : ceil_div(inner, LANES), item, end;
  team_share(team, outer * blocks, &item, &end);
  for (; item < end; item++) {
    if (LAST_AXIS) {
      softmax_row(x + item * n, y + item * n, n);
    } else {
      int64_t column = item % blocks * LANES, at = item / blocks * n * inner + column;
      softmax_columns(x + at, y + at, n, inner, (int)min_i64(LANES, inner - column));
    }
  }
}
