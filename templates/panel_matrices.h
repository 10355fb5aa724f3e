/* SPDX-License-Identifier: MIT */
/*
 * Products of up to 32 rows of bf16, or of bytes, with a packed panel by matrices in registers (simd/matrices.h).
 *
 * Rows come in tiles of up to MATRIX_ROWS. Floats are rounded to bf16 before: halves to even, NaN stays NaN; or each is
 * the sum of three such numbers, of eight bits each, which stand in three rows below each other, so that its product
 * with a number of bf16 is as exact as one of floats. An instruction takes what is no normal number for zero. A panel
 * holds `vectors` * LANES columns, packed [depth / 2][vectors][LANES][2]; its depth is a multiple of MATRIX_DEPTH, and
 * what is past the last step counts for nothing where both it and the row are zeros there. LANES is MATRIX_COLUMNS: no
 * other target has such kernels.
 *
 * A sum runs over the depth in order, a matrix after the other, whatever rows are beside it: it has the same bits in
 * each blocking of rows and panels.
 *
 * Of bytes, rows are u8 and panels s8, packed [depth / MATRIX_BYTES][vectors][MATRIX_ROWS][LANES][4]: what an
 * instruction takes is side by side. Sums are exact, and zeros in the panel suffice past the last step.
 *
 * `tiles`, `vectors`, `parts` and `products` must be constants once inlined.
 */
#ifndef PANEL_MATRICES_H
#define PANEL_MATRICES_H

#include "kernel.h"
#include "panel.h"
#include "simd/matrices.h"
#include "simd/simd.h"

/* Steps of the depth in a matrix of bf16; sums that there are registers for. */
enum { MATRIX_DEPTH = MATRIX_BYTES / 2, MATRIX_SUMS = 4 };

typedef uint16_t matrix_halves __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
typedef uint32_t matrix_words __attribute__((vector_size(4 * LANES)));

/* The vector's numbers as bf16, in the upper halves. */
SIMD_FUNCTION matrix_words rounded_bits(vec x) {
  matrix_words bits = (matrix_words)x;
  matrix_words rounded = bits + 0x7fffu + (bits >> 16 & 1u), quiet = bits | 0x400000u;
  matrix_words is_nan = (matrix_words)((bits & 0x7fffffffu) > 0x7f800000u);
  return (quiet & is_nan) | (rounded & ~is_nan);
}

/* Stores the vector's numbers as bf16. */
SIMD_FUNCTION void store_rounded(uint16_t *to, vec x) {
  *(matrix_halves *)(void *)to = __builtin_convertvector(rounded_bits(x) >> 16, matrix_halves);
}

/* Stores the vector's numbers as sums of `parts` numbers of bf16, each `row` behind the one before it: rounded, if it
 * is one, else exactly, by three. The bits of a float are cut off, eight at a time. Of an infinite one and of NaN the
 * rest is zero. */
SIMD_FUNCTION void store_parts(uint16_t *to, int64_t row, vec x, int parts) {
  if (parts == 1) {
    store_rounded(to, x);
    return;
  }
#pragma clang loop unroll(full)
  for (int part = 0; part < parts; part++) {
    matrix_words bits = (matrix_words)x, magnitude = bits & 0x7fffffffu;
    matrix_words is_nan = (matrix_words)(magnitude > 0x7f800000u), is_finite = (matrix_words)(magnitude < 0x7f800000u);
    matrix_words half = bits >> 16 | (is_nan & 0x40u);
    *(matrix_halves *)(void *)(to + part * row) = __builtin_convertvector(half, matrix_halves);
    x = (vec)((matrix_words)vsub(x, (vec)(bits & 0xffff0000u)) & is_finite);
  }
}

/* Sums of rows are those of their parts: row m of `tile`, of `vectors` vectors, becomes the sum of rows m * parts and
 * on, the smallest parts' first. */
SIMD_FUNCTION void add_parts(float *tile, int64_t rows, int vectors, int parts) {
  for (int64_t m = 0; parts > 1 && m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) {
      const float *from = tile + (m * parts * vectors + v) * LANES;
      vec sum = vload(from + (parts - 1) * vectors * LANES);
#pragma clang loop unroll(full)
      for (int part = parts - 2; part >= 0; part--) sum = vadd(vload(from + part * vectors * LANES), sum);
      vstore(tile + (m * vectors + v) * LANES, sum);
    }
  }
}

/* The other way round: row m goes to row m * parts, and the parts behind it begin with zero. */
SIMD_FUNCTION void place_parts(float *tile, int64_t rows, int vectors, int parts) {
  for (int64_t m = rows - 1; parts > 1 && m >= 0; m--) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) {
      float *to = tile + (m * parts * vectors + v) * LANES;
      vstore(to, vload(tile + (m * vectors + v) * LANES));
#pragma clang loop unroll(full)
      for (int part = 1; part < parts; part++) vstore(to + part * vectors * LANES, vzero());
    }
  }
}

/* Sums from, or to, floats, or integers, that `stride` bytes lie between rows of: tile t's are tile_sums behind those
 * of the one before it. */
SIMD_FUNCTION void matrices_load_sums(matrices *m, int tiles, int vectors, const float *from, int64_t tile_sums,
                                      int64_t stride) {
#pragma clang loop unroll(full)
  for (int t = 0; t < tiles; t++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++)
      matrices_load(m, t * vectors + v, from + t * tile_sums + v * MATRIX_COLUMNS, stride);
  }
}
SIMD_FUNCTION void matrices_store_sums(matrices *m, int tiles, int vectors, void *to, int64_t tile_sums,
                                       int64_t stride) {
  float *sums = to;
#pragma clang loop unroll(full)
  for (int t = 0; t < tiles; t++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++)
      matrices_store(m, t * vectors + v, sums + t * tile_sums + v * MATRIX_COLUMNS, stride);
  }
}
SIMD_FUNCTION void matrices_zero_sums(matrices *m, int count) {
#pragma clang loop unroll(full)
  for (int i = 0; i < count; i++) matrices_zero(m, i);
}

/* Where the rows of tiles stand: the first one of tile t at a + t * tile; those of the next step are `ahead` behind,
 * and a row is `row` behind the one before it. All in bytes. */
typedef struct MatrixRows {
  const void *a;
  int64_t tile, ahead, row;
} MatrixRows;

/* What is multiplied: rows and panels of bf16, or rows of u8 and panels of s8. */
typedef enum MatrixProducts { OF_BF16, OF_BYTES } MatrixProducts;

/* Sums t * vectors + v += tile t times vector v of the panel, of which a row has panel_vectors, in `steps` matrices of
 * the depth. */
SIMD_FUNCTION void matrices_multiply(matrices *m, int tiles, int vectors, const MatrixRows *rows, const void *panel,
                                     int panel_vectors, int64_t steps, MatrixProducts products) {
  const int64_t panel_row = products == OF_BYTES ? MATRIX_BYTES : panel_vectors * MATRIX_BYTES;
  const int64_t vector = products == OF_BYTES ? MATRIX_ROWS * MATRIX_BYTES : MATRIX_BYTES;
  const char *a = rows->a, *weights = panel;
#pragma clang loop unroll(disable)
  for (int64_t k = 0; k < steps; k++, a += rows->ahead, weights += MATRIX_ROWS * panel_vectors * MATRIX_BYTES) {
#pragma clang loop unroll(full)
    for (int t = 0; t < tiles; t++) matrices_load(m, 4 + t, a + t * rows->tile, rows->row);
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) {
      matrices_load(m, 6 + v % 2, weights + v * vector, panel_row);
#pragma clang loop unroll(full)
      for (int t = 0; t < tiles; t++) {
        if (products == OF_BYTES)
          matrices_dot(m, t * vectors + v, 4 + t, 6 + v % 2, 0);
        else
          matrices_dot_bf16(m, t * vectors + v, 4 + t, 6 + v % 2);
      }
    }
  }
}

#endif
