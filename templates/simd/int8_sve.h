/* SPDX-License-Identifier: MIT */
/* Products of 8-bit numbers for AArch64's SVE, whose base has dot products. int8.h defines each operation. */
#ifndef SIMD_INT8_SVE_H
#define SIMD_INT8_SVE_H

enum { DOT_ZERO = 128, DOT_NATIVE = 1, DOT_SIGNS_ZERO = DOT_ZERO };
typedef svint32_t vint __attribute__((arm_sve_vector_bits(SVE_BITS)));
typedef int sve_ints __attribute__((vector_size(SVE_BITS / 8)));
typedef sve_ints sve_ints_unaligned __attribute__((aligned(1), may_alias));

SIMD_FUNCTION vint vint_zero(void) { return svdup_n_s32(0); }
SIMD_FUNCTION vint vint_set(int x) { return svdup_n_s32(x); }
SIMD_FUNCTION vint vint_load(const void *p) {
  sve_ints v = *(const sve_ints_unaligned *)p;
  return v;
}
SIMD_FUNCTION void vint_store(void *p, vint v) { *(sve_ints_unaligned *)p = v; }
SIMD_FUNCTION vint vint_load_n(const void *p, int n) { return svld1_s32(vmask_first(n), p); }
SIMD_FUNCTION void vint_store_n(void *p, vint v, int n) { svst1_s32(vmask_first(n), p, v); }
SIMD_FUNCTION vint vint_add(vint a, vint b) { return svadd_s32_x(sve_all(), a, b); }
SIMD_FUNCTION vint vint_sub(vint a, vint b) { return svsub_s32_x(sve_all(), a, b); }
SIMD_FUNCTION vint vint_mul(vint a, vint b) { return svmul_s32_x(sve_all(), a, b); }
SIMD_FUNCTION vint vint_shift(vint v, int n) { return svlsl_n_s32_x(sve_all(), v, (unsigned)n); }
SIMD_FUNCTION vint vint_shift_right(vint v, int n) { return svasr_n_s32_x(sve_all(), v, (unsigned)n); }
SIMD_FUNCTION vint vint_min(vint a, vint b) { return svmin_s32_x(sve_all(), a, b); }
SIMD_FUNCTION vint vint_max(vint a, vint b) { return svmax_s32_x(sve_all(), a, b); }

SIMD_FUNCTION vec vint_to_float(vint v) { return svcvt_f32_s32_x(sve_all(), v); }
SIMD_FUNCTION vint vround_to_int(vec v) { return svcvt_s32_f32_x(sve_all(), vround(v)); }

SIMD_FUNCTION vint vint_load_u8_n(const void *p, int n) { return svld1ub_s32(vmask_first(n), p); }
SIMD_FUNCTION vint vint_load_s8_n(const void *p, int n) { return svld1sb_s32(vmask_first(n), p); }
SIMD_FUNCTION vint vint_load_u8(const void *p) { return svld1ub_s32(sve_all(), p); }
SIMD_FUNCTION vint vint_load_s8(const void *p) { return svld1sb_s32(sve_all(), p); }
SIMD_FUNCTION vint simd_between(vint v, int low, int high) {
  return svmin_n_s32_x(sve_all(), svmax_n_s32_x(sve_all(), v, low), high);
}
SIMD_FUNCTION void vint_store_u8(void *p, vint v) { svst1b_s32(sve_all(), p, simd_between(v, 0, 255)); }
SIMD_FUNCTION void vint_store_s8(void *p, vint v) { svst1b_s32(sve_all(), p, simd_between(v, -128, 127)); }
SIMD_FUNCTION void vint_store_u8_n(void *p, vint v, int n) { svst1b_s32(vmask_first(n), p, simd_between(v, 0, 255)); }
SIMD_FUNCTION void vint_store_s8_n(void *p, vint v, int n) {
  svst1b_s32(vmask_first(n), p, simd_between(v, -128, 127));
}

SIMD_FUNCTION void vint_store4_u8(void *p, vint a, vint b, vint c, vint d) {
  vint_store_u8(p, a);
  vint_store_u8((char *)p + LANES, b);
  vint_store_u8((char *)p + 2 * LANES, c);
  vint_store_u8((char *)p + 3 * LANES, d);
}
SIMD_FUNCTION void vint_store4_s8(void *p, vint a, vint b, vint c, vint d) {
  vint_store_s8(p, a);
  vint_store_s8((char *)p + LANES, b);
  vint_store_s8((char *)p + 2 * LANES, c);
  vint_store_s8((char *)p + 3 * LANES, d);
}

/* Masks of the first LANES of the numbers of 16 bits, and of the others. */
SIMD_FUNCTION svbool_t simd_first_half(void) { return svwhilelt_b16_s32(0, LANES); }
SIMD_FUNCTION vint vpair_inputs(const void *p, const void *q, int is_signed) {
  svbool_t first = simd_first_half(), last = svnot_b_z(svptrue_b16(), first);
  svuint16_t bytes = svorr_u16_x(svptrue_b16(), svld1ub_u16(first, p), svld1ub_u16(last, (const uint8_t *)q - LANES));
  return svreinterpret_s32_u16(is_signed ? sveor_n_u16_x(svptrue_b16(), bytes, 128) : bytes);
}
SIMD_FUNCTION vint vpair_weights(const void *p) { return svreinterpret_s32_s16(svld1sb_s16(svptrue_b16(), p)); }
SIMD_FUNCTION vint vpair_add(vint a, vint b) {
  return svreinterpret_s32_s16(svadd_s16_x(svptrue_b16(), svreinterpret_s16_s32(a), svreinterpret_s16_s32(b)));
}
SIMD_FUNCTION vint vpair_sub(vint a, vint b) {
  return svreinterpret_s32_s16(svsub_s16_x(svptrue_b16(), svreinterpret_s16_s32(a), svreinterpret_s16_s32(b)));
}
SIMD_FUNCTION vint vpair_shift(vint v, int n) {
  return svreinterpret_s32_s16(svlsl_n_s16_x(svptrue_b16(), svreinterpret_s16_s32(v), (uint16_t)n));
}
SIMD_FUNCTION void vpair_store_first(void *p, vint v) { svst1_s16(simd_first_half(), p, svreinterpret_s16_s32(v)); }
SIMD_FUNCTION vint vpair_dot(vint acc, vint a, vint b) {
  acc = svmla_s32_x(sve_all(), acc, svexth_s32_x(sve_all(), a), svexth_s32_x(sve_all(), b));
  return svmla_s32_x(sve_all(), acc, svasr_n_s32_x(sve_all(), a, 16), svasr_n_s32_x(sve_all(), b, 16));
}

SIMD_FUNCTION vint vdot(vint acc, vint input, vint weights, int form) {
  (void)form;
  return svdot_s32(acc, svreinterpret_s8_s32(weights), svreinterpret_s8_s32(input));
}

#endif
