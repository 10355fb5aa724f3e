/* SPDX-License-Identifier: MIT */
/*
 * Resize of one axis by interpolation, x[outer, in, inner] to y[outer, out, inner]: output o is the sum of TAPS
 * neighbouring inputs from start[o] on, with weights of its own; start -1: it is outside, and `outside` is its value.
 * Where the axis is the last, neighbouring outputs are computed together; else a vector holds neighbours of the inner
 * axis.
 */
#include "kernel.h"
#include "simd/simd.h"

/* legal: 1..1024 */
enum { TAPS = 2 };
/* 1: inner is 1.
 * legal: 0 1 */
enum { LAST_AXIS = 1 };
/* 1: some outputs may be outside.
 * legal: 0 1 */
enum { CROPS = 0 };
/* 1: the input may have fewer elements than TAPS; those beyond the last have the weight 0.
 * legal: 0 1 */
enum { FEW = 0 };

/* last: of the input. */
static inline int64_t tap(int64_t k, int64_t last) { return FEW && k > last ? last : k; }

/* weight: [TAPS][n]. */
static void interpolate_row(const float *restrict x, float *restrict y, const int32_t *restrict start,
                            const float *restrict weight, int64_t in, int64_t n, float outside) {
  for (int64_t o = 0; o < n; o++) {
    const float *from = x + (CROPS && start[o] < 0 ? 0 : start[o]);
    float sum = from[0] * weight[o];
    for (int64_t k = 1; k < TAPS; k++) sum += from[tap(k, in - 1)] * weight[k * n + o];
    y[o] = CROPS && start[o] < 0 ? outside : sum;
  }
}

/* One output of the axis for all of `inner`; weights are `n` apart. */
static void interpolate_run(const float *x, float *y, const float *weight, int64_t in, int64_t n, int64_t inner) {
  for (int64_t i = 0; i < inner; i += LANES) {
    int lanes = (int)min_i64(LANES, inner - i);
    vec sum = vmul(vload_n(x + i, lanes), vbroadcast_load(weight));
    for (int64_t k = 1; k < TAPS; k++)
      sum = vfma(sum, vload_n(x + tap(k, in - 1) * inner + i, lanes), vbroadcast_load(weight + k * n));
    vstore_n(y + i, sum, lanes);
  }
}

static void fill(float *y, float value, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = value;
}

static void resize_axis(const Team *team, const float *x, float *y, const int32_t *start, const float *weight,
                        float outside, int64_t outer, int64_t in, int64_t out, int64_t inner) {
  int64_t item, end;
  team_share(team, LAST_AXIS ? outer : outer * out, &item, &end);
  for (; item < end; item++) {
    if (LAST_AXIS) {
      interpolate_row(x + item * in, y + item * out, start, weight, in, out, outside);
      continue;
    }
    int64_t o = item % out;
    if (CROPS && start[o] < 0)
      fill(y + item * inner, outside, inner);
    else
      interpolate_run(x + (item / out * in + start[o]) * inner, y + item * inner, weight + o, in, out, inner);
  }
}
