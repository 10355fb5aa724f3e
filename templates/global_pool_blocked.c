/* SPDX-License-Identifier: MIT */
/*
 * All pixels of each channel of a blocked tensor become one: y[n, c] = finish(combine over pixels of map(x)), LANES
 * channels at a time. Pixels go to PARTS partial results in turns, which are combined in pairs at the end: an order
 * that depends on the number of pixels alone. NaN propagates, also in maxima.
 */
#include "kernel.h"
#include "knobs.h"
#include "simd/math.h"
#include "simd/simd.h"

/* How elements combine: COMBINE_SUM, ...
 * legal: 0..3 */
enum { COMBINE = COMBINE_SUM };

/* Of a block of x.
 * legal: 1 2 */
enum { VECTORS = 1 };

enum { PARTS = 8, PIXEL = VECTORS * LANES };

/* hook: what an element contributes. */
static inline vec map(vec x) { return x; }

/* hook: from the combined value and the number of elements to the result. */
static inline vec finish(vec total, vec count) {
  (void)count;
  return total;
}

SIMD_FUNCTION vec combine(vec a, vec b) {
  if (COMBINE == COMBINE_MAX) return vmax(a, b);
  if (COMBINE == COMBINE_MIN) return vmin(a, b);
  return COMBINE == COMBINE_PRODUCT ? vmul(a, b) : vadd(a, b);
}

SIMD_FUNCTION float neutral(void) {
  const float of[4] = {0.0f, -__builtin_inff(), __builtin_inff(), 1.0f};
  return of[COMBINE];
}

/* One vector of channels. */
SIMD_FUNCTION vec fold(const float *x, int64_t pixels) {
  vec part[PARTS];
#pragma clang loop unroll(full)
  for (int i = 0; i < PARTS; i++) part[i] = vset(neutral());
  int64_t pixel = 0;
  for (; pixel + PARTS <= pixels; pixel += PARTS) {
#pragma clang loop unroll(full)
    for (int i = 0; i < PARTS; i++) part[i] = combine(part[i], map(vload(x + (pixel + i) * PIXEL)));
  }
  for (; pixel < pixels; pixel++) part[0] = combine(part[0], map(vload(x + pixel * PIXEL)));
#pragma clang loop unroll(full)
  for (int gap = 1; gap < PARTS; gap *= 2) {
#pragma clang loop unroll(full)
    for (int i = 0; i < PARTS; i += 2 * gap) part[i] = combine(part[i], part[i + gap]);
  }
  return part[0];
}

/* x: [n][blocks][pixels][PIXEL]. y: the channels of an image side by side, which is a blocked tensor of one pixel, and
 * a plain one too. Lanes past the channels are not written. */
static void global_pool_blocked(const Team *team, const float *x, float *y, int64_t n, int64_t channels, int64_t pixels,
                                int64_t x_image, int64_t y_image) {
  int64_t vectors = ceil_div(channels, LANES), item, end;
  team_share(team, n * vectors, &item, &end);
  for (; item < end; item++) {
    int64_t image = item / vectors, vector = item % vectors;
    const float *first = x + image * x_image + vector / VECTORS * pixels * PIXEL + vector % VECTORS * LANES;
    vec total = fold(first, pixels);
    int lanes = (int)min_i64(LANES, channels - vector * LANES);
    vstore_n(y + image * y_image + vector * LANES, finish(total, vset((float)pixels)), lanes);
  }
}
