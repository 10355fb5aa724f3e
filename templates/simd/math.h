/* SPDX-License-Identifier: MIT */
/*
 * Elementary functions on vectors, written in the vocabulary alone: no tables, no libm, the same steps on every ISA.
 * NaN gives NaN; infinities give the limits. Results below FLT_MIN (of verf, vsoftplus and vmish: below 2^-119) may be
 * zero or denormal. Error bounds over all floats, in units in the last place of the true result, as
 * tests/kernels/math_ulp.c checks them:
 *
 *   vexp 2    vexp_shifted 2    vexp2_shifted 3    vexpm1 2    vtanh 4    vsigmoid 4    vlog 4    vsoftplus 4    verf 2
 *   vmish 5    vpow 1
 *   vsin vcos vtan vasin vacos vatan vsinh vcosh vasinh vacosh vatanh 1
 *
 * vpow is in pow.h, the functions of the last line are in trig.h.
 *
 * Coefficients are minimax in relative error: fitted by Lawson's iteration, then rounded to float.
 */
#ifndef SIMD_MATH_H
#define SIMD_MATH_H

#include "simd/pow.h"
#include "simd/simd.h"
#include "simd/trig.h"

/* Between 2^23 and 2^24 floats are the integers. So v + vround_shift() is n + vround_shift() for the integer n nearest
 * to v, |v| < 2^22: it takes no instruction of its own where a multiply-add makes it, and is what vscale2() takes. */
SIMD_FUNCTION vec vround_shift(void) { return vset(0x1.8p23f); }
/* n, of n + vround_shift(). */
SIMD_FUNCTION vec vunshift(vec t) { return vsub(t, vround_shift()); }

/* e^r for |r| <= log(2) / 2: 1 + r + r^2 * c(r). Estrin's scheme, because its dependency chain is short. */
SIMD_FUNCTION vec vexp_reduced(vec r) {
  vec r2 = vmul(r, r);
  vec low = vadd(vset(1.0f), r);
  vec middle = vfma(vset(0x1.fffffcp-2f), r, vset(0x1.555492p-3f));
  vec high = vfma(vset(0x1.5558f2p-5f), r, vset(0x1.1239e2p-7f));
  high = vfma(high, r2, vset(0x1.6a2432p-10f));
  return vfma(low, r2, vfma(middle, r2, high));
}

SIMD_FUNCTION vec vlog2e(void) { return vset(0x1.715476p0f); } /* 1 / log 2 */

/* n + vround_shift() with n = round(x / log 2). */
SIMD_FUNCTION vec vexp_power(vec x) { return vfma(vround_shift(), x, vlog2e()); }

/* x - n * log 2, of t = n + vround_shift(). The high part of log 2 has 15 bits, so n * high is exact. */
SIMD_FUNCTION vec vexp_rest(vec x, vec t) {
  vec n = vunshift(t);
  return vfnma(vfnma(x, n, vset(0x1.62e4p-1f)), n, vset(0x1.7f7d1cp-20f));
}

/* e^x = 2^n * e^r. */
SIMD_FUNCTION vec vexp(vec x) {
  vec t = vexp_power(x);
  vec y = vscale2(vexp_reduced(vexp_rest(x, t)), t);
  y = vselect(vle(x, vset(0x1.62e42ep6f)), y, vmul(x, vset(0x1p127f))); /* above log(FLT_MAX): infinity, or NaN */
  return vselect(vlt(x, vset(-0x1.5d589ep6f)), vzero(), y);             /* below log(FLT_MIN) */
}

/* e^x for x <= 0: what softmax takes of values less their maximum. From -88 down it is 0. The power is a factor of its
 * own: added to the exponent of a NaN, it could make a number. */
SIMD_FUNCTION vec vexp_shifted(vec x) {
  vec bounded = vmax_bound(x, vset(-88.0f)), t = vexp_power(bounded);
  return vmul(vexp_reduced(vexp_rest(bounded, t)), vscale2(vset(1.0f), t));
}

/* 2^f for |f| <= 1/2, within 1.3 FLT_EPSILON of itself. */
SIMD_FUNCTION vec vexp2_reduced(vec f) {
  vec p = vfma(vset(0x1.3ce8acp-7f), f, vset(0x1.5bda3cp-10f));
  p = vfma(vset(0x1.c6b6d8p-5f), f, p);
  p = vfma(vset(0x1.ebf9c2p-3f), f, p);
  p = vfma(vset(0x1.62e42ap-1f), f, p);
  return vfma(vset(1.0f), f, p);
}

/* 2^y for y <= 1: what attention takes of scores less their maximum, over log 2. From -127 down it is 0. */
SIMD_FUNCTION vec vexp2_shifted(vec y) {
  vec bounded = vmax_bound(y, vset(-127.0f)), t = vadd(bounded, vround_shift());
  return vmul(vexp2_reduced(vsub(bounded, vunshift(t))), vscale2(vset(1.0f), t));
}

/* 1 / (1 + e^-x). Far below zero its relative error is that of e^-x; there the power is at most 2^128, infinity. */
SIMD_FUNCTION vec vsigmoid(vec x) {
  vec y = vneg(vmin_bound(vmax_bound(x, vset(-88.7f)), vset(87.0f))), t = vexp_power(y);
  vec power = vscale2(vset(1.0f), t);
  return vdiv(vset(1.0f), vfma(vset(1.0f), power, vexp_reduced(vexp_rest(y, t))));
}

/* m / (m + 2) with m = e^2|x| - 1 = 2^n * 2^f - 1, where n + f = 2|x| / log 2, and f is rounded once. That is precise
 * enough: a relative error of m is multiplied by 2 / (m + 2), and it grows with n much slower than m. From |x| = 20 on,
 * m + 2 rounds to m. */
SIMD_FUNCTION vec vtanh(vec x) {
  vec a = vmin_bound(vabs(x), vset(20.0f)), t = vfma(vround_shift(), a, vset(0x1.715476p1f));
  vec f = vfma(vneg(vunshift(t)), a, vset(0x1.715476p1f)), f2 = vmul(f, f);
  vec low = vfma(vset(0x1.ebfbdep-3f), f, vset(0x1.c6af6ep-5f));
  vec high = vfma(vset(0x1.3b2bap-7f), f, vset(0x1.5f07dcp-10f));
  low = vfma(low, f2, vfma(high, f2, vset(0x1.4308f2p-13f)));
  vec part = vfma(vmul(f, vset(0x1.62e43p-1f)), f2, low);
  vec power = vscale2(vset(1.0f), t);
  vec m = vfma(vsub(power, vset(1.0f)), power, part);
  vec m_plus_2 = vfma(vadd(power, vset(1.0f)), power, part);
  return vcopysign(vdiv(m, m_plus_2), x);
}

/* e^x - 1 = (2^n - 1) + 2^n * (e^r - 1), with n and r as in vexp. For n = 0 the first term is exactly 0. */
SIMD_FUNCTION vec vexpm1(vec x) {
  vec y = vmax_bound(vmin_bound(x, vset(88.0f)), vset(-18.0f)); /* below -18 the result is -1 */
  vec t = vexp_power(y), r = vexp_rest(y, t), r2 = vmul(r, r);
  vec low = vfma(vset(0x1.fffffcp-2f), r, vset(0x1.555492p-3f));
  vec high = vfma(vset(0x1.5558f2p-5f), r, vset(0x1.1239e2p-7f));
  low = vfma(low, r2, vfma(high, r2, vset(0x1.6a2432p-10f)));
  vec power = vscale2(vset(1.0f), t);
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

/* log x = e * log 2 + log m with m in [sqrt(1/2), sqrt(2)). A denormal x counts as itself or as zero. */
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

/* x + x * p(x^2) below 0.95; above, 1 - e^q(|x|). q fits log(erfc) only as precisely as matters after the subtraction.
 */
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

/* x * tanh(softplus x), where tanh(log(1 + u)) = (u^2 + 2u) / (u^2 + 2u + 2) with u = e^x; from x = 20 on it is 1. */
SIMD_FUNCTION vec vmish(vec x) {
  vec u = vexp(vmin_bound(x, vset(20.0f)));
  vec w = vmul(u, vadd(u, vset(2.0f)));
  return vmul(x, vdiv(w, vadd(w, vset(2.0f))));
}

SIMD_FUNCTION vec vone(vmask m) { return vselect(m, vset(1.0f), vzero()); }

SIMD_FUNCTION vmask vxor(vmask a, vmask b) { return vand(vor(a, b), vnot(vand(a, b))); }

/* A NaN v stays NaN. If low > high, the result is high. */
SIMD_FUNCTION vec vclip(vec v, vec low, vec high) {
  v = vselect(vlt(v, low), low, v);
  return vselect(vgt(v, high), high, v);
}

/* max(x, 0) - |x| * P(X > |x|) for a normal X: an error of FLT_EPSILON * |x|, far below zero, too. The probability is
 * 2^q(|x|), where q fits its logarithm as precisely as matters. From 5.6 on it is below 2^-26. */
SIMD_FUNCTION vec vgelu(vec x) {
  vec a = vmin_bound(vabs(x), vset(5.6f));
  vec q = vfma(vset(0x1.4a52f2p-15f), a, vset(-0x1.7c7edcp-19f));
  q = vfma(vset(-0x1.8672c2p-13f), a, q);
  q = vfma(vset(-0x1.1f2d26p-13f), a, q);
  q = vfma(vset(0x1.cee886p-8f), a, q);
  q = vfma(vset(-0x1.ae0c78p-5f), a, q);
  q = vfma(vset(-0x1.d63aacp-2f), a, q);
  q = vfma(vset(-0x1.26aed4p0f), a, q);
  q = vfma(vset(-1.0f), a, q);
  vec t = vadd(q, vround_shift()), power = vexp2_reduced(vsub(q, vunshift(t)));
  vec beyond = vselect(vlt(a, vset(5.6f)), vscale2(power, t), vzero());
  return vfnma(vmax_bound(x, vzero()), a, beyond);
}

/* x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), with the same error. */
SIMD_FUNCTION vec vgelu_tanh(vec x) {
  vec half = vmul(x, vset(0.5f)), x2 = vmul(x, x);
  vec inner = vmul(x, vfma(vset(0x1.988454p-1f), x2, vset(0.044715f * 0x1.988454p-1f)));
  return vfma(half, half, vtanh(inner));
}

#endif
