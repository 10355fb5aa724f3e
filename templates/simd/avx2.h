/* SPDX-License-Identifier: MIT */
/* The SIMD vocabulary for AVX2 and FMA. simd.h defines each operation. */
#ifndef SIMD_AVX2_H
#define SIMD_AVX2_H

#include <immintrin.h>

#define SIMD_FEW_REGISTERS

enum { LANES = 8 };
typedef __m256 vec;
typedef __m256 vmask; /* a lane is all ones or all zeros */

SIMD_FUNCTION vec vzero(void) { return _mm256_setzero_ps(); }
SIMD_FUNCTION vec vset(float x) { return _mm256_set1_ps(x); }
SIMD_FUNCTION vec vload(const float *p) { return _mm256_loadu_ps(p); }
SIMD_FUNCTION void vstore(float *p, vec v) { _mm256_storeu_ps(p, v); }
SIMD_FUNCTION vec vbroadcast_load(const float *p) { return _mm256_broadcast_ss(p); }
SIMD_FUNCTION vmask vmask_first(int n) {
  __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane));
}
SIMD_FUNCTION vec vload_n(const float *p, int n) { return _mm256_maskload_ps(p, _mm256_castps_si256(vmask_first(n))); }
SIMD_FUNCTION void vstore_n(float *p, vec v, int n) { _mm256_maskstore_ps(p, _mm256_castps_si256(vmask_first(n)), v); }
/* The shuffle works in each 128-bit half: 0 2 8 10 | 4 6 12 14; the permutation puts the pairs in order. */
SIMD_FUNCTION vec vload_even(const float *p) {
  __m256 pairs = _mm256_shuffle_ps(vload(p), vload(p + 8), 0x88);
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(pairs), 0xd8));
}
SIMD_FUNCTION void vprefetch(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }

SIMD_FUNCTION vec vadd(vec a, vec b) { return _mm256_add_ps(a, b); }
SIMD_FUNCTION vec vsub(vec a, vec b) { return _mm256_sub_ps(a, b); }
SIMD_FUNCTION vec vmul(vec a, vec b) { return _mm256_mul_ps(a, b); }
SIMD_FUNCTION vec vdiv(vec a, vec b) { return _mm256_div_ps(a, b); }
SIMD_FUNCTION vec vsqrt(vec v) { return _mm256_sqrt_ps(v); }
SIMD_FUNCTION vec vfma(vec acc, vec a, vec b) { return _mm256_fmadd_ps(a, b, acc); }
SIMD_FUNCTION vec vfnma(vec acc, vec a, vec b) { return _mm256_fnmadd_ps(a, b, acc); }

SIMD_FUNCTION vmask vlt(vec a, vec b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
SIMD_FUNCTION vmask vle(vec a, vec b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
SIMD_FUNCTION vmask vgt(vec a, vec b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
SIMD_FUNCTION vmask vge(vec a, vec b) { return _mm256_cmp_ps(a, b, _CMP_GE_OQ); }
SIMD_FUNCTION vmask veq(vec a, vec b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
SIMD_FUNCTION vmask vne(vec a, vec b) { return _mm256_cmp_ps(a, b, _CMP_NEQ_UQ); }
SIMD_FUNCTION vmask visnan(vec v) { return _mm256_cmp_ps(v, v, _CMP_UNORD_Q); }
SIMD_FUNCTION vmask vand(vmask a, vmask b) { return _mm256_and_ps(a, b); }
SIMD_FUNCTION vmask vor(vmask a, vmask b) { return _mm256_or_ps(a, b); }
SIMD_FUNCTION vmask vnot(vmask m) { return _mm256_xor_ps(m, _mm256_castsi256_ps(_mm256_set1_epi32(-1))); }
SIMD_FUNCTION int vany(vmask m) { return _mm256_movemask_ps(m) != 0; }
SIMD_FUNCTION vec vselect(vmask m, vec a, vec b) { return _mm256_blendv_ps(b, a, m); }

/* MINPS and MAXPS return their second operand if either is NaN. */
SIMD_FUNCTION vec vmin_bound(vec v, vec bound) { return _mm256_min_ps(bound, v); }
SIMD_FUNCTION vec vmax_bound(vec v, vec bound) { return _mm256_max_ps(bound, v); }
SIMD_FUNCTION vec vmin(vec a, vec b) { return vselect(visnan(a), a, _mm256_min_ps(a, b)); }
SIMD_FUNCTION vec vmax(vec a, vec b) { return vselect(visnan(a), a, _mm256_max_ps(a, b)); }

SIMD_FUNCTION vec vneg(vec v) { return _mm256_xor_ps(v, _mm256_set1_ps(-0.0f)); }
SIMD_FUNCTION vec vabs(vec v) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v); }
SIMD_FUNCTION vec vcopysign(vec v, vec s) { return _mm256_or_ps(vabs(v), _mm256_and_ps(s, _mm256_set1_ps(-0.0f))); }

SIMD_FUNCTION vec vfloor(vec v) { return _mm256_round_ps(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
SIMD_FUNCTION vec vceil(vec v) { return _mm256_round_ps(v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
SIMD_FUNCTION vec vround(vec v) { return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

/* n + 1.5 * 2^23 has n in its low mantissa bits; the shift moves it to the exponent's place. */
SIMD_FUNCTION vec vscale2(vec v, vec t) {
  __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(v), exponent));
}
SIMD_FUNCTION vec vexponent(vec v) {
  __m256i biased = _mm256_srli_epi32(_mm256_castps_si256(v), 23);
  return _mm256_cvtepi32_ps(_mm256_sub_epi32(biased, _mm256_set1_epi32(127)));
}
SIMD_FUNCTION vec vmantissa(vec v) {
  __m256i fraction = _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(0x007fffff));
  return _mm256_castsi256_ps(_mm256_or_si256(fraction, _mm256_set1_epi32(0x3f800000)));
}

SIMD_FUNCTION float vhsum(vec v) {
  __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
}
SIMD_FUNCTION float vhmin(vec v) {
  if (vany(visnan(v))) return __builtin_nanf("");
  __m128 by4 = _mm_min_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  __m128 by2 = _mm_min_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_min_ss(by2, _mm_movehdup_ps(by2)));
}
SIMD_FUNCTION float vhmax(vec v) {
  if (vany(visnan(v))) return __builtin_nanf("");
  __m128 by4 = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  __m128 by2 = _mm_max_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_max_ss(by2, _mm_movehdup_ps(by2)));
}

#endif
