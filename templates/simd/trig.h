/* SPDX-License-Identifier: MIT */
/*
 * Circular and hyperbolic functions and their inverses, computed in double, lane by lane, in loops that the compiler
 * vectorises: after a cancellation a double still has more bits than a float. Correct to 1 ULP, for arguments of any
 * size. The series are Taylor's, cut where a term is below 2^-32 of the first.
 */
#ifndef SIMD_TRIG_H
#define SIMD_TRIG_H

#include "simd/pow.h"
#include "simd/simd.h"

/* Defines `name` for all lanes by `of_lane`, a function of one float that is passed as a double. */
#define TRIG_FUNCTION(name, of_lane)                                                                                   \
  SIMD_FUNCTION vec name(vec x) {                                                                                      \
    float lane[LANES];                                                                                                 \
    vstore(lane, x);                                                                                                   \
    for (int i = 0; i < LANES; i++) lane[i] = (float)of_lane((double)lane[i]);                                         \
    return vload(lane);                                                                                                \
  }

/* ---- sine, cosine, tangent ---- */

/* x = quadrant * pi/2 + rest, |rest| <= pi/4; quadrant is correct modulo 4. */
typedef struct TrigLanes {
  double rest[LANES];
  int quadrant[LANES];
} TrigLanes;

/* |x| < 2^22: pi/2 in three parts, the first two of 28 bits. Their products with n are exact. So is the first
 * difference, and so is the second where it cancels. */
SIMD_FUNCTION void trig_reduce_small(double x, double *rest, int *quadrant) {
  PowBits shifted = {.f = x * 0x1.45f306dc9c883p-1 + 0x1.8p52};
  double n = shifted.f - 0x1.8p52;
  *rest = ((x - n * 0x1.921fb54p0) - n * 0x1.10b461p-30) - n * 0x1.a62633145c06ep-58;
  *quadrant = (int)shifted.i;
}

/* Payne and Hanek, Radian reduction for trigonometric functions, 1983. With x = m * 2^e, the bits of 2/pi that matter
 * to x * 2/pi are those whose products are less than 4 and more than 2^-62. `m` has 24 bits, so 96 bits of 2/pi are
 * enough, from 2^(2 - e) on. */
static inline void trig_reduce_large(float x, double *rest, int *quadrant) {
  static const uint32_t two_over_pi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                         0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
  union {
    float f;
    uint32_t i;
  } bits = {.f = x};
  uint32_t m = (bits.i & 0x7fffff) | 0x800000;
  int first = (int)(bits.i >> 23 & 255) - 150 - 2 + 32; /* the position of those bits in the table */
  const uint32_t *word = two_over_pi + first / 32;
  int shift = first % 32;
  uint64_t high = (((uint64_t)word[0] << 32 | word[1]) << shift) >> 32;
  uint64_t middle = (((uint64_t)word[1] << 32 | word[2]) << shift) >> 32 & 0xffffffff;
  uint64_t low = (((uint64_t)word[2] << 32 | word[3]) << shift) >> 32 & 0xffffffff;
  uint64_t product = ((high & 0xffffffff) * m << 32) + middle * m + (low * m >> 32); /* a quadrant is 2^62 */
  int nearest = (int)((product + (UINT64_C(1) << 61)) >> 62);
  double part = (double)(int64_t)(product - ((uint64_t)nearest << 62)) * (0x1.921fb54442d18p0 * 0x1p-62);
  *rest = bits.i >> 31 ? -part : part;
  *quadrant = bits.i >> 31 ? -nearest : nearest;
}

/* The rest of infinity is NaN, as `x - x` is. */
SIMD_FUNCTION TrigLanes trig_reduce(vec x) {
  TrigLanes lanes;
  float at[LANES];
  vstore(at, x);
  for (int i = 0; i < LANES; i++) trig_reduce_small((double)at[i], &lanes.rest[i], &lanes.quadrant[i]);
  if (!vany(vnot(vlt(vabs(x), vset(0x1p22f))))) return lanes;
  for (int i = 0; i < LANES; i++) {
    if (__builtin_fabsf(at[i]) < 0x1p22f) continue;
    lanes.quadrant[i] = 0;
    lanes.rest[i] = (double)(at[i] - at[i]);
    if (lanes.rest[i] == 0) trig_reduce_large(at[i], &lanes.rest[i], &lanes.quadrant[i]);
  }
  return lanes;
}

SIMD_FUNCTION double trig_sin_reduced(double r) {
  double z = r * r, p = -1.0 / 39916800;
  p = p * z + 1.0 / 362880;
  p = p * z - 1.0 / 5040;
  p = p * z + 1.0 / 120;
  p = p * z - 1.0 / 6;
  return r * (p * z + 1.0);
}
SIMD_FUNCTION double trig_cos_reduced(double r) {
  double z = r * r, p = 1.0 / 479001600;
  p = p * z - 1.0 / 3628800;
  p = p * z + 1.0 / 40320;
  p = p * z - 1.0 / 720;
  p = p * z + 1.0 / 24;
  p = p * z - 0.5;
  return p * z + 1.0;
}

/* sin(x + quadrants * pi/2) */
SIMD_FUNCTION vec trig_sin_from(vec x, int quadrants) {
  TrigLanes lanes = trig_reduce(x);
  float y[LANES];
  for (int i = 0; i < LANES; i++) {
    int quadrant = lanes.quadrant[i] + quadrants;
    double sine = trig_sin_reduced(lanes.rest[i]), cosine = trig_cos_reduced(lanes.rest[i]);
    double value = quadrant & 1 ? cosine : sine;
    y[i] = (float)(quadrant & 2 ? -value : value);
  }
  return vload(y);
}
SIMD_FUNCTION vec vsin(vec x) { return trig_sin_from(x, 0); }
SIMD_FUNCTION vec vcos(vec x) { return trig_sin_from(x, 1); }

SIMD_FUNCTION vec vtan(vec x) {
  TrigLanes lanes = trig_reduce(x);
  float y[LANES];
  for (int i = 0; i < LANES; i++) {
    double sine = trig_sin_reduced(lanes.rest[i]), cosine = trig_cos_reduced(lanes.rest[i]);
    y[i] = (float)(lanes.quadrant[i] & 1 ? -cosine / sine : sine / cosine);
  }
  return vload(y);
}

/* ---- inverse circular functions ---- */

/* By tan(a - b) = (tan a - tan b) / (1 + tan a tan b), with b = pi/2 from tan(3 pi/8) on, and pi/4 from tan(pi/8) on.
 */
SIMD_FUNCTION double trig_atan(double x) {
  double a = __builtin_fabs(x), base = a > 0x1.3504f333f9de6p1 ? 0x1.921fb54442d18p0 : 0x1.921fb54442d18p-1;
  double t = a > 0x1.3504f333f9de6p1 ? -1.0 / a : (a - 1.0) / (a + 1.0);
  base = a > 0x1.a827999fcef32p-2 ? base : 0.0;
  t = a > 0x1.a827999fcef32p-2 ? t : a;
  double z = t * t, p = -1.0 / 23;
  p = p * z + 1.0 / 21;
  p = p * z - 1.0 / 19;
  p = p * z + 1.0 / 17;
  p = p * z - 1.0 / 15;
  p = p * z + 1.0 / 13;
  p = p * z - 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z - 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z - 1.0 / 3;
  return __builtin_copysign(base + t * (p * z + 1.0), x);
}

/* asin(x) = atan(tan(asin(x))). The tangent is infinite at 1 and NaN beyond. */
SIMD_FUNCTION double trig_asin(double x) { return trig_atan(x / __builtin_sqrt((1.0 - x) * (1.0 + x))); }
SIMD_FUNCTION double trig_acos(double x) { return 0x1.921fb54442d18p0 - trig_asin(x); }

TRIG_FUNCTION(vatan, trig_atan)
TRIG_FUNCTION(vasin, trig_asin)
TRIG_FUNCTION(vacos, trig_acos)

/* ---- hyperbolic functions ---- */

SIMD_FUNCTION double trig_exp(double x) { return pow_exp2(x * 0x1.71547652b82fep0); }
SIMD_FUNCTION double trig_log(double x) { return pow_log2(x) * 0x1.62e42fefa39efp-1; } /* of a normal x > 0 */

SIMD_FUNCTION double trig_sinh(double x) {
  double z = x * x, p = 1.0 / 6227020800;
  p = p * z + 1.0 / 39916800;
  p = p * z + 1.0 / 362880;
  p = p * z + 1.0 / 5040;
  p = p * z + 1.0 / 120;
  p = p * z + 1.0 / 6;
  double large = 0.5 * (trig_exp(x) - trig_exp(-x));
  double y = z < 1.0 ? x * (p * z + 1.0) : large;
  return x != x ? x : y;
}
SIMD_FUNCTION double trig_cosh(double x) {
  double y = 0.5 * (trig_exp(x) + trig_exp(-x));
  return x != x ? x : y;
}

/* log(a + sqrt(a^2 + 1)); below 2^-10, where the sum would lose bits of a, it is a - a^3 / 6. */
SIMD_FUNCTION double trig_asinh(double x) {
  double a = __builtin_fabs(x);
  double y = trig_log(a + __builtin_sqrt(a * a + 1.0));
  y = a < 0x1p-10 ? a - a * a * a * (1.0 / 6) : y;
  y = a < __builtin_inf() ? y : a;
  return __builtin_copysign(y, x);
}

/* x^2 - 1 is exact where it cancels, because x has 24 bits. */
SIMD_FUNCTION double trig_acosh(double x) {
  double y = trig_log(x + __builtin_sqrt(x * x - 1.0));
  y = x >= 1.0 ? y : __builtin_nan("");
  return x < __builtin_inf() ? y : x;
}

/* log((1 + a) / (1 - a)) / 2; below 2^-10 it is a + a^3 / 3. */
SIMD_FUNCTION double trig_atanh(double x) {
  double a = __builtin_fabs(x);
  double y = 0.5 * trig_log((1.0 + a) / (1.0 - a));
  y = a < 0x1p-10 ? a + a * a * a * (1.0 / 3) : y;
  y = a == 1.0 ? __builtin_inf() : y;
  y = a <= 1.0 ? y : __builtin_nan("");
  return __builtin_copysign(y, x);
}

TRIG_FUNCTION(vsinh, trig_sinh)
TRIG_FUNCTION(vcosh, trig_cosh)
TRIG_FUNCTION(vasinh, trig_asinh)
TRIG_FUNCTION(vacosh, trig_acosh)
TRIG_FUNCTION(vatanh, trig_atanh)

#endif
