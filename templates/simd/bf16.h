/* SPDX-License-Identifier: MIT */
/* clang-format off: the table */
/*
 * The vocabulary of products of bf16, behind simd.h's: BF16_ROWS rows, 1 or 2, by LANES columns, BF16_DEPTH numbers of
 * each at once. They are rounded before, BF16_STEPS times as many of a row.
 *
 *   vbf16_tile              the sums of the rows in f32, LANES columns each, in an order that the ISA likes
 *   vbf16_tile_of_rows(a, b)   -> vbf16_tile, of which a and b are the sums; of one row it does not have b
 *   vbf16_tile_row(tile, i)    -> vec, the sums of row i
 *   vbf16_round(p, q)       BF16_STEPS * BF16_DEPTH floats of the first row at p, of the second at q, rounded to bf16,
 *                           halves to even: a vbf16_rounded. Of one row q is not read
 *   vbf16_step(x, i)        of *x, the BF16_DEPTH numbers of each row that follow the first i * BF16_DEPTH ones: a
 *                           vbf16_inputs
 *   vbf16_load(p)           weights of LANES columns: BF16_DEPTH of the first, then those of the next, ...
 *   vbf16_dot(tile, inputs, weights)   adds each row's products by the weights: two steps of the depth after the other,
 *                           of which either the products or their sum are added. Each of these sums may be wrong by one
 *                           part in 2^23.
 *
 * A number, weight or sum that is not normal may count as zero. Which bits a sum has depends on the ISA, but not on the
 * place of its row or column.
 */
/* clang-format on */
#ifndef SIMD_BF16_H
#define SIMD_BF16_H

#include "simd/simd.h"

#if defined SIMD_NEON && defined __ARM_FEATURE_BF16_VECTOR_ARITHMETIC
#include "simd/bf16_neon.h"
#elif defined SIMD_AVX512 && defined __AVX512BF16__
#include "simd/bf16_avx512.h"
#else
enum { BF16_ROWS = 2, BF16_DEPTH = 4, BF16_STEPS = 1 };

typedef struct vbf16_tile {
  vec row[2];
} vbf16_tile;
typedef struct vbf16_inputs {
  float row[2][BF16_DEPTH];
} vbf16_inputs, vbf16_rounded;
typedef struct vbf16_weights {
  float depth[BF16_DEPTH][LANES];
} vbf16_weights;

typedef union simd_bits {
  float number;
  unsigned bits;
} simd_bits;
SIMD_FUNCTION float simd_round_bf16(float x) {
  simd_bits it = {x};
  if (x != x) return x;
  it.bits = (it.bits + 0x7fffu + (it.bits >> 16 & 1)) & 0xffff0000u;
  return it.number;
}

SIMD_FUNCTION vbf16_tile vbf16_tile_of_rows(vec a, vec b) { return (vbf16_tile){{a, b}}; }
SIMD_FUNCTION vec vbf16_tile_row(vbf16_tile tile, int i) { return tile.row[i]; }
SIMD_FUNCTION vbf16_rounded vbf16_round(const float *p, const float *q) {
  vbf16_rounded inputs;
  for (int i = 0; i < BF16_DEPTH; i++) {
    inputs.row[0][i] = simd_round_bf16(p[i]);
    inputs.row[1][i] = simd_round_bf16(q[i]);
  }
  return inputs;
}
SIMD_FUNCTION vbf16_inputs vbf16_step(const vbf16_rounded *x, int64_t i) { return x[i]; }
SIMD_FUNCTION vbf16_weights vbf16_load(const void *p) {
  const unsigned short *halves = p;
  vbf16_weights weights;
  for (int i = 0; i < BF16_DEPTH * LANES; i++) {
    simd_bits it = {.bits = (unsigned)halves[i] << 16};
    weights.depth[i % BF16_DEPTH][i / BF16_DEPTH] = it.number;
  }
  return weights;
}
SIMD_FUNCTION vbf16_tile vbf16_dot(vbf16_tile tile, vbf16_inputs inputs, vbf16_weights weights) {
  vec columns[BF16_DEPTH];
  for (int i = 0; i < BF16_DEPTH; i++) columns[i] = vload(weights.depth[i]);
  for (int m = 0; m < 2; m++) {
    for (int i = 0; i < BF16_DEPTH; i += 2) {
      vec first = vmul(vset(inputs.row[m][i]), columns[i]);
      tile.row[m] = vadd(tile.row[m], vfma(first, vset(inputs.row[m][i + 1]), columns[i + 1]));
    }
  }
  return tile;
}
#endif

#endif
