/* SPDX-License-Identifier: MIT */
/* The SIMD vocabulary for AArch64 NEON. simd.h defines each operation. */
#ifndef SIMD_NEON_H
#define SIMD_NEON_H

#include <arm_neon.h>

enum { LANES = 4 };
#define SIMD_LANE_OPERANDS
typedef float32x4_t vec;
typedef uint32x4_t vmask; /* a lane is all ones or all zeros */

SIMD_FUNCTION vec vzero(void) { return vdupq_n_f32(0.0f); }
SIMD_FUNCTION vec vset(float x) { return vdupq_n_f32(x); }
SIMD_FUNCTION vec vload(const float *p) { return vld1q_f32(p); }
SIMD_FUNCTION void vstore(float *p, vec v) { vst1q_f32(p, v); }
SIMD_FUNCTION vec vbroadcast_load(const float *p) { return vld1q_dup_f32(p); }
SIMD_FUNCTION vmask vmask_first(int n) {
  const uint32_t lane[4] = {0, 1, 2, 3};
  return vcltq_u32(vld1q_u32(lane), vdupq_n_u32((uint32_t)n));
}
SIMD_FUNCTION vec vload_n(const float *p, int n) {
  float lane[4] = {0};
  for (int i = 0; i < n; i++) lane[i] = p[i];
  return vld1q_f32(lane);
}
SIMD_FUNCTION void vstore_n(float *p, vec v, int n) {
  float lane[4];
  vst1q_f32(lane, v);
  for (int i = 0; i < n; i++) p[i] = lane[i];
}
SIMD_FUNCTION vec vload_even(const float *p) { return vld2q_f32(p).val[0]; }
SIMD_FUNCTION void vprefetch(const void *p) { __builtin_prefetch(p); }

SIMD_FUNCTION vec vadd(vec a, vec b) { return vaddq_f32(a, b); }
SIMD_FUNCTION vec vsub(vec a, vec b) { return vsubq_f32(a, b); }
SIMD_FUNCTION vec vmul(vec a, vec b) { return vmulq_f32(a, b); }
SIMD_FUNCTION vec vdiv(vec a, vec b) { return vdivq_f32(a, b); }
SIMD_FUNCTION vec vsqrt(vec v) { return vsqrtq_f32(v); }
SIMD_FUNCTION vec vfma(vec acc, vec a, vec b) { return vfmaq_f32(acc, a, b); }
SIMD_FUNCTION vec vfnma(vec acc, vec a, vec b) { return vfmsq_f32(acc, a, b); }

SIMD_FUNCTION vmask vlt(vec a, vec b) { return vcltq_f32(a, b); }
SIMD_FUNCTION vmask vle(vec a, vec b) { return vcleq_f32(a, b); }
SIMD_FUNCTION vmask vgt(vec a, vec b) { return vcgtq_f32(a, b); }
SIMD_FUNCTION vmask vge(vec a, vec b) { return vcgeq_f32(a, b); }
SIMD_FUNCTION vmask veq(vec a, vec b) { return vceqq_f32(a, b); }
SIMD_FUNCTION vmask vne(vec a, vec b) { return vmvnq_u32(vceqq_f32(a, b)); }
SIMD_FUNCTION vmask visnan(vec v) { return vmvnq_u32(vceqq_f32(v, v)); }
SIMD_FUNCTION vmask vand(vmask a, vmask b) { return vandq_u32(a, b); }
SIMD_FUNCTION vmask vor(vmask a, vmask b) { return vorrq_u32(a, b); }
SIMD_FUNCTION vmask vnot(vmask m) { return vmvnq_u32(m); }
SIMD_FUNCTION int vany(vmask m) { return vmaxvq_u32(m) != 0; }
SIMD_FUNCTION vec vselect(vmask m, vec a, vec b) { return vbslq_f32(m, a, b); }

/* FMIN and FMAX return NaN if either operand is NaN. */
SIMD_FUNCTION vec vmin(vec a, vec b) { return vminq_f32(a, b); }
SIMD_FUNCTION vec vmax(vec a, vec b) { return vmaxq_f32(a, b); }
SIMD_FUNCTION vec vmin_bound(vec v, vec bound) { return vminq_f32(v, bound); }
SIMD_FUNCTION vec vmax_bound(vec v, vec bound) { return vmaxq_f32(v, bound); }

SIMD_FUNCTION vec vneg(vec v) { return vnegq_f32(v); }
SIMD_FUNCTION vec vabs(vec v) { return vabsq_f32(v); }
SIMD_FUNCTION vec vcopysign(vec v, vec s) { return vbslq_f32(vdupq_n_u32(0x80000000u), s, v); }

SIMD_FUNCTION vec vfloor(vec v) { return vrndmq_f32(v); }
SIMD_FUNCTION vec vceil(vec v) { return vrndpq_f32(v); }
SIMD_FUNCTION vec vround(vec v) { return vrndnq_f32(v); }

/* n + 1.5 * 2^23 has n in its low mantissa bits; the shift moves it to the exponent's place. */
SIMD_FUNCTION vec vscale2(vec v, vec t) {
  uint32x4_t exponent = vshlq_n_u32(vreinterpretq_u32_f32(t), 23);
  return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(v), exponent));
}
SIMD_FUNCTION vec vexponent(vec v) {
  int32x4_t biased = vshrq_n_s32(vreinterpretq_s32_f32(v), 23);
  return vcvtq_f32_s32(vsubq_s32(biased, vdupq_n_s32(127)));
}
SIMD_FUNCTION vec vmantissa(vec v) {
  uint32x4_t fraction = vandq_u32(vreinterpretq_u32_f32(v), vdupq_n_u32(0x007fffff));
  return vreinterpretq_f32_u32(vorrq_u32(fraction, vdupq_n_u32(0x3f800000)));
}

SIMD_FUNCTION float vhsum(vec v) {
  float32x2_t by2 = vadd_f32(vget_low_f32(v), vget_high_f32(v));
  return vget_lane_f32(by2, 0) + vget_lane_f32(by2, 1);
}
SIMD_FUNCTION float vhmin(vec v) { return vminvq_f32(v); }
SIMD_FUNCTION float vhmax(vec v) { return vmaxvq_f32(v); }

#define SIMD_AFTER
SIMD_FUNCTION const float *vafter(const float *p, vec v) {
  __asm__("" : "+r"(p) : "w"(v));
  return p;
}

#endif
