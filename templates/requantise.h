/* SPDX-License-Identifier: MIT */
/* From sums of integer convolutions to quantised numbers, each step rounded as ONNX says. */
#ifndef REQUANTISE_H
#define REQUANTISE_H

#include "kernel.h"
#include "simd/int8.h"
#include "simd/simd.h"

/* Of y, and, with a residual, of the sum of both. Bounds of y are less its zero point. */
typedef struct Finish {
  float least, most;
  int32_t zero;
  float y_scale, residual_zero, residual_scale;
  float sum_zero, sum_scale, sum_least, sum_most;
} Finish;

/* The fields in order, as floats. */
static inline Finish finish_of(const float *fields) {
  return (Finish){.least = fields[0],
                  .most = fields[1],
                  .zero = (int32_t)fields[2],
                  .y_scale = fields[3],
                  .residual_zero = fields[4],
                  .residual_scale = fields[5],
                  .sum_zero = fields[6],
                  .sum_scale = fields[7],
                  .sum_least = fields[8],
                  .sum_most = fields[9]};
}

SIMD_FUNCTION vec bounded(vec v, float least, float most) { return vmin_bound(vmax_bound(v, vset(least)), vset(most)); }

/* As QLinearAdd adds: in floats. y is less its zero point. */
SIMD_FUNCTION vint with_residual(vec y, vec residual, const Finish *f) {
  vec other = vmul(vsub(residual, vset(f->residual_zero)), vset(f->residual_scale));
  vec sum = vdiv(vadd(vmul(y, vset(f->y_scale)), other), vset(f->sum_scale));
  return vround_to_int(bounded(vadd(sum, vset(f->sum_zero)), f->sum_least, f->sum_most));
}

/* Stores a vector of sums, which are scaled already. The bounds are whole numbers, so that
 * what they bound rounds as it would before. */
SIMD_FUNCTION void requantise(vec scaled, const uint8_t *residual, uint8_t *y, int has_residual, int is_signed,
                              const Finish *f) {
  vec v = bounded(scaled, f->least, f->most);
  vint result;
  if (has_residual)
    result = with_residual(vround(v), vint_to_float(is_signed ? vint_load_s8(residual) : vint_load_u8(residual)), f);
  else
    result = vint_add(vround_to_int(v), vint_set(f->zero));
  if (is_signed)
    vint_store_s8(y, result);
  else
    vint_store_u8(y, result);
}

#endif
