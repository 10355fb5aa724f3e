/* SPDX-License-Identifier: MIT */
/* The SIMD vocabulary for AVX-512 F, DQ, BW, VL. simd.h defines each operation. */
#ifndef SIMD_AVX512_H
#define SIMD_AVX512_H

#include <immintrin.h>

enum { LANES = 16 };
typedef __m512 vec;
typedef __mmask16 vmask;

SIMD_FUNCTION vec vzero(void) { return _mm512_setzero_ps(); }
SIMD_FUNCTION vec vset(float x) { return _mm512_set1_ps(x); }
SIMD_FUNCTION vec vload(const float *p) { return _mm512_loadu_ps(p); }
SIMD_FUNCTION void vstore(float *p, vec v) { _mm512_storeu_ps(p, v); }
SIMD_FUNCTION vec vbroadcast_load(const float *p) { return _mm512_set1_ps(*p); }
SIMD_FUNCTION vmask vmask_first(int n) { return (vmask)((1u << n) - 1); }
SIMD_FUNCTION vec vload_n(const float *p, int n) { return _mm512_maskz_loadu_ps(vmask_first(n), p); }
SIMD_FUNCTION void vstore_n(float *p, vec v, int n) { _mm512_mask_storeu_ps(p, vmask_first(n), v); }
SIMD_FUNCTION vec vload_even(const float *p) {
  __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return _mm512_permutex2var_ps(vload(p), even, vload(p + 16));
}
SIMD_FUNCTION void vprefetch(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }

SIMD_FUNCTION vec vadd(vec a, vec b) { return _mm512_add_ps(a, b); }
SIMD_FUNCTION vec vsub(vec a, vec b) { return _mm512_sub_ps(a, b); }
SIMD_FUNCTION vec vmul(vec a, vec b) { return _mm512_mul_ps(a, b); }
SIMD_FUNCTION vec vdiv(vec a, vec b) { return _mm512_div_ps(a, b); }
SIMD_FUNCTION vec vsqrt(vec v) { return _mm512_sqrt_ps(v); }
SIMD_FUNCTION vec vfma(vec acc, vec a, vec b) { return _mm512_fmadd_ps(a, b, acc); }
SIMD_FUNCTION vec vfnma(vec acc, vec a, vec b) { return _mm512_fnmadd_ps(a, b, acc); }

SIMD_FUNCTION vmask vlt(vec a, vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
SIMD_FUNCTION vmask vle(vec a, vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
SIMD_FUNCTION vmask vgt(vec a, vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
SIMD_FUNCTION vmask vge(vec a, vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
SIMD_FUNCTION vmask veq(vec a, vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
SIMD_FUNCTION vmask vne(vec a, vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ); }
SIMD_FUNCTION vmask visnan(vec v) { return _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q); }
SIMD_FUNCTION vmask vand(vmask a, vmask b) { return (vmask)(a & b); }
SIMD_FUNCTION vmask vor(vmask a, vmask b) { return (vmask)(a | b); }
SIMD_FUNCTION vmask vnot(vmask m) { return (vmask)~m; }
SIMD_FUNCTION int vany(vmask m) { return m != 0; }
SIMD_FUNCTION vec vselect(vmask m, vec a, vec b) { return _mm512_mask_blend_ps(m, b, a); }

/* MINPS and MAXPS return their second operand if either is NaN. */
SIMD_FUNCTION vec vmin_bound(vec v, vec bound) { return _mm512_min_ps(bound, v); }
SIMD_FUNCTION vec vmax_bound(vec v, vec bound) { return _mm512_max_ps(bound, v); }
SIMD_FUNCTION vec vmin(vec a, vec b) { return vselect(visnan(a), a, _mm512_min_ps(a, b)); }
SIMD_FUNCTION vec vmax(vec a, vec b) { return vselect(visnan(a), a, _mm512_max_ps(a, b)); }

SIMD_FUNCTION vec vneg(vec v) { return _mm512_xor_ps(v, _mm512_set1_ps(-0.0f)); }
SIMD_FUNCTION vec vabs(vec v) { return _mm512_abs_ps(v); }
/* 0xca is the truth table of (first ? second : third), bit by bit. */
SIMD_FUNCTION vec vcopysign(vec v, vec s) {
  __m512i sign = _mm512_castps_si512(_mm512_set1_ps(-0.0f));
  return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(sign, _mm512_castps_si512(s), _mm512_castps_si512(v), 0xca));
}

SIMD_FUNCTION vec vfloor(vec v) { return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
SIMD_FUNCTION vec vceil(vec v) { return _mm512_roundscale_ps(v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
SIMD_FUNCTION vec vround(vec v) { return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

/* n + 1.5 * 2^23 has n in its low mantissa bits; the shift moves it to the exponent's place. */
SIMD_FUNCTION vec vscale2(vec v, vec t) {
  __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(t), 23);
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(v), exponent));
}
SIMD_FUNCTION vec vexponent(vec v) {
  __m512i biased = _mm512_srli_epi32(_mm512_castps_si512(v), 23);
  return _mm512_cvtepi32_ps(_mm512_sub_epi32(biased, _mm512_set1_epi32(127)));
}
SIMD_FUNCTION vec vmantissa(vec v) {
  __m512i fraction = _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0x007fffff));
  return _mm512_castsi512_ps(_mm512_or_si512(fraction, _mm512_set1_epi32(0x3f800000)));
}

/* Clang makes two and a half times as many permutations of simd.h's. Of rows 4g..4g+3, fours[4g + c] gets columns c, 4
 * + c, 8 + c, 12 + c, a quarter each; a column's quarters are then brought together. */
#define SIMD_TRANSPOSE
SIMD_FUNCTION void vtranspose(vec rows[16]) {
  __m512d fours[16];
#pragma clang loop unroll(full)
  for (int g = 0; g < 16; g += 4) {
    __m512d low_a = _mm512_castps_pd(_mm512_unpacklo_ps(rows[g], rows[g + 1]));
    __m512d high_a = _mm512_castps_pd(_mm512_unpackhi_ps(rows[g], rows[g + 1]));
    __m512d low_b = _mm512_castps_pd(_mm512_unpacklo_ps(rows[g + 2], rows[g + 3]));
    __m512d high_b = _mm512_castps_pd(_mm512_unpackhi_ps(rows[g + 2], rows[g + 3]));
    fours[g] = _mm512_unpacklo_pd(low_a, low_b);
    fours[g + 1] = _mm512_unpackhi_pd(low_a, low_b);
    fours[g + 2] = _mm512_unpacklo_pd(high_a, high_b);
    fours[g + 3] = _mm512_unpackhi_pd(high_a, high_b);
  }
#pragma clang loop unroll(full)
  for (int c = 0; c < 4; c++) {
    vec even_a = _mm512_castpd_ps(_mm512_shuffle_f64x2(fours[c], fours[4 + c], 0x88));
    vec odd_a = _mm512_castpd_ps(_mm512_shuffle_f64x2(fours[c], fours[4 + c], 0xdd));
    vec even_b = _mm512_castpd_ps(_mm512_shuffle_f64x2(fours[8 + c], fours[12 + c], 0x88));
    vec odd_b = _mm512_castpd_ps(_mm512_shuffle_f64x2(fours[8 + c], fours[12 + c], 0xdd));
    rows[c] = _mm512_shuffle_f32x4(even_a, even_b, 0x88);
    rows[4 + c] = _mm512_shuffle_f32x4(odd_a, odd_b, 0x88);
    rows[8 + c] = _mm512_shuffle_f32x4(even_a, even_b, 0xdd);
    rows[12 + c] = _mm512_shuffle_f32x4(odd_a, odd_b, 0xdd);
  }
}

SIMD_FUNCTION float vhsum(vec v) {
  __m256 by8 = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
}
SIMD_FUNCTION float vhmin(vec v) { return vany(visnan(v)) ? __builtin_nanf("") : _mm512_reduce_min_ps(v); }
SIMD_FUNCTION float vhmax(vec v) { return vany(visnan(v)) ? __builtin_nanf("") : _mm512_reduce_max_ps(v); }

#endif
