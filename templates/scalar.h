/* SPDX-License-Identifier: MIT */
/* Operations on single elements that C does not define or leaves to libm. Results are as in ONNX Runtime on x86. */
#ifndef SCALAR_H
#define SCALAR_H

#include <stdint.h>

#include "double.h"
#include "half.h"
#include "small_float.h"

/* Towards zero; the smallest integer for NaN and numbers out of range. u8 takes the low byte. */
static inline int32_t f32_to_i32(float x) { return x >= -0x1p31f && x < 0x1p31f ? (int32_t)x : INT32_MIN; }
static inline int64_t f32_to_i64(float x) { return x >= -0x1p63f && x < 0x1p63f ? (int64_t)x : INT64_MIN; }

static inline int32_t f64_to_i32(double x) { return x > -0x1.00000002p31 && x < 0x1p31 ? (int32_t)x : INT32_MIN; }
static inline int64_t f64_to_i64(double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }
/* Negative numbers wrap around; 0 from 2^64 on. */
static inline uint64_t f64_to_u64(double x) {
  return x >= 0x1p63 ? (uint64_t)f64_to_i64(x - 0x1p63) ^ UINT64_C(1) << 63 : (uint64_t)f64_to_i64(x);
}

/* Modulo 2^64; a negative exponent gives the quotient towards zero, so only 1 and -1 leave anything. */
static inline int64_t pow_int(int64_t base, int64_t exponent) {
  uint64_t power = 1, square = (uint64_t)base;
  if (exponent < 0) return base == 1 || base == -1 ? (exponent % 2 ? base : 1) : 0;
  for (; exponent; exponent >>= 1, square *= square)
    if (exponent & 1) power *= square;
  return (int64_t)power;
}

static inline uint64_t pow_unsigned(uint64_t base, uint64_t exponent) {
  uint64_t power = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1) power *= base;
  return power;
}

typedef union ScalarBits {
  float f;
  uint32_t i;
} ScalarBits;

/* A finite float's magnitude is mantissa * 2^exponent. */
static inline uint64_t scalar_mantissa(float x, int *exponent) {
  ScalarBits bits = {.f = x};
  int biased = bits.i >> 23 & 255;
  uint32_t fraction = bits.i & 0x7fffff;
  *exponent = (biased ? biased : 1) - 150;
  return biased ? fraction | 0x800000 : fraction;
}

/* C's fmod: exact, with the sign of a. Long division in base 2^32, at most nine digits. */
static inline float fmod_f32(float a, float b) {
  float infinity = __builtin_inff(), magnitude = __builtin_fabsf(a), divisor = __builtin_fabsf(b);
  if (!(magnitude < infinity) || b != b || divisor == 0) return __builtin_nanf("");
  if (magnitude < divisor) return a;
  int ea, eb;
  uint64_t rest = scalar_mantissa(a, &ea), by = scalar_mantissa(b, &eb);
  if (by == 0) return __builtin_nanf("");
  rest %= by;
  for (int left = ea - eb; left > 0; left -= 32) rest = (rest << (left < 32 ? left : 32)) % by;
  /* The result is rest * 2^eb, which a float holds exactly. */
  double unit = 1.0;
  for (int e = eb; e < 0; e++) unit *= 0.5;
  for (int e = 0; e < eb; e++) unit *= 2.0;
  return __builtin_copysignf((float)((double)rest * unit), a);
}

/* The remainder with the divisor's sign, as in Python. */
static inline float mod_f32(float a, float b) {
  float rest = fmod_f32(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

#endif
