/* SPDX-License-Identifier: MIT */
/*
 * From sums of integer convolutions to quantised numbers, each step rounded as ONNX says:
 *   y = round(scaled sum), less y's zero point; stored is y + zero, or with a second step what becomes of y:
 *   taken to another scale, maybe with a residual added.
 *
 * The second step has divisions. Where the compiler has tried all numbers of both tensors and found the same results,
 * it is two multiplications and additions instead (kernels/conv/second_step.h).
 */
#ifndef REQUANTISE_H
#define REQUANTISE_H

#include "kernel.h"
#include "simd/int8.h"
#include "simd/simd.h"

/* What becomes of y. */
enum { STEP_NONE, STEP_BY_FACTORS, STEP_DIVIDED };

typedef struct Finish {
  float least, most; /* of y */
  int32_t zero;      /* added to what is rounded last */
  /* By factors: y * y_factor + (residual * residual_factor + addend). Divided:
   * (y * y_factor + (residual - addend) * residual_factor) / divisor + before_rounding. */
  float y_factor, residual_factor, addend;
  float divisor, before_rounding;
} Finish;

/* The fields in order, as floats. */
static inline Finish finish_of(const float *fields) {
  return (Finish){.least = fields[0],
                  .most = fields[1],
                  .zero = (int32_t)fields[2],
                  .y_factor = fields[3],
                  .residual_factor = fields[4],
                  .addend = fields[5],
                  .divisor = fields[6],
                  .before_rounding = fields[7]};
}

SIMD_FUNCTION vec bounded(vec v, float least, float most) { return vmin_bound(vmax_bound(v, vset(least)), vset(most)); }

SIMD_FUNCTION vec second_step(vec y, const uint8_t *residual, int step, int is_signed, const Finish *f) {
  vec r = vzero();
  if (residual) r = vint_to_float(is_signed ? vint_load_s8(residual) : vint_load_u8(residual));
  if (step == STEP_BY_FACTORS) {
    vec rest = residual ? vfma(vset(f->addend), r, vset(f->residual_factor)) : vset(f->addend);
    return vfma(rest, y, vset(f->y_factor));
  }
  vec sum = vmul(y, vset(f->y_factor));
  if (residual) sum = vadd(sum, vmul(vsub(r, vset(f->addend)), vset(f->residual_factor)));
  return bounded(vadd(vdiv(sum, vset(f->divisor)), vset(f->before_rounding)), -0x1p20f, 0x1p20f);
}

/* The numbers of a vector of sums, which are scaled already. The bounds are whole, so that what they bound rounds as it
 * would before. bounds: 0: what y rounds to needs none, as what is stored saturates. residual: NULL: none. */
SIMD_FUNCTION vint requantised(vec scaled, const uint8_t *residual, int step, int bounds, int is_signed,
                               const Finish *f) {
  vec v = bounds || step ? bounded(scaled, f->least, f->most) : scaled;
  if (step) v = second_step(vround(v), residual, step, is_signed, f);
  return vint_add(vround_to_int(v), vint_set(f->zero));
}

/* Stores `count` vectors, 1 or 4, whose residuals and results follow each other. */
SIMD_FUNCTION void requantise(const vec *scaled, int count, const uint8_t *residual, uint8_t *y, int step, int bounds,
                              int is_signed, const Finish *f) {
  vint v[4];
#pragma clang loop unroll(full)
  for (int i = 0; i < count; i++)
    v[i] = requantised(scaled[i], residual ? residual + i * LANES : NULL, step, bounds, is_signed, f);
  if (count == 4 && is_signed) vint_store4_s8(y, v[0], v[1], v[2], v[3]);
  if (count == 4 && !is_signed) vint_store4_u8(y, v[0], v[1], v[2], v[3]);
  if (count == 1 && is_signed) vint_store_s8(y, v[0]);
  if (count == 1 && !is_signed) vint_store_u8(y, v[0]);
}

#endif
