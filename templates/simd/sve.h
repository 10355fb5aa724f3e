/* SPDX-License-Identifier: MIT */
/*
 * The SIMD vocabulary for AArch64's SVE with vectors of one fixed width, SVE_BITS. Arithmetic is the compiler's own,
 * which is told the width. simd.h defines each operation.
 */
#ifndef SIMD_SVE_H
#define SIMD_SVE_H

#include <arm_sve.h>

enum { LANES = SVE_BITS / 32 };
typedef svfloat32_t vec __attribute__((arm_sve_vector_bits(SVE_BITS)));
typedef svbool_t vmask; /* no part of arrays or structs */
typedef float sve_floats __attribute__((vector_size(SVE_BITS / 8)));
typedef sve_floats sve_unaligned __attribute__((aligned(4), may_alias));

SIMD_FUNCTION svbool_t sve_all(void) { return svptrue_b32(); }

SIMD_FUNCTION vec vzero(void) { return svdup_n_f32(0.0f); }
SIMD_FUNCTION vec vset(float x) { return svdup_n_f32(x); }
SIMD_FUNCTION vec vload(const float *p) {
  sve_floats v = *(const sve_unaligned *)p;
  return v;
}
SIMD_FUNCTION void vstore(float *p, vec v) { *(sve_unaligned *)p = v; }
SIMD_FUNCTION vec vbroadcast_load(const float *p) { return svdup_n_f32(*p); }
SIMD_FUNCTION vmask vmask_first(int n) { return svwhilelt_b32_s32(0, n); }
SIMD_FUNCTION vec vload_n(const float *p, int n) { return svld1_f32(vmask_first(n), p); }
SIMD_FUNCTION void vstore_n(float *p, vec v, int n) { svst1_f32(vmask_first(n), p, v); }
SIMD_FUNCTION vec vload_even(const float *p) { return svuzp1_f32(vload(p), vload(p + LANES)); }
SIMD_FUNCTION void vprefetch(const void *p) { __builtin_prefetch(p); }

SIMD_FUNCTION vec vadd(vec a, vec b) { return a + b; }
SIMD_FUNCTION vec vsub(vec a, vec b) { return a - b; }
SIMD_FUNCTION vec vmul(vec a, vec b) { return a * b; }
SIMD_FUNCTION vec vdiv(vec a, vec b) { return a / b; }
SIMD_FUNCTION vec vsqrt(vec v) { return svsqrt_f32_x(sve_all(), v); }
SIMD_FUNCTION vec vfma(vec acc, vec a, vec b) { return svmla_f32_x(sve_all(), acc, a, b); }
SIMD_FUNCTION vec vfnma(vec acc, vec a, vec b) { return svmls_f32_x(sve_all(), acc, a, b); }

SIMD_FUNCTION vmask vlt(vec a, vec b) { return svcmplt_f32(sve_all(), a, b); }
SIMD_FUNCTION vmask vle(vec a, vec b) { return svcmple_f32(sve_all(), a, b); }
SIMD_FUNCTION vmask vgt(vec a, vec b) { return svcmpgt_f32(sve_all(), a, b); }
SIMD_FUNCTION vmask vge(vec a, vec b) { return svcmpge_f32(sve_all(), a, b); }
SIMD_FUNCTION vmask veq(vec a, vec b) { return svcmpeq_f32(sve_all(), a, b); }
SIMD_FUNCTION vmask vnot(vmask m) { return svnot_b_z(sve_all(), m); }
SIMD_FUNCTION vmask vne(vec a, vec b) { return svcmpne_f32(sve_all(), a, b); }
SIMD_FUNCTION vmask visnan(vec v) { return svcmpuo_f32(sve_all(), v, v); }
SIMD_FUNCTION vmask vand(vmask a, vmask b) { return svand_b_z(sve_all(), a, b); }
SIMD_FUNCTION vmask vor(vmask a, vmask b) { return svorr_b_z(sve_all(), a, b); }
SIMD_FUNCTION int vany(vmask m) { return svptest_any(sve_all(), m); }
SIMD_FUNCTION vec vselect(vmask m, vec a, vec b) { return svsel_f32(m, a, b); }

/* FMIN and FMAX return NaN if either operand is NaN. */
SIMD_FUNCTION vec vmin(vec a, vec b) { return svmin_f32_x(sve_all(), a, b); }
SIMD_FUNCTION vec vmax(vec a, vec b) { return svmax_f32_x(sve_all(), a, b); }
SIMD_FUNCTION vec vmin_bound(vec v, vec bound) { return vmin(v, bound); }
SIMD_FUNCTION vec vmax_bound(vec v, vec bound) { return vmax(v, bound); }

SIMD_FUNCTION svuint32_t sve_bits(vec v) { return svreinterpret_u32_f32(v); }
SIMD_FUNCTION vec vneg(vec v) { return svneg_f32_x(sve_all(), v); }
SIMD_FUNCTION vec vabs(vec v) { return svabs_f32_x(sve_all(), v); }
SIMD_FUNCTION vec vcopysign(vec v, vec s) {
  svuint32_t sign = svand_n_u32_x(sve_all(), sve_bits(s), 0x80000000u);
  return svreinterpret_f32_u32(svorr_u32_x(sve_all(), sve_bits(vabs(v)), sign));
}

SIMD_FUNCTION vec vfloor(vec v) { return svrintm_f32_x(sve_all(), v); }
SIMD_FUNCTION vec vceil(vec v) { return svrintp_f32_x(sve_all(), v); }
SIMD_FUNCTION vec vround(vec v) { return svrintn_f32_x(sve_all(), v); }

/* t has n in its low mantissa bits; the shift moves it to the exponent's place. */
SIMD_FUNCTION vec vscale2(vec v, vec t) {
  svuint32_t exponent = svlsl_n_u32_x(sve_all(), sve_bits(t), 23);
  return svreinterpret_f32_u32(svadd_u32_x(sve_all(), sve_bits(v), exponent));
}
SIMD_FUNCTION vec vexponent(vec v) {
  svint32_t biased = svasr_n_s32_x(sve_all(), svreinterpret_s32_f32(v), 23);
  return svcvt_f32_s32_x(sve_all(), svsub_n_s32_x(sve_all(), biased, 127));
}
SIMD_FUNCTION vec vmantissa(vec v) {
  svuint32_t fraction = svand_n_u32_x(sve_all(), sve_bits(v), 0x007fffff);
  return svreinterpret_f32_u32(svorr_n_u32_x(sve_all(), fraction, 0x3f800000));
}

/* The upper half comes down to the lower one; what stands above does not count. */
SIMD_FUNCTION float vhsum(vec v) {
#if SVE_BITS > 256
  v = vadd(v, svext_f32(v, v, 8));
#endif
#if SVE_BITS > 128
  v = vadd(v, svext_f32(v, v, 4));
#endif
  v = vadd(v, svext_f32(v, v, 2));
  return v[0] + v[1];
}
SIMD_FUNCTION float vhmin(vec v) { return svminv_f32(sve_all(), v); }
SIMD_FUNCTION float vhmax(vec v) { return svmaxv_f32(sve_all(), v); }

#define SIMD_AFTER
SIMD_FUNCTION const float *vafter(const float *p, vec v) {
  svfloat32_t whole = v; /* a vector of fixed width has no register in clang's assembler operands */
  __asm__("" : "+r"(p) : "w"(whole));
  return p;
}

#endif
