/* SPDX-License-Identifier: MIT */
/* The SIMD vocabulary for SSE4.2, which has no FMA: vfma rounds twice. simd.h defines each operation. */
#ifndef SIMD_SSE42_H
#define SIMD_SSE42_H

#include <immintrin.h>

#define SIMD_TWO_OPERANDS
#define SIMD_FEW_REGISTERS

enum { LANES = 4 };
typedef __m128 vec;
typedef __m128 vmask; /* a lane is all ones or all zeros */

SIMD_FUNCTION vec vzero(void) { return _mm_setzero_ps(); }
SIMD_FUNCTION vec vset(float x) { return _mm_set1_ps(x); }
SIMD_FUNCTION vec vload(const float *p) { return _mm_loadu_ps(p); }
SIMD_FUNCTION void vstore(float *p, vec v) { _mm_storeu_ps(p, v); }
SIMD_FUNCTION vec vbroadcast_load(const float *p) { return _mm_set1_ps(*p); }
SIMD_FUNCTION vmask vmask_first(int n) {
  return _mm_castsi128_ps(_mm_cmpgt_epi32(_mm_set1_epi32(n), _mm_setr_epi32(0, 1, 2, 3)));
}
/* There is no masked load or store: a pair if n has one, then a single float. */
SIMD_FUNCTION vec vload_n(const float *p, int n) {
  if (n >= LANES) return vload(p);
  vec last = n & 1 ? _mm_load_ss(p + (n & 2)) : vzero();
  return n & 2 ? _mm_movelh_ps(_mm_loadl_pi(vzero(), (const __m64 *)(const void *)p), last) : last;
}
SIMD_FUNCTION void vstore_n(float *p, vec v, int n) {
  if (n >= LANES) vstore(p, v);
  if (n & 2) _mm_storel_pi((__m64 *)(void *)p, v);
  if (n & 1) _mm_store_ss(p + (n & 2), n & 2 ? _mm_movehl_ps(v, v) : v);
}
SIMD_FUNCTION vec vload_even(const float *p) { return _mm_shuffle_ps(vload(p), vload(p + 4), 0x88); }
SIMD_FUNCTION void vprefetch(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }

SIMD_FUNCTION vec vadd(vec a, vec b) { return _mm_add_ps(a, b); }
SIMD_FUNCTION vec vsub(vec a, vec b) { return _mm_sub_ps(a, b); }
SIMD_FUNCTION vec vmul(vec a, vec b) { return _mm_mul_ps(a, b); }
SIMD_FUNCTION vec vdiv(vec a, vec b) { return _mm_div_ps(a, b); }
SIMD_FUNCTION vec vsqrt(vec v) { return _mm_sqrt_ps(v); }
SIMD_FUNCTION vec vfma(vec acc, vec a, vec b) { return _mm_add_ps(acc, _mm_mul_ps(a, b)); }
SIMD_FUNCTION vec vfnma(vec acc, vec a, vec b) { return _mm_sub_ps(acc, _mm_mul_ps(a, b)); }

SIMD_FUNCTION vmask vlt(vec a, vec b) { return _mm_cmplt_ps(a, b); }
SIMD_FUNCTION vmask vle(vec a, vec b) { return _mm_cmple_ps(a, b); }
SIMD_FUNCTION vmask vgt(vec a, vec b) { return _mm_cmpgt_ps(a, b); }
SIMD_FUNCTION vmask vge(vec a, vec b) { return _mm_cmpge_ps(a, b); }
SIMD_FUNCTION vmask veq(vec a, vec b) { return _mm_cmpeq_ps(a, b); }
SIMD_FUNCTION vmask vne(vec a, vec b) { return _mm_cmpneq_ps(a, b); }
SIMD_FUNCTION vmask visnan(vec v) { return _mm_cmpunord_ps(v, v); }
SIMD_FUNCTION vmask vand(vmask a, vmask b) { return _mm_and_ps(a, b); }
SIMD_FUNCTION vmask vor(vmask a, vmask b) { return _mm_or_ps(a, b); }
SIMD_FUNCTION vmask vnot(vmask m) { return _mm_xor_ps(m, _mm_castsi128_ps(_mm_set1_epi32(-1))); }
SIMD_FUNCTION int vany(vmask m) { return _mm_movemask_ps(m) != 0; }
SIMD_FUNCTION vec vselect(vmask m, vec a, vec b) { return _mm_blendv_ps(b, a, m); }

/* MINPS and MAXPS return their second operand if either is NaN. */
SIMD_FUNCTION vec vmin_bound(vec v, vec bound) { return _mm_min_ps(bound, v); }
SIMD_FUNCTION vec vmax_bound(vec v, vec bound) { return _mm_max_ps(bound, v); }
SIMD_FUNCTION vec vmin(vec a, vec b) { return vselect(visnan(a), a, _mm_min_ps(a, b)); }
SIMD_FUNCTION vec vmax(vec a, vec b) { return vselect(visnan(a), a, _mm_max_ps(a, b)); }

SIMD_FUNCTION vec vneg(vec v) { return _mm_xor_ps(v, _mm_set1_ps(-0.0f)); }
SIMD_FUNCTION vec vabs(vec v) { return _mm_andnot_ps(_mm_set1_ps(-0.0f), v); }
SIMD_FUNCTION vec vcopysign(vec v, vec s) { return _mm_or_ps(vabs(v), _mm_and_ps(s, _mm_set1_ps(-0.0f))); }

SIMD_FUNCTION vec vfloor(vec v) { return _mm_round_ps(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
SIMD_FUNCTION vec vceil(vec v) { return _mm_round_ps(v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
SIMD_FUNCTION vec vround(vec v) { return _mm_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

/* n + 1.5 * 2^23 has n in its low mantissa bits; the shift moves it to the exponent's place. */
SIMD_FUNCTION vec vscale2(vec v, vec t) {
  __m128i exponent = _mm_slli_epi32(_mm_castps_si128(t), 23);
  return _mm_castsi128_ps(_mm_add_epi32(_mm_castps_si128(v), exponent));
}
SIMD_FUNCTION vec vexponent(vec v) {
  __m128i biased = _mm_srli_epi32(_mm_castps_si128(v), 23);
  return _mm_cvtepi32_ps(_mm_sub_epi32(biased, _mm_set1_epi32(127)));
}
SIMD_FUNCTION vec vmantissa(vec v) {
  __m128i fraction = _mm_and_si128(_mm_castps_si128(v), _mm_set1_epi32(0x007fffff));
  return _mm_castsi128_ps(_mm_or_si128(fraction, _mm_set1_epi32(0x3f800000)));
}

SIMD_FUNCTION float vhsum(vec v) {
  vec by2 = _mm_add_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
}
SIMD_FUNCTION float vhmin(vec v) {
  if (vany(visnan(v))) return __builtin_nanf("");
  vec by2 = _mm_min_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_min_ss(by2, _mm_movehdup_ps(by2)));
}
SIMD_FUNCTION float vhmax(vec v) {
  if (vany(visnan(v))) return __builtin_nanf("");
  vec by2 = _mm_max_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_max_ss(by2, _mm_movehdup_ps(by2)));
}

#endif
