/* SPDX-License-Identifier: MIT */
/*
 * DynamicQuantizeLinear of a tensor whose parts' ranges are known (range_parts.c): the range, widened to have 0, in 255
 * steps of u8. Every worker finds the same scale and zero point, and quantises its share.
 */
#include "kernel.h"
#include "simd/int8.h"
#include "simd/simd.h"

/* As range_parts.c.
 * legal: 1..256 */
enum { PARTS = 64 };

typedef struct Steps {
  float size, zero;
} Steps;

/* Halves to even, saturated. */
SIMD_FUNCTION vec saturated(vec x) { return vmin_bound(vmax_bound(x, vzero()), vset(255.0f)); }

static Steps steps_of(const float *ranges) {
  vec least = vzero(), greatest = vzero();
  for (int i = 0; i < PARTS; i++) {
    least = vmin(least, vset(ranges[2 * i]));
    greatest = vmax(greatest, vset(ranges[2 * i + 1]));
  }
  float from = vhmin(least), range = vhmax(greatest) - from;
  Steps steps = {.size = range == 0 ? 1 : range / 255};
  steps.zero = vhmin(saturated(vround(vset((0 - from) / steps.size))));
  return steps;
}

SIMD_FUNCTION vint quantised(vec x, const Steps *steps) {
  return vround_to_int(saturated(vadd(vround(vdiv(x, vset(steps->size))), vset(steps->zero))));
}

/* ranges: [PARTS][2]. scale, zero: one each. An image is [count]; one is x_image, or y_image, behind the other. */
static void quantise_by_range(const Team *team, const float *x, const float *ranges, uint8_t *y, float *scale,
                              uint8_t *zero, int64_t images, int64_t count, int64_t x_image, int64_t y_image) {
  const Steps steps = steps_of(ranges);
  int64_t first, end;
  team_share(team, count, &first, &end);
  if (team->rank == 0) *scale = steps.size;
  if (team->rank == 0) vint_store_u8_n(zero, vround_to_int(vset(steps.zero)), 1);
  for (int64_t image = 0; image < images; image++, x += x_image, y += y_image) {
    int64_t i = first;
    for (; i + LANES <= end; i += LANES) vint_store_u8(y + i, quantised(vload(x + i), &steps));
    if (i < end) vint_store_u8_n(y + i, quantised(vload_n(x + i, (int)(end - i)), &steps), (int)(end - i));
  }
}
