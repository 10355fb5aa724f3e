/* SPDX-License-Identifier: MIT */
/*
 * IEEE 754 binary16 (f16), stored as its bits, and its conversions, rounded to nearest, ties to even. If the target's
 * CPU can convert, it does. Else integer arithmetic does, which a compiler vectorises; the compiler's own conversion
 * would call a library that no module may need. Denormal f16 numbers keep their values in any floating-point mode.
 */
#ifndef RNNCC_HALF_H
#define RNNCC_HALF_H

#include <stdint.h>

#if defined __F16C__ || defined __aarch64__
#define HALF_CONVERTS /* by _Float16 */

static inline float f16_to_f32(uint16_t h) {
  union {
    uint16_t bits;
    _Float16 number;
  } half = {h};
  return (float)half.number;
}

static inline uint16_t f32_to_f16(float x) {
  union {
    _Float16 number;
    uint16_t bits;
  } half = {(_Float16)x};
  return half.bits;
}

#else

typedef union HalfSource {
  float number;
  uint32_t bits;
} HalfSource;

/* Exponents differ by 127 - 15 = 112; infinities and NaN move up by 112 once more. */
static inline float f16_to_f32(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, magnitude = h & 0x7fff;
  HalfSource denormal = {.number = (float)(int32_t)magnitude * 0x1p-24f};
  uint32_t normal = (magnitude << 13) + (magnitude < 0x7c00 ? 112u << 23 : 224u << 23);
  HalfSource result = {.bits = (magnitude < 0x400 ? denormal.bits : normal) | sign};
  return result.number;
}

/* The last place of 1/2 is 2^-24, the least denormal f16: the lowest bits of a sum with 1/2 count them, rounded. */
static inline uint16_t f32_to_f16(float x) {
  HalfSource source = {.number = x};
  uint32_t sign = source.bits >> 16 & 0x8000, magnitude = source.bits & 0x7fffffff;
  HalfSource absolute = {.bits = magnitude}, half = {.number = 0.5f};
  HalfSource denormal = {.number = absolute.number + half.number};
  uint32_t rounded = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  uint32_t result = magnitude < 0x38800000 ? denormal.bits - half.bits : rounded;
  if (magnitude >= 0x477ff000) result = 0x7c00; /* from 65520 on: halfway to the number that would follow */
  if (magnitude > 0x7f800000) result = 0x7e00 | (magnitude >> 13 & 0x1ff);
  return (uint16_t)(result | sign);
}

#endif

/* Rounds to odd: then rounding to a narrower type knows on which side of a tie the number lies. */
static inline float f64_to_odd_f32(double x) {
  union {
    float number;
    uint32_t bits;
  } near = {(float)x};
  double found = (double)near.number;
  if (x == x && found != x && !(near.bits & 1)) near.bits += (found < x) == (x > 0) ? 1 : -1u;
  return near.number;
}

static inline uint16_t f64_to_f16(double x) { return f32_to_f16(f64_to_odd_f32(x)); }

#endif
