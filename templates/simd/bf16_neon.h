/* SPDX-License-Identifier: MIT */
/* Products of bf16 for AArch64 NEON with BFMMLA. bf16.h defines each operation. */
#ifndef SIMD_BF16_NEON_H
#define SIMD_BF16_NEON_H

enum { BF16_ROWS = 2, BF16_DEPTH = 4, BF16_STEPS = 1 };

typedef struct vbf16_tile {
  vec columns[2]; /* of each half: both columns of the first row, then those of the second */
} vbf16_tile;
typedef bfloat16x8_t vbf16_inputs, vbf16_rounded;
typedef struct vbf16_weights {
  bfloat16x8_t left, right; /* of two columns each */
} vbf16_weights;
SIMD_FUNCTION vbf16_tile vbf16_tile_of_rows(vec a, vec b) {
  float64x2_t p = vreinterpretq_f64_f32(a), q = vreinterpretq_f64_f32(b);
  return (vbf16_tile){{vreinterpretq_f32_f64(vzip1q_f64(p, q)), vreinterpretq_f32_f64(vzip2q_f64(p, q))}};
}
SIMD_FUNCTION vec vbf16_tile_row(vbf16_tile tile, int i) {
  float64x2_t a = vreinterpretq_f64_f32(tile.columns[0]), b = vreinterpretq_f64_f32(tile.columns[1]);
  return vreinterpretq_f32_f64(i ? vzip2q_f64(a, b) : vzip1q_f64(a, b));
}
SIMD_FUNCTION vbf16_rounded vbf16_round(const float *p, const float *q) {
  return vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(vld1q_f32(p)), vld1q_f32(q));
}
SIMD_FUNCTION vbf16_inputs vbf16_step(const vbf16_rounded *x, int64_t i) { return x[i]; }
SIMD_FUNCTION vbf16_weights vbf16_load(const void *p) {
  const uint8_t *columns = p;
  return (vbf16_weights){vreinterpretq_bf16_u8(vld1q_u8(columns)), vreinterpretq_bf16_u8(vld1q_u8(columns + 16))};
}
SIMD_FUNCTION vbf16_tile vbf16_dot(vbf16_tile tile, vbf16_inputs inputs, vbf16_weights weights) {
  tile.columns[0] = vbfmmlaq_f32(tile.columns[0], inputs, weights.left);
  tile.columns[1] = vbfmmlaq_f32(tile.columns[1], inputs, weights.right);
  return tile;
}

#endif
