/* SPDX-License-Identifier: MIT */
/*
 * Types that C lacks, besides f16: bf16, floats of 8 and 4 bits, integers of 4 and 2 bits. Conversions from f32 round
 * to nearest, ties to even; they are integer arithmetic, which a compiler vectorises. ONNX's Cast says what becomes of
 * numbers out of range.
 */
#ifndef RNNCC_SMALL_FLOAT_H
#define RNNCC_SMALL_FLOAT_H

#include <stdint.h>

#include "half.h"
#include "rnncc.h"

typedef union SmallBits {
  float number;
  uint32_t bits;
} SmallBits;

/* The upper half of an f32. */
static inline float bf16_to_f32(uint16_t x) {
  SmallBits result = {.bits = (uint32_t)x << 16};
  return result.number;
}

static inline uint16_t f32_to_bf16(float x) {
  SmallBits source = {.number = x};
  uint32_t rounded = (source.bits + 0x7fff + (source.bits >> 16 & 1)) >> 16;
  return (uint16_t)((source.bits & 0x7fffffff) > 0x7f800000 ? (source.bits >> 16 & 0x8000) | 0x7fc0 : rounded);
}

static inline uint16_t f64_to_bf16(double x) { return f32_to_bf16(f64_to_odd_f32(x)); }

/* A sign, an exponent, a mantissa, in one byte. Codes are without the sign. */
typedef struct SmallFloat {
  int mantissa, bias;       /* bits; what is subtracted from the exponent */
  uint32_t sign;            /* its bit */
  uint32_t largest, beyond; /* the codes of the largest number, and of what follows it: infinity or NaN */
  uint32_t nan;             /* the code of NaN */
  int one_zero;             /* 1: 0 has no sign, and NaN is where -0 would be */
} SmallFloat;

static const SmallFloat f8e4m3fn = {3, 7, 0x80, 0x7e, 0x7f, 0x7f, 0};
static const SmallFloat f8e4m3fnuz = {3, 8, 0x80, 0x7f, 0x80, 0x80, 1};
static const SmallFloat f8e5m2 = {2, 15, 0x80, 0x7b, 0x7c, 0x7e, 0};
static const SmallFloat f8e5m2fnuz = {2, 16, 0x80, 0x7f, 0x80, 0x80, 1};
/* It has neither infinity nor NaN: that becomes -0. */
static const SmallFloat f4e2m1 = {1, 1, 0x8, 0x7, 0x7, 0x8, 0};

/* Is 2^power; its bits are written, as a library function is not at hand. */
static inline float small_power(int power) {
  SmallBits result = {.bits = (uint32_t)(power + 127) << 23};
  return result.number;
}

static inline float small_to_f32(uint8_t x, const SmallFloat *form) {
  uint32_t sign = x & form->sign, code = x & (form->sign - 1);
  SmallBits denormal = {.number = (float)(int32_t)code * small_power(1 - form->bias - form->mantissa)};
  uint32_t normal = (code << (23 - form->mantissa)) + ((uint32_t)(127 - form->bias) << 23);
  uint32_t bits = code < 1u << form->mantissa ? denormal.bits : normal;
  if (code > form->largest) bits = code == form->beyond && form->beyond != form->nan ? 0x7f800000 : 0x7fc00000;
  if (form->one_zero && sign && !code) bits = 0x7fc00000;
  SmallBits result = {.bits = bits | (sign ? 0x80000000 : 0)};
  return result.number;
}

/* `saturate`: numbers beyond the largest, infinity among them, become the largest. Of denormal numbers, the last place
 * is that of a sum with `unit`. */
static inline uint8_t f32_to_small(float x, const SmallFloat *form, int saturate) {
  SmallBits source = {.number = x}, unit = {.number = small_power(24 - form->bias - form->mantissa)};
  uint32_t magnitude = source.bits & 0x7fffffff, drop = (uint32_t)(23 - form->mantissa);
  SmallBits absolute = {.bits = magnitude};
  SmallBits denormal = {.number = absolute.number + unit.number};
  uint32_t base = (uint32_t)(127 - form->bias) << 23;
  uint32_t normal = (magnitude - base + (1u << (drop - 1)) - 1 + (magnitude >> drop & 1)) >> drop;
  uint32_t code = magnitude < base + (1u << 23) ? denormal.bits - unit.bits : normal;
  if (code > form->largest) code = saturate ? form->largest : form->beyond;
  uint32_t sign = source.bits >> 31 ? form->sign : 0;
  if (form->one_zero && !code) sign = 0;
  if (magnitude > 0x7f800000) code = form->nan;
  return (uint8_t)(code | sign);
}

/* 2^(x - 127), and NaN: only an exponent. */
static inline float f8e8m0_to_f32(uint8_t x) {
  uint32_t bits = x == 255 ? 0x7fc00000 : (uint32_t)x << 23;
  SmallBits result = {.bits = x ? bits : 0x00400000};
  return result.number;
}

/* What becomes of numbers between two powers of two; ONE_NEAREST: of those in the middle the larger one. */
enum { POWER_UP, POWER_DOWN, POWER_NEAREST };

/* Of the magnitude. `saturate`: the smallest for what is less, the largest for what is more; else NaN. */
static inline uint8_t f32_to_f8e8m0(float x, int saturate, int rounding) {
  SmallBits source = {.number = x};
  uint32_t magnitude = source.bits & 0x7fffffff, fraction = magnitude & 0x7fffff, code = magnitude >> 23;
  uint32_t least = code ? 0 : 0x400000; /* of the fraction: 2^-127 is a denormal f32 */
  uint32_t middle = code ? 0x400000 : 0x600000;
  if (rounding == POWER_UP) code += fraction > least;
  if (rounding == POWER_NEAREST) code += fraction >= middle;
  if (magnitude < 0x400000) code = saturate ? 0 : 255;
  if (code > 254) code = saturate ? 254 : 255;
  if (magnitude > 0x7f800000) code = 255;
  return (uint8_t)code;
}

/* Integers in the lowest bits of a byte. */
static inline int8_t signed_bits(int64_t x, int bits) {
  return (int8_t)((int64_t)((uint64_t)x << (64 - bits)) >> (64 - bits));
}
static inline uint8_t unsigned_bits(uint64_t x, int bits) { return (uint8_t)(x & ((1u << bits) - 1)); }

/* ---- by type, for any float that C lacks ---- */

static inline const SmallFloat *small_form(rnncc_dtype dtype) {
  switch (dtype) {
  case RNNCC_F8E4M3FN:
    return &f8e4m3fn;
  case RNNCC_F8E4M3FNUZ:
    return &f8e4m3fnuz;
  case RNNCC_F8E5M2:
    return &f8e5m2;
  case RNNCC_F8E5M2FNUZ:
    return &f8e5m2fnuz;
  default:
    return &f4e2m1;
  }
}

static inline float coded_to_f32(rnncc_dtype dtype, const void *data, int64_t index) {
  const uint16_t *wide = (const uint16_t *)data;
  const uint8_t *narrow = (const uint8_t *)data;
  if (dtype == RNNCC_F16) return f16_to_f32(wide[index]);
  if (dtype == RNNCC_BF16) return bf16_to_f32(wide[index]);
  if (dtype == RNNCC_F8E8M0) return f8e8m0_to_f32(narrow[index]);
  return small_to_f32(narrow[index], small_form(dtype));
}

/* Rounds once. */
static inline void f64_to_coded(rnncc_dtype dtype, void *data, int64_t index, double x, int saturate, int rounding) {
  uint16_t *wide = (uint16_t *)data;
  uint8_t *narrow = (uint8_t *)data;
  if (dtype == RNNCC_F16)
    wide[index] = f64_to_f16(x);
  else if (dtype == RNNCC_BF16)
    wide[index] = f64_to_bf16(x);
  else if (dtype == RNNCC_F8E8M0)
    narrow[index] = f32_to_f8e8m0(f64_to_odd_f32(x), saturate, rounding);
  else
    narrow[index] = f32_to_small(f64_to_odd_f32(x), small_form(dtype), saturate);
}

#endif
