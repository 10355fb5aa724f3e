/* SPDX-License-Identifier: MIT */
/*
 * From sums of bytes, exact in i32, to means in another scale, each step rounded (compiler/ir/integer_mean.h):
 *   y = saturate(round((sum - inside * x's zero point) * factor / points + before) + behind)
 * where `inside` points are in the input, and `points` count.
 */
#ifndef MEAN_INT8_H
#define MEAN_INT8_H

#include "kernel.h"
#include "simd/int8.h"
#include "simd/simd.h"

typedef struct Mean {
  int32_t x_zero, behind;
  float factor, before;
  float least, most; /* of what is rounded: whole, so that what they bound rounds as it would before */
} Mean;

static inline Mean mean_with(int is_signed, int64_t x_zero, float factor, int64_t before, int64_t behind) {
  int64_t least = is_signed ? -128 : 0;
  return (Mean){.x_zero = (int32_t)x_zero,
                .behind = (int32_t)behind,
                .factor = factor,
                .before = (float)before,
                .least = (float)(least - behind),
                .most = (float)(least + 255 - behind)};
}

/* sum: less the zero points. A window of no point has the mean 0. */
SIMD_FUNCTION vint mean_of_sum(vec sum, vec points, const Mean *mean) {
  vec y = vdiv(vmul(sum, vset(mean->factor)), vmax_bound(points, vset(1)));
  y = vmin_bound(vmax_bound(vadd(y, vset(mean->before)), vset(mean->least)), vset(mean->most));
  return vint_add(vround_to_int(y), vint_set(mean->behind));
}

SIMD_FUNCTION vint mean_of(vint sum, int64_t inside, int64_t points, const Mean *mean) {
  vint whole = vint_sub(sum, vint_set((int32_t)(inside * mean->x_zero)));
  return mean_of_sum(vint_to_float(whole), vset((float)points), mean);
}

SIMD_FUNCTION vint bytes_load(const uint8_t *p, int n, int is_signed) {
  if (n == LANES) return is_signed ? vint_load_s8(p) : vint_load_u8(p);
  return is_signed ? vint_load_s8_n(p, n) : vint_load_u8_n(p, n);
}

SIMD_FUNCTION void bytes_store(uint8_t *p, vint v, int n, int is_signed) {
  if (n == LANES && is_signed) vint_store_s8(p, v);
  if (n == LANES && !is_signed) vint_store_u8(p, v);
  if (n < LANES && is_signed) vint_store_s8_n(p, v, n);
  if (n < LANES && !is_signed) vint_store_u8_n(p, v, n);
}

#endif
