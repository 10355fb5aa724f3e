/* SPDX-License-Identifier: MIT */
/* Products of 8-bit numbers for AVX2, with AVX-VNNI or without. int8.h defines each operation. */
#ifndef SIMD_INT8_AVX2_H
#define SIMD_INT8_AVX2_H

enum { DOT_ZERO = 0 };
typedef __m256i vint;

SIMD_FUNCTION vint vint_zero(void) { return _mm256_setzero_si256(); }
SIMD_FUNCTION vint vint_set(int x) { return _mm256_set1_epi32(x); }
SIMD_FUNCTION vint vint_load(const void *p) { return _mm256_loadu_si256(p); }
SIMD_FUNCTION void vint_store(void *p, vint v) { _mm256_storeu_si256(p, v); }
SIMD_FUNCTION vint vint_load_n(const void *p, int n) {
  return _mm256_maskload_epi32(p, _mm256_castps_si256(vmask_first(n)));
}
SIMD_FUNCTION void vint_store_n(void *p, vint v, int n) {
  _mm256_maskstore_epi32(p, _mm256_castps_si256(vmask_first(n)), v);
}
SIMD_FUNCTION vint vint_add(vint a, vint b) { return _mm256_add_epi32(a, b); }
SIMD_FUNCTION vint vint_sub(vint a, vint b) { return _mm256_sub_epi32(a, b); }
SIMD_FUNCTION vint vint_mul(vint a, vint b) { return _mm256_mullo_epi32(a, b); }
SIMD_FUNCTION vint vint_shift(vint v, int n) { return _mm256_slli_epi32(v, n); }
SIMD_FUNCTION vint vint_shift_right(vint v, int n) { return _mm256_srai_epi32(v, n); }
SIMD_FUNCTION vint vint_min(vint a, vint b) { return _mm256_min_epi32(a, b); }
SIMD_FUNCTION vint vint_max(vint a, vint b) { return _mm256_max_epi32(a, b); }

SIMD_FUNCTION vec vint_to_float(vint v) { return _mm256_cvtepi32_ps(v); }
SIMD_FUNCTION vint vround_to_int(vec v) { return _mm256_cvtps_epi32(vround(v)); }

SIMD_FUNCTION __m128i simd_eight(const void *p, int n) { return _mm_cvtsi64_si128((long long)simd_bytes_load(p, n)); }
SIMD_FUNCTION vint vint_load_u8(const void *p) { return _mm256_cvtepu8_epi32(_mm_loadl_epi64(p)); }
SIMD_FUNCTION vint vint_load_s8(const void *p) { return _mm256_cvtepi8_epi32(_mm_loadl_epi64(p)); }
SIMD_FUNCTION vint vint_load_u8_n(const void *p, int n) { return _mm256_cvtepu8_epi32(simd_eight(p, n)); }
SIMD_FUNCTION vint vint_load_s8_n(const void *p, int n) { return _mm256_cvtepi8_epi32(simd_eight(p, n)); }
SIMD_FUNCTION __m128i simd_to_s16(vint v) {
  return _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}
SIMD_FUNCTION __m128i simd_to_u8(vint v) { return _mm_packus_epi16(simd_to_s16(v), _mm_setzero_si128()); }
SIMD_FUNCTION __m128i simd_to_s8(vint v) { return _mm_packs_epi16(simd_to_s16(v), _mm_setzero_si128()); }
SIMD_FUNCTION void vint_store_u8(void *p, vint v) { _mm_storel_epi64(p, simd_to_u8(v)); }
SIMD_FUNCTION void vint_store_s8(void *p, vint v) { _mm_storel_epi64(p, simd_to_s8(v)); }
SIMD_FUNCTION void vint_store_u8_n(void *p, vint v, int n) {
  simd_bytes_store(p, (unsigned long long)_mm_cvtsi128_si64(simd_to_u8(v)), n);
}
SIMD_FUNCTION void vint_store_s8_n(void *p, vint v, int n) {
  simd_bytes_store(p, (unsigned long long)_mm_cvtsi128_si64(simd_to_s8(v)), n);
}
/* Packing works within 128 bits, so that the two halves of a vector come together last. */
SIMD_FUNCTION void simd_store_turned(void *p, __m256i bytes) {
  _mm256_storeu_si256(p, _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
}
SIMD_FUNCTION void vint_store4_u8(void *p, vint a, vint b, vint c, vint d) {
  simd_store_turned(p, _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d)));
}
SIMD_FUNCTION void vint_store4_s8(void *p, vint a, vint b, vint c, vint d) {
  simd_store_turned(p, _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d)));
}

SIMD_FUNCTION vint vpair_inputs(const void *p, const void *q, int is_signed) {
  __m128i bytes = _mm_unpacklo_epi64(_mm_loadl_epi64(p), _mm_loadl_epi64(q));
  return _mm256_cvtepu8_epi16(is_signed ? _mm_xor_si128(bytes, _mm_set1_epi8(-128)) : bytes);
}
SIMD_FUNCTION vint vpair_weights(const void *p) { return _mm256_cvtepi8_epi16(_mm_loadu_si128(p)); }
SIMD_FUNCTION vint vpair_add(vint a, vint b) { return _mm256_add_epi16(a, b); }
SIMD_FUNCTION vint vpair_sub(vint a, vint b) { return _mm256_sub_epi16(a, b); }
SIMD_FUNCTION vint vpair_shift(vint v, int n) { return _mm256_slli_epi16(v, n); }
SIMD_FUNCTION void vpair_store_first(void *p, vint v) { _mm_storeu_si128(p, _mm256_castsi256_si128(v)); }

#ifdef __AVXVNNI__
enum { DOT_NATIVE = 1, DOT_SIGNS_ZERO = DOT_ZERO };
SIMD_FUNCTION vint vpair_dot(vint acc, vint a, vint b) { return _mm256_dpwssd_avx_epi32(acc, a, b); }
SIMD_FUNCTION vint vdot(vint acc, vint input, vint weights, int form) {
  (void)form;
  return _mm256_dpbusd_avx_epi32(acc, input, weights);
}
#else
enum { DOT_NATIVE = 0, DOT_SIGNS_ZERO = 128 };
SIMD_FUNCTION vint vpair_dot(vint acc, vint a, vint b) { return vint_add(acc, _mm256_madd_epi16(a, b)); }
SIMD_FUNCTION vint simd_sum_of_pairs(vint acc, vint inputs, vint weights) {
  return vint_add(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(inputs, weights), _mm256_set1_epi16(1)));
}
SIMD_FUNCTION vint simd_dot_signs(vint acc, vint input, vint weights) {
  __m256i distance = _mm256_xor_si256(input, _mm256_set1_epi8(-128));
  return simd_sum_of_pairs(acc, _mm256_abs_epi8(distance), _mm256_sign_epi8(weights, distance));
}
/* Bytes 0 and 2 of each lane as 16-bit numbers, then 1 and 3. Compilers find the same of other products again. */
SIMD_FUNCTION vint vdot(vint acc, vint input, vint weights, int form) {
  if (form == DOT_PAIRS) return simd_sum_of_pairs(acc, input, weights);
  if (form == DOT_SIGNS) return simd_dot_signs(acc, input, weights);
  __m256i even = _mm256_and_si256(input, _mm256_set1_epi16(0xff)), odd = _mm256_srli_epi16(input, 8);
  __m256i even_weights = _mm256_srai_epi16(_mm256_slli_epi16(weights, 8), 8);
  __m256i odd_weights = _mm256_srai_epi16(weights, 8);
  return vint_add(vint_add(acc, _mm256_madd_epi16(even, even_weights)), _mm256_madd_epi16(odd, odd_weights));
}
#endif

#endif
