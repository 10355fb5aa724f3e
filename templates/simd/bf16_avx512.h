/* SPDX-License-Identifier: MIT */
/*
 * Products of bf16 for AVX512-BF16: VDPBF16PS adds the product of the second of two numbers, then that of the first,
 * each as a fused multiply-add (Intel's manual, volume 2). bf16.h defines each operation.
 */
#ifndef SIMD_BF16_AVX512_H
#define SIMD_BF16_AVX512_H

enum { BF16_ROWS = 1, BF16_DEPTH = 2, BF16_STEPS = 16 };

typedef vec vbf16_tile;
typedef __m512i vbf16_inputs, vbf16_weights;
typedef __m512bh simd_pairs __attribute__((aligned(2), may_alias));
typedef struct vbf16_rounded { /* in memory: a load broadcasts a pair for nothing */
  int32_t pairs[BF16_STEPS];
} vbf16_rounded;
SIMD_FUNCTION vbf16_tile vbf16_tile_of_rows(vec a, vec b) { return (void)b, a; }
SIMD_FUNCTION vec vbf16_tile_row(vbf16_tile tile, int i) { return (void)i, tile; }
SIMD_FUNCTION vbf16_rounded vbf16_round(const float *p, const float *q) {
  vbf16_rounded x;
  (void)q;
  *(simd_pairs *)(void *)x.pairs = _mm512_cvtne2ps_pbh(vload(p + LANES), vload(p));
  return x;
}
SIMD_FUNCTION vbf16_inputs vbf16_step(const vbf16_rounded *x, int64_t i) { return _mm512_set1_epi32(x->pairs[i]); }
SIMD_FUNCTION vbf16_weights vbf16_load(const void *p) { return _mm512_loadu_si512(p); }
SIMD_FUNCTION vbf16_tile vbf16_dot(vbf16_tile tile, vbf16_inputs inputs, vbf16_weights weights) {
  return _mm512_dpbf16_ps(tile, (__m512bh)inputs, (__m512bh)weights);
}

#endif
