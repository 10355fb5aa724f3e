/* SPDX-License-Identifier: MIT */
/*
 * Elementary functions on vectors, in terms of the vocabulary alone: no table, no libm, the same steps on every ISA.
 * NaN gives NaN; infinities give the limits. Results below FLT_MIN may be zero or denormal, in verf, vsoftplus and
 * vmish those below 2^-119. Bounds over all floats, in units in the last place of the true result, which
 * tests/kernels/math_ulp.c checks:
 *
 *   vexp 2    vexpm1 2    vtanh 4    vsigmoid 4    vlog 4    vsoftplus 4    verf 2    vmish 5    vpow 1
 *   vsin vcos vtan vasin vacos vatan vsinh vcosh vasinh vacosh vatanh 1
 *
 * vpow stands in pow.h, the last line's in trig.h.
 *
 * Coefficients are minimax in relative error, fitted by Lawson's iteration, then rounded to float.
 */
#ifndef SIMD_MATH_H
#define SIMD_MATH_H

#include "simd/pow.h"
#include "simd/simd.h"
#include "simd/trig.h"

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

/* e^x - 1 = (2^n - 1) + 2^n * (e^r - 1), with n and r as in vexp; exact cancellation where n = 0. */
SIMD_FUNCTION vec vexpm1(vec x) {
  vec y = vmax_bound(vmin_bound(x, vset(88.0f)), vset(-18.0f)); /* from -18 down: -1 */
  vec n = vround_small(vmul(y, vset(0x1.715476p0f)));
  vec r = vfnma(vfnma(y, n, vset(0x1.62e4p-1f)), n, vset(0x1.7f7d1cp-20f)), r2 = vmul(r, r);
  vec low = vfma(vset(0x1.fffffcp-2f), r, vset(0x1.555492p-3f));
  vec high = vfma(vset(0x1.5558f2p-5f), r, vset(0x1.1239e2p-7f));
  low = vfma(low, r2, vfma(high, r2, vset(0x1.6a2432p-10f)));
  vec power = vscale2(vset(1.0f), n);
  vec small = vfma(vsub(power, vset(1.0f)), power, vfma(r, r2, low));
  return vselect(vle(x, vset(88.0f)), small, vexp(x));
}

/* log(1 + f) for f in [-0.3, 1], as 2 atanh(s) = s * (2 + s^2 * p(s^2)) with s = f / (2 + f). */
SIMD_FUNCTION vec vlog1p_reduced(vec f) {
  vec s = vdiv(f, vadd(vset(2.0f), f)), z = vmul(s, s);
  vec p = vfma(vset(0x1.b6e5dap-3f), z, vset(0x1.f1771ep-3f));
  p = vfma(vset(0x1.2508bcp-2f), z, p);
  p = vfma(vset(0x1.9996bp-2f), z, p);
  p = vfma(vset(0x1.555558p-1f), z, p);
  return vmul(s, vfma(vset(2.0f), z, p));
}

/* log x = e * log 2 + log m with m in [sqrt(1/2), sqrt(2)). Denormal x are taken as they are, or as zero. */
SIMD_FUNCTION vec vlog(vec x) {
  vmask tiny = vlt(x, vset(0x1p-126f));
  vec scaled = vselect(tiny, vmul(x, vset(0x1p23f)), x);
  vec e = vsub(vexponent(scaled), vselect(tiny, vset(23.0f), vzero())), m = vmantissa(scaled);
  vmask upper = vgt(m, vset(0x1.6a09e6p0f));
  e = vselect(upper, vadd(e, vset(1.0f)), e);
  m = vselect(upper, vmul(m, vset(0.5f)), m);
  vec low = vfma(vlog1p_reduced(vsub(m, vset(1.0f))), e, vset(0x1.7f7d1cp-20f));
  vec y = vfma(low, e, vset(0x1.62e4p-1f));
  y = vselect(vlt(x, vset(__builtin_inff())), y, x); /* infinity, NaN */
  y = vselect(veq(scaled, vzero()), vset(-__builtin_inff()), y);
  return vselect(vlt(x, vzero()), vset(__builtin_nanf("")), y);
}

/* log(1 + e^x) = max(x, 0) + log(1 + e^-|x|). */
SIMD_FUNCTION vec vsoftplus(vec x) { return vadd(vmax_bound(x, vzero()), vlog1p_reduced(vexp(vneg(vabs(x))))); }

/* x + x * p(x^2) below 0.95; above, 1 - e^q(|x|), where q fits log(erfc) to what the subtraction leaves of it. */
SIMD_FUNCTION vec verf(vec x) {
  vec a = vmin_bound(vabs(x), vset(4.0f)), t = vmul(x, x);
  vec p = vfma(vset(-0x1.a88d8ap-11f), t, vset(0x1.574ec6p-14f));
  p = vfma(vset(0x1.549664p-8f), t, p);
  p = vfma(vset(-0x1.b80962p-6f), t, p);
  p = vfma(vset(0x1.ce2dcap-4f), t, p);
  p = vfma(vset(-0x1.812742p-2f), t, p);
  p = vfma(vset(0x1.06eba8p-3f), t, p);
  vec q = vfma(vset(-0x1.8a97ecp-9f), a, vset(0x1.93ebc6p-13f));
  q = vfma(vset(0x1.6a0754p-6f), a, q);
  q = vfma(vset(-0x1.a89848p-4f), a, q);
  q = vfma(vset(-0x1.466536p-1f), a, q);
  q = vfma(vset(-0x1.20a354p+0f), a, q);
  q = vfma(vset(-0x1.f7883cp-13f), a, q);
  vec large = vcopysign(vsub(vset(1.0f), vexp(q)), x);
  return vselect(vlt(a, vset(0.95f)), vfma(x, x, p), large);
}

/* x * tanh(softplus x), where tanh(log(1 + u)) = (u^2 + 2u) / (u^2 + 2u + 2) with u = e^x; from 20 on it is 1. */
SIMD_FUNCTION vec vmish(vec x) {
  vec u = vexp(vmin_bound(x, vset(20.0f)));
  vec w = vmul(u, vadd(u, vset(2.0f)));
  return vmul(x, vdiv(w, vadd(w, vset(2.0f))));
}

SIMD_FUNCTION vec vone(vmask m) { return vselect(m, vset(1.0f), vzero()); }

SIMD_FUNCTION vmask vxor(vmask a, vmask b) { return vand(vor(a, b), vnot(vand(a, b))); }

/* NaN v stays; where the bounds cross, the upper one wins. */
SIMD_FUNCTION vec vclip(vec v, vec low, vec high) {
  v = vselect(vlt(v, low), low, v);
  return vselect(vgt(v, high), high, v);
}

/* x / 2 * (1 + erf(x / sqrt 2)), which cancels far below zero: exact to FLT_EPSILON * |x| there, not in ULP. */
SIMD_FUNCTION vec vgelu(vec x) {
  vec half = vmul(x, vset(0.5f));
  return vfma(half, half, verf(vmul(x, vset(0x1.6a09e6p-1f))));
}

/* x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), likewise. */
SIMD_FUNCTION vec vgelu_tanh(vec x) {
  vec half = vmul(x, vset(0.5f)), x2 = vmul(x, x);
  vec inner = vmul(x, vfma(vset(0x1.988454p-1f), x2, vset(0.044715f * 0x1.988454p-1f)));
  return vfma(half, half, vtanh(inner));
}

#endif
