/* SPDX-License-Identifier: MIT */
/*
 * x[outer, n, inner] over its norm along n; a group of zeros stays as it is. Where the axis is the last, a vector runs
 * along it; else a vector holds LANES neighbours of the inner axis.
 */
#include "kernel.h"
#include "simd/simd.h"

/* 1: the sum of magnitudes; 2: the root of the sum of squares.
 * legal: 1 2 */
enum { P = 2 };
/* 1: inner is 1.
 * legal: 0 1 */
enum { LAST_AXIS = 1 };

SIMD_FUNCTION vec add_to(vec sum, vec x) { return P == 2 ? vfma(sum, x, x) : vadd(sum, vabs(x)); }

SIMD_FUNCTION vec norm_of(vec sum) { return P == 2 ? vsqrt(sum) : sum; }

SIMD_FUNCTION vec quotient(vec x, vec norm) { return vselect(veq(norm, vzero()), vzero(), vdiv(x, norm)); }

static void norm_row(const float *x, float *y, int64_t n) {
  vec sum = vzero();
  for (int64_t i = 0; i < n; i += LANES) sum = add_to(sum, vload_n(x + i, (int)min_i64(LANES, n - i)));
  vec norm = norm_of(vset(vhsum(sum)));
  for (int64_t i = 0; i < n; i += LANES) {
    int lanes = (int)min_i64(LANES, n - i);
    vstore_n(y + i, quotient(vload_n(x + i, lanes), norm), lanes);
  }
}

/* `lanes` neighbouring groups, whose elements are `inner` apart. */
static void norm_columns(const float *x, float *y, int64_t n, int64_t inner, int lanes) {
  vec sum = vzero();
  for (int64_t i = 0; i < n; i++) sum = add_to(sum, vload_n(x + i * inner, lanes));
  vec norm = norm_of(sum);
  for (int64_t i = 0; i < n; i++) vstore_n(y + i * inner, quotient(vload_n(x + i * inner, lanes), norm), lanes);
}

static void lp_norm(const Team *team, const float *x, float *y, int64_t outer, int64_t n, int64_t inner) {
  int64_t blocks = LAST_AXIS ? 1 : ceil_div(inner, LANES), item, end;
  team_share(team, outer * blocks, &item, &end);
  for (; item < end; item++) {
    if (LAST_AXIS) {
      norm_row(x + item * n, y + item * n, n);
    } else {
      int64_t column = item % blocks * LANES, at = item / blocks * n * inner + column;
      norm_columns(x + at, y + at, n, inner, (int)min_i64(LANES, inner - column));
    }
  }
}
