/* SPDX-License-Identifier: MIT */
/*
 * x^y as 2^(y log2 x). The exponent needs more bits than a float has, so it is computed in double, lane by lane, in
 * loops that the compiler vectorises. Special cases are those of C's pow: x^0 and 1^y are 1 even for NaN. Correct to
 * 1 ULP.
 */
#ifndef SIMD_POW_H
#define SIMD_POW_H

#include "simd/simd.h"

typedef union PowBits {
  double f;
  long long i;
} PowBits;

/* log2 of a normal positive x: exponent + 2 / log(2) * atanh((m - 1) / (m + 1)), m in [sqrt(1/2), sqrt(2)). */
SIMD_FUNCTION double pow_log2(double x) {
  PowBits bits = {.f = x};
  long long biased = (long long)((unsigned long long)bits.i - 0x3fe6a09e667f3bcdULL); /* sqrt(1/2) */
  double exponent = (double)(int)(biased >> 52);
  PowBits mantissa = {.i = (biased & 0x000fffffffffffffLL) + 0x3fe6a09e667f3bcdLL};
  double s = (mantissa.f - 1.0) / (mantissa.f + 1.0), z = s * s;
  double p = 1.0 / 17 * z + 1.0 / 15;
  p = p * z + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  p = p * z + 1.0;
  return exponent + 0x1.71547652b82fep+1 * s * p;
}

/* 2^t, by the Taylor series of e^r. t is limited to +-200, where a float is infinite or zero already. */
SIMD_FUNCTION double pow_exp2(double t) {
  t = t > 200.0 ? 200.0 : t;
  t = t < -200.0 ? -200.0 : t;
  double shifted = t + 0x1.8p52, n = shifted - 0x1.8p52;
  double r = (t - n) * 0x1.62e42fefa39efp-1;
  double p = 1.0 / 3628800 * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  PowBits magic = {.f = shifted}, bits = {.f = p};
  bits.i = (long long)((unsigned long long)bits.i + ((unsigned long long)magic.i << 52));
  return bits.f;
}

SIMD_FUNCTION float pow_f32(float x, float y) {
  float magnitude = __builtin_fabsf(x), half = y * 0.5f;
  double logarithm = pow_log2(magnitude);
  logarithm = magnitude == 0.0f ? -__builtin_inf() : logarithm;
  logarithm = magnitude == __builtin_inff() ? __builtin_inf() : logarithm;
  float power = (float)pow_exp2(y * logarithm);
  power = x != x || y != y ? x + y : power;
  /* Adding 2^23 rounds off the fraction. Floats from 2^23 on are integers, and from 2^24 on even integers. */
  float rounded = (__builtin_fabsf(y) + 0x1p23f) - 0x1p23f, half_rounded = (__builtin_fabsf(half) + 0x1p23f) - 0x1p23f;
  int integral = __builtin_fabsf(y) >= 0x1p23f || rounded == __builtin_fabsf(y);
  int even = __builtin_fabsf(half) >= 0x1p23f || half_rounded == __builtin_fabsf(half);
  int negative = __builtin_signbitf(x) != 0;
  power = negative && integral && !even ? -power : power;
  power = x < 0.0f && !integral && magnitude != __builtin_inff() ? __builtin_nanf("") : power;
  return x == 1.0f || y == 0.0f || (x == -1.0f && __builtin_fabsf(y) == __builtin_inff()) ? 1.0f : power;
}

SIMD_FUNCTION vec vpow(vec x, vec y) {
  float base[LANES], exponent[LANES], power[LANES];
  vstore(base, x);
  vstore(exponent, y);
  for (int i = 0; i < LANES; i++) power[i] = pow_f32(base[i], exponent[i]);
  return vload(power);
}

#endif
