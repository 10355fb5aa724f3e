/* SPDX-License-Identifier: MIT */
/*
 * y[n, c, p] = epilogue((x[n, c, p] - mean[c]) * scale[c] / sqrt(variance[c] + epsilon) + bias[c]), where the
 * statistics are known at run time only; constant ones were folded into a neighbour.
 */
#include "kernel.h"
#include "simd/math.h"

/* 1: a channel has one element, so that vectors run along the channels.
 * legal: 0 1 */
enum { FLAT = 0 };
/* Elements of a channel that are one piece of work.
 * legal: 64..1048576 */
enum { PIECE = 1024 };

typedef struct BatchNorm {
  const float *x, *scale, *bias, *mean, *variance;
  float *y;
  float epsilon;
  int64_t channels, plane;
} BatchNorm;

/* hook: maps an element of the result. */
static inline vec epilogue(vec x) { return x; }

static inline vec normalised(vec x, vec mean, vec factor, vec bias) {
  return epilogue(vfma(bias, vsub(x, mean), factor));
}

static inline vec factor_of(const BatchNorm *b, vec scale, vec variance) {
  return vdiv(scale, vsqrt(vadd(variance, vset(b->epsilon))));
}

/* n elements of channel c, from `at` on. */
static void one_channel(const BatchNorm *b, int64_t c, int64_t at, int64_t n) {
  vec mean = vbroadcast_load(b->mean + c), bias = vbroadcast_load(b->bias + c);
  vec factor = factor_of(b, vbroadcast_load(b->scale + c), vbroadcast_load(b->variance + c));
  const float *x = b->x + at;
  float *y = b->y + at;
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) vstore(y + i, normalised(vload(x + i), mean, factor, bias));
  int rest = (int)(n - i);
  if (rest) vstore_n(y + i, normalised(vload_n(x + i, rest), mean, factor, bias), rest);
}

/* One element of each of n <= LANES channels, from c on. */
static void some_channels(const BatchNorm *b, int64_t c, int64_t at, int n) {
  vec factor = factor_of(b, vload_n(b->scale + c, n), vload_n(b->variance + c, n));
  vec y = normalised(vload_n(b->x + at, n), vload_n(b->mean + c, n), factor, vload_n(b->bias + c, n));
  vstore_n(b->y + at, y, n);
}

/* x and y: [n, channels, plane]; the others: [channels]. */
static void batch_norm(const Team *team, const float *x, const float *scale, const float *bias, const float *mean,
                       const float *variance, float *y, float epsilon, int64_t n, int64_t channels, int64_t plane) {
  BatchNorm b = {x, scale, bias, mean, variance, y, epsilon, channels, plane};
  int64_t row = FLAT ? channels : plane, size = FLAT ? LANES : PIECE, pieces = ceil_div(row, size), item, end;
  team_share(team, n * (FLAT ? 1 : channels) * pieces, &item, &end);
  for (; item < end; item++) {
    int64_t i = item % pieces * size, at = item / pieces * row + i, count = min_i64(size, row - i);
    if (FLAT)
      some_channels(&b, i, at, (int)count);
    else
      one_channel(&b, item / pieces % channels, at, count);
  }
}
