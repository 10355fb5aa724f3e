/* SPDX-License-Identifier: MIT */
/*
 * Elementary functions on vectors, in terms of the vocabulary alone: no table, no libm, the same steps on every ISA.
 * NaN gives NaN; infinities give the limits. Results below FLT_MIN may be zero or denormal. Bounds are over all floats,
 * in units in the last place of the true result.
 *
 *   vexp <= 2    vtanh <= 4    vsigmoid <= 4
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

/* m / (m + 2) with m = e^2|x| - 1 = 2^n * 2^f - 1, where n + f = 2|x| / log 2 in one rounding. That is
 * enough: a relative error of m counts 2 / (m + 2) times, and grows with n much slower than m. From 20 on m + 2 = m. */
SIMD_FUNCTION vec vtanh(vec x) {
  vec y = vmul(vmin_bound(vabs(x), vset(20.0f)), vset(0x1.715476p1f));
  vec n = vround_small(y);
  vec f = vsub(y, n), f2 = vmul(f, f);
  vec low = vfma(vset(0x1.ebfbdep-3f), f, vset(0x1.c6af6ep-5f));
  vec high = vfma(vset(0x1.3b2bap-7f), f, vset(0x1.5f07dcp-10f));
  low = vfma(low, f2, vfma(high, f2, vset(0x1.4308f2p-13f)));
  vec part = vfma(vmul(f, vset(0x1.62e43p-1f)), f2, low);
  vec power = vscale2(vset(1.0f), n);
  vec m = vfma(vsub(power, vset(1.0f)), power, part);
  vec m_plus_2 = vfma(vadd(power, vset(1.0f)), power, part);
  return vcopysign(vdiv(m, m_plus_2), x);
}

#endif
