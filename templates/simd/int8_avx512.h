/* SPDX-License-Identifier: MIT */
/* Products of 8-bit numbers for AVX-512, with VNNI or without. int8.h defines each operation. */
#ifndef SIMD_INT8_AVX512_H
#define SIMD_INT8_AVX512_H

enum { DOT_ZERO = 0 };
typedef __m512i vint;

SIMD_FUNCTION vint vint_zero(void) { return _mm512_setzero_si512(); }
SIMD_FUNCTION vint vint_set(int x) { return _mm512_set1_epi32(x); }
SIMD_FUNCTION vint vint_load(const void *p) { return _mm512_loadu_si512(p); }
SIMD_FUNCTION void vint_store(void *p, vint v) { _mm512_storeu_si512(p, v); }
SIMD_FUNCTION vint vint_load_n(const void *p, int n) { return _mm512_maskz_loadu_epi32(vmask_first(n), p); }
SIMD_FUNCTION void vint_store_n(void *p, vint v, int n) { _mm512_mask_storeu_epi32(p, vmask_first(n), v); }
SIMD_FUNCTION vint vint_add(vint a, vint b) { return _mm512_add_epi32(a, b); }
SIMD_FUNCTION vint vint_sub(vint a, vint b) { return _mm512_sub_epi32(a, b); }
SIMD_FUNCTION vint vint_mul(vint a, vint b) { return _mm512_mullo_epi32(a, b); }
SIMD_FUNCTION vint vint_shift(vint v, int n) { return _mm512_slli_epi32(v, (unsigned)n); }
SIMD_FUNCTION vint vint_shift_right(vint v, int n) { return _mm512_srai_epi32(v, (unsigned)n); }
SIMD_FUNCTION vint vint_min(vint a, vint b) { return _mm512_min_epi32(a, b); }
SIMD_FUNCTION vint vint_max(vint a, vint b) { return _mm512_max_epi32(a, b); }

SIMD_FUNCTION vec vint_to_float(vint v) { return _mm512_cvtepi32_ps(v); }
SIMD_FUNCTION vint vround_to_int(vec v) {
  return _mm512_cvt_roundps_epi32(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

SIMD_FUNCTION vint vint_load_u8(const void *p) { return _mm512_cvtepu8_epi32(_mm_loadu_si128(p)); }
SIMD_FUNCTION vint vint_load_s8(const void *p) { return _mm512_cvtepi8_epi32(_mm_loadu_si128(p)); }
SIMD_FUNCTION vint vint_load_u8_n(const void *p, int n) {
  return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(vmask_first(n), p));
}
SIMD_FUNCTION vint vint_load_s8_n(const void *p, int n) {
  return _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(vmask_first(n), p));
}
/* The narrowing conversion to u8 takes its operand as unsigned. */
SIMD_FUNCTION __m128i simd_to_u8(vint v) { return _mm512_cvtusepi32_epi8(vint_max(v, vint_zero())); }
SIMD_FUNCTION void vint_store_u8(void *p, vint v) { _mm_storeu_si128(p, simd_to_u8(v)); }
SIMD_FUNCTION void vint_store_s8(void *p, vint v) { _mm_storeu_si128(p, _mm512_cvtsepi32_epi8(v)); }
SIMD_FUNCTION void vint_store_u8_n(void *p, vint v, int n) { _mm_mask_storeu_epi8(p, vmask_first(n), simd_to_u8(v)); }
SIMD_FUNCTION void vint_store_s8_n(void *p, vint v, int n) {
  _mm_mask_storeu_epi8(p, vmask_first(n), _mm512_cvtsepi32_epi8(v));
}
/* Packing works within 128 bits, so that the four lanes of a vector come together last. */
SIMD_FUNCTION __m512i simd_s16(vint a, vint b) { return _mm512_packs_epi32(a, b); }
SIMD_FUNCTION void simd_store_turned(void *p, __m512i bytes) {
  const __m512i turn = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  _mm512_storeu_si512(p, _mm512_permutexvar_epi32(turn, bytes));
}
SIMD_FUNCTION void vint_store4_u8(void *p, vint a, vint b, vint c, vint d) {
  simd_store_turned(p, _mm512_packus_epi16(simd_s16(a, b), simd_s16(c, d)));
}
SIMD_FUNCTION void vint_store4_s8(void *p, vint a, vint b, vint c, vint d) {
  simd_store_turned(p, _mm512_packs_epi16(simd_s16(a, b), simd_s16(c, d)));
}

SIMD_FUNCTION vint vpair_inputs(const void *p, const void *q, int is_signed) {
  __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(p)), _mm_loadu_si128(q), 1);
  return _mm512_cvtepu8_epi16(is_signed ? _mm256_xor_si256(bytes, _mm256_set1_epi8(-128)) : bytes);
}
SIMD_FUNCTION vint vpair_weights(const void *p) { return _mm512_cvtepi8_epi16(_mm256_loadu_si256(p)); }
SIMD_FUNCTION vint vpair_add(vint a, vint b) { return _mm512_add_epi16(a, b); }
SIMD_FUNCTION vint vpair_sub(vint a, vint b) { return _mm512_sub_epi16(a, b); }
SIMD_FUNCTION vint vpair_shift(vint v, int n) { return _mm512_slli_epi16(v, (unsigned)n); }
SIMD_FUNCTION void vpair_store_first(void *p, vint v) { _mm256_storeu_si256(p, _mm512_castsi512_si256(v)); }

#ifdef __AVX512VNNI__
enum { DOT_NATIVE = 1, DOT_SIGNS_ZERO = DOT_ZERO };
SIMD_FUNCTION vint vpair_dot(vint acc, vint a, vint b) { return _mm512_dpwssd_epi32(acc, a, b); }
SIMD_FUNCTION vint vdot(vint acc, vint input, vint weights, int form) {
  (void)form;
  return _mm512_dpbusd_epi32(acc, input, weights);
}
#else
enum { DOT_NATIVE = 0, DOT_SIGNS_ZERO = 128 };
SIMD_FUNCTION vint vpair_dot(vint acc, vint a, vint b) { return vint_add(acc, _mm512_madd_epi16(a, b)); }
SIMD_FUNCTION vint simd_sum_of_pairs(vint acc, vint inputs, vint weights) {
  return vint_add(acc, _mm512_madd_epi16(_mm512_maddubs_epi16(inputs, weights), _mm512_set1_epi16(1)));
}
SIMD_FUNCTION vint simd_dot_signs(vint acc, vint input, vint weights) {
  __m512i distance = _mm512_xor_si512(input, _mm512_set1_epi8(-128));
  __mmask64 negative = _mm512_movepi8_mask(distance);
  __m512i with_signs = _mm512_mask_sub_epi8(weights, negative, _mm512_setzero_si512(), weights);
  return simd_sum_of_pairs(acc, _mm512_abs_epi8(distance), with_signs);
}
/* Bytes 0 and 2 of each lane as 16-bit numbers, then 1 and 3. Compilers find the same of other products again. */
SIMD_FUNCTION vint vdot(vint acc, vint input, vint weights, int form) {
  if (form == DOT_PAIRS) return simd_sum_of_pairs(acc, input, weights);
  if (form == DOT_SIGNS) return simd_dot_signs(acc, input, weights);
  __m512i even = _mm512_and_si512(input, _mm512_set1_epi16(0xff)), odd = _mm512_srli_epi16(input, 8);
  __m512i even_weights = _mm512_srai_epi16(_mm512_slli_epi16(weights, 8), 8);
  __m512i odd_weights = _mm512_srai_epi16(weights, 8);
  return vint_add(vint_add(acc, _mm512_madd_epi16(even, even_weights)), _mm512_madd_epi16(odd, odd_weights));
}
#endif

#endif
