/* SPDX-License-Identifier: MIT */
/* Products of 8-bit numbers for SSE4.2. int8.h defines each operation. */
#ifndef SIMD_INT8_SSE42_H
#define SIMD_INT8_SSE42_H

enum { DOT_ZERO = 0, DOT_NATIVE = 0, DOT_SIGNS_ZERO = 128 };
typedef __m128i vint;

SIMD_FUNCTION vint vint_zero(void) { return _mm_setzero_si128(); }
SIMD_FUNCTION vint vint_set(int x) { return _mm_set1_epi32(x); }
SIMD_FUNCTION vint vint_load(const void *p) { return _mm_loadu_si128(p); }
SIMD_FUNCTION void vint_store(void *p, vint v) { _mm_storeu_si128(p, v); }
SIMD_FUNCTION vint vint_load_n(const void *p, int n) { return _mm_castps_si128(vload_n(p, n)); }
SIMD_FUNCTION void vint_store_n(void *p, vint v, int n) { vstore_n(p, _mm_castsi128_ps(v), n); }
SIMD_FUNCTION vint vint_add(vint a, vint b) { return _mm_add_epi32(a, b); }
SIMD_FUNCTION vint vint_sub(vint a, vint b) { return _mm_sub_epi32(a, b); }
SIMD_FUNCTION vint vint_mul(vint a, vint b) { return _mm_mullo_epi32(a, b); }
SIMD_FUNCTION vint vint_shift(vint v, int n) { return _mm_slli_epi32(v, n); }
SIMD_FUNCTION vint vint_shift_right(vint v, int n) { return _mm_srai_epi32(v, n); }
SIMD_FUNCTION vint vint_min(vint a, vint b) { return _mm_min_epi32(a, b); }
SIMD_FUNCTION vint vint_max(vint a, vint b) { return _mm_max_epi32(a, b); }

SIMD_FUNCTION vec vint_to_float(vint v) { return _mm_cvtepi32_ps(v); }
SIMD_FUNCTION vint vround_to_int(vec v) { return _mm_cvtps_epi32(vround(v)); }

SIMD_FUNCTION __m128i simd_four(unsigned word) { return _mm_cvtsi32_si128((int)word); }
SIMD_FUNCTION vint vint_load_u8(const void *p) { return _mm_cvtepu8_epi32(simd_four(*(const simd_word *)p)); }
SIMD_FUNCTION vint vint_load_s8(const void *p) { return _mm_cvtepi8_epi32(simd_four(*(const simd_word *)p)); }
SIMD_FUNCTION vint vint_load_u8_n(const void *p, int n) {
  return _mm_cvtepu8_epi32(simd_four((unsigned)simd_bytes_load(p, n)));
}
SIMD_FUNCTION vint vint_load_s8_n(const void *p, int n) {
  return _mm_cvtepi8_epi32(simd_four((unsigned)simd_bytes_load(p, n)));
}
SIMD_FUNCTION unsigned simd_to_u8(vint v) {
  __m128i s16 = _mm_packs_epi32(v, v);
  return (unsigned)_mm_cvtsi128_si32(_mm_packus_epi16(s16, s16));
}
SIMD_FUNCTION unsigned simd_to_s8(vint v) {
  __m128i s16 = _mm_packs_epi32(v, v);
  return (unsigned)_mm_cvtsi128_si32(_mm_packs_epi16(s16, s16));
}
SIMD_FUNCTION void vint_store_u8(void *p, vint v) { *(simd_word *)p = simd_to_u8(v); }
SIMD_FUNCTION void vint_store_s8(void *p, vint v) { *(simd_word *)p = simd_to_s8(v); }
SIMD_FUNCTION void vint_store_u8_n(void *p, vint v, int n) { simd_bytes_store(p, simd_to_u8(v), n); }
SIMD_FUNCTION void vint_store_s8_n(void *p, vint v, int n) { simd_bytes_store(p, simd_to_s8(v), n); }
SIMD_FUNCTION void vint_store4_u8(void *p, vint a, vint b, vint c, vint d) {
  _mm_storeu_si128(p, _mm_packus_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d)));
}
SIMD_FUNCTION void vint_store4_s8(void *p, vint a, vint b, vint c, vint d) {
  _mm_storeu_si128(p, _mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d)));
}

SIMD_FUNCTION vint vpair_inputs(const void *p, const void *q, int is_signed) {
  __m128i bytes = _mm_insert_epi32(simd_four(*(const simd_word *)p), (int)*(const simd_word *)q, 1);
  return _mm_cvtepu8_epi16(is_signed ? _mm_xor_si128(bytes, _mm_set1_epi8(-128)) : bytes);
}
SIMD_FUNCTION vint vpair_weights(const void *p) { return _mm_cvtepi8_epi16(_mm_loadl_epi64(p)); }
SIMD_FUNCTION vint vpair_add(vint a, vint b) { return _mm_add_epi16(a, b); }
SIMD_FUNCTION vint vpair_sub(vint a, vint b) { return _mm_sub_epi16(a, b); }
SIMD_FUNCTION vint vpair_shift(vint v, int n) { return _mm_slli_epi16(v, n); }
SIMD_FUNCTION void vpair_store_first(void *p, vint v) { _mm_storel_epi64(p, v); }
SIMD_FUNCTION vint vpair_dot(vint acc, vint a, vint b) { return vint_add(acc, _mm_madd_epi16(a, b)); }

SIMD_FUNCTION vint simd_sum_of_pairs(vint acc, vint inputs, vint weights) {
  return vint_add(acc, _mm_madd_epi16(_mm_maddubs_epi16(inputs, weights), _mm_set1_epi16(1)));
}
SIMD_FUNCTION vint simd_dot_signs(vint acc, vint input, vint weights) {
  __m128i distance = _mm_xor_si128(input, _mm_set1_epi8(-128));
  return simd_sum_of_pairs(acc, _mm_abs_epi8(distance), _mm_sign_epi8(weights, distance));
}
/* Bytes 0 and 2 of each lane as 16-bit numbers, then 1 and 3. Compilers find the same of other products again. */
SIMD_FUNCTION vint vdot(vint acc, vint input, vint weights, int form) {
  if (form == DOT_PAIRS) return simd_sum_of_pairs(acc, input, weights);
  if (form == DOT_SIGNS) return simd_dot_signs(acc, input, weights);
  __m128i even = _mm_and_si128(input, _mm_set1_epi16(0xff)), odd = _mm_srli_epi16(input, 8);
  __m128i even_weights = _mm_srai_epi16(_mm_slli_epi16(weights, 8), 8), odd_weights = _mm_srai_epi16(weights, 8);
  return vint_add(vint_add(acc, _mm_madd_epi16(even, even_weights)), _mm_madd_epi16(odd, odd_weights));
}

#endif
