/* SPDX-License-Identifier: MIT */
/*
 * Elementary functions on vectors, in terms of the vocabulary alone: no table, no libm, the same steps on every ISA.
 * NaN gives NaN; infinities give the limits. Results below FLT_MIN may be zero or denormal. Bounds are over all floats,
 * in units in the last place of the true result.
 *
 *   vexp <= 2    vtanh <= 6    vsigmoid <= 4
 *
 * Coefficients are minimax in relative error, fitted by Lawson's iteration, then rounded to float.
 */
#ifndef SIMD_MATH_H
#define SIMD_MATH_H

#include "simd/simd.h"

/* Nearest integral number, halves to even, for |v| < 2^22: two additions, where vround may take longer. */
SIMD_FUNCTION vec vround_small(vec v) {
  vec magic = vset(0x1.8p23f);
  return vsub(vadd(v, magic), magic);
}

/* e^r for |r| <= log(2) / 2: 1 + r + r^2 * c(r). By Estrin's scheme, for its short chain. */
SIMD_FUNCTION vec vexp_reduced(vec r) {
  vec r2 = vmul(r, r);
  vec low = vadd(vset(1.0f), r);
  vec middle = vfma(vset(0x1.fffffcp-2f), r, vset(0x1.555492p-3f));
  vec high = vfma(vset(0x1.5558f2p-5f), r, vset(0x1.1239e2p-7f));
  high = vfma(high, r2, vset(0x1.6a2432p-10f));
  return vfma(low, r2, vfma(middle, r2, high));
}

/* e^x = 2^n * e^r with n = round(x / log 2). The high part of log 2 has 15 bits, so n * high is exact. */
SIMD_FUNCTION vec vexp(vec x) {
  vec n = vround_small(vmul(x, vset(0x1.715476p0f)));
  vec r = vfnma(vfnma(x, n, vset(0x1.62e4p-1f)), n, vset(0x1.7f7d1cp-20f));
  vec y = vscale2(vexp_reduced(r), n);
  y = vselect(vle(x, vset(0x1.62e42ep6f)), y, vmul(x, vset(0x1p127f))); /* past log(FLT_MAX): infinity, or NaN */
  return vselect(vlt(x, vset(-0x1.5d589ep6f)), vzero(), y);             /* below log(FLT_MIN) */
}

/* 1 / (1 + e^-x): e^-x bears the relative error where x is far below zero. */
SIMD_FUNCTION vec vsigmoid(vec x) { return vdiv(vset(1.0f), vadd(vset(1.0f), vexp(vneg(x)))); }

/* x * p(x^2) / q(x^2). Beyond 9.01 the result rounds to 1. All coefficients are positive: no cancellation. */
SIMD_FUNCTION vec vtanh(vec x) {
  vec bound = vset(9.01f);
  x = vmax_bound(vmin_bound(x, bound), vneg(bound));
  vec t = vmul(x, x), t2 = vmul(t, t);
  vec p = vfma(vset(0x1.1207aep-3f), t, vset(0x1.ca1268p-9f));
  vec q = vfma(vset(0x1.de592p-2f), t, vset(0x1.a7eb8ap-6f));
  p = vfma(p, t2, vfma(vset(0x1.598c52p-16f), t, vset(0x1.ca4016p-27f)));
  q = vfma(q, t2, vfma(vset(0x1.5863f4p-12f), t, vset(0x1.a11c3p-21f)));
  p = vfma(vset(1.0f), t, p);
  q = vfma(vset(1.0f), t, q);
  return vdiv(vmul(x, p), q);
}

#endif
