/* SPDX-License-Identifier: MIT */
/*
 * Elementary functions in double, in loops that the compiler vectorises: libm would take too long for 2^32 values.
 * Their relative errors are below 2^-40 for all floats; math_ulp.c checks this against libm.
 */
#ifndef TESTS_DOUBLE_MATH_H
#define TESTS_DOUBLE_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double double_of_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline uint64_t bits_of_double(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* e^x = power * (1 + part). Beyond +-200 a float's exponential is infinite or zero anyway. */
static inline void exp_parts(double x, double *power, double *part) {
  double clamped = x > 200 ? 200 : x < -200 ? -200 : x;
  double shifted = clamped * 0x1.71547652b82fep0 + 0x1.8p52, n = shifted - 0x1.8p52;
  double r = clamped - n * 0x1.62e42fefa39efp-1, sum = 1;
  for (int k = 14; k > 1; k--) sum = 1 + sum * r * (1.0 / k);
  *power = double_of_bits((bits_of_double(shifted) << 52) + UINT64_C(0x3ff0000000000000));
  *part = x != x ? x : sum * r;
}

static inline double double_exp(double x) {
  double power, part;
  exp_parts(x, &power, &part);
  return power + power * part;
}

static inline double double_expm1(double x) {
  double power, part;
  exp_parts(x, &power, &part);
  return (power - 1) + power * part;
}

/* log(1 + u), 0 <= u <= 1. */
static inline double double_log1p(double u) {
  double s = u / (2 + u), z = s * s, sum = 0;
  for (int k = 29; k >= 1; k -= 2) sum = sum * z + 1.0 / k;
  return 2 * s * sum;
}

static inline double double_log(double x) {
  uint64_t offset = UINT64_C(0x3fe6a09e667f3bcd), biased = bits_of_double(x) - offset; /* sqrt(1/2) */
  double exponent = (double)((int)(biased >> 52) - (biased >> 63 ? 4096 : 0));
  double m = double_of_bits((biased & UINT64_C(0x000fffffffffffff)) + offset), s = (m - 1) / (m + 1), z = s * s,
         sum = 0;
  for (int k = 19; k >= 1; k -= 2) sum = sum * z + 1.0 / k;
  double y = exponent * 0x1.62e42fefa39efp-1 + 2 * s * sum;
  y = x == 0 ? -INFINITY : y;
  y = x > 0x1p200 ? x : y;
  return x >= 0 ? y : NAN;
}

static inline double double_tanh(double x) {
  double m = double_expm1(2 * fabs(x));
  return copysign(m / (m + 2), x);
}

static inline double double_sigmoid(double x) { return 1 / (1 + double_exp(-x)); }
static inline double double_softplus(double x) { return (x > 0 ? x : 0) + double_log1p(double_exp(-fabs(x))); }

/* tanh(log(1 + u)) = (u^2 + 2u) / (u^2 + 2u + 2). */
static inline double double_mish(double x) {
  double u = double_exp(x > 40 ? 40 : x), w = u * (u + 2);
  return x * (w / (w + 2));
}

/* libm's erf between the range of the Taylor series' first terms and that where it is 1. */
static inline double double_erf(double x) {
  if (fabs(x) < 0x1p-20) return 0x1.20dd750429b6dp0 * (x - x * x * x / 3);
  return fabs(x) > 6 ? copysign(1.0, x) : erf(x);
}

/* libm's own, because these are not computed at all floats. */
static inline double double_sin(double x) { return sin(x); }
static inline double double_cos(double x) { return cos(x); }
static inline double double_tan(double x) { return tan(x); }
static inline double double_asin(double x) { return asin(x); }
static inline double double_acos(double x) { return acos(x); }
static inline double double_atan(double x) { return atan(x); }
static inline double double_sinh(double x) { return sinh(x); }
static inline double double_cosh(double x) { return cosh(x); }
static inline double double_asinh(double x) { return asinh(x); }
static inline double double_acosh(double x) { return acosh(x); }
static inline double double_atanh(double x) { return atanh(x); }

#endif
