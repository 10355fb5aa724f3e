/* SPDX-License-Identifier: MIT */
/*
 * Products of up to 32 rows of bf16 with a packed panel by matrices in registers (simd/matrices.h).
 *
 * Rows come in tiles of up to MATRIX_ROWS, and are rounded to bf16 before: halves to even, NaN stays NaN, and an
 * instruction takes what is no normal number for zero. A panel holds `vectors` * LANES columns, packed
 * [depth / 2][vectors][LANES][2]; its depth is a multiple of MATRIX_DEPTH, and what is past the last step counts for
 * nothing where both it and the row are zeros there. LANES is MATRIX_COLUMNS: no other target has such kernels.
 *
 * A sum runs over the depth in order, a matrix after the other, whatever rows are beside it: it has the same bits in
 * each blocking of rows and panels.
 *
 * `tiles` and `vectors` must be constants once inlined.
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

/* Stores the vector's numbers as bf16. */
SIMD_FUNCTION void store_rounded(uint16_t *to, vec x) {
  matrix_words bits = (matrix_words)x;
  matrix_words rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16, quiet = bits >> 16 | 0x40u;
  matrix_words is_nan = (matrix_words)((bits & 0x7fffffffu) > 0x7f800000u);
  *(matrix_halves *)(void *)to = __builtin_convertvector((quiet & is_nan) | (rounded & ~is_nan), matrix_halves);
}

/* All that matrices hold is lost where the rows are others than before. */
SIMD_FUNCTION void matrices_of_rows(matrices *m, int rows) {
  if (m->rows != rows) matrices_begin(m, rows);
}

/* Sums from, or to, floats that `stride` bytes lie between rows of: tile t's are tile_floats behind those of the one
 * before it. */
SIMD_FUNCTION void matrices_load_sums(matrices *m, int tiles, int vectors, const float *from, int64_t tile_floats,
                                      int64_t stride) {
#pragma clang loop unroll(full)
  for (int t = 0; t < tiles; t++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++)
      matrices_load(m, t * vectors + v, from + t * tile_floats + v * MATRIX_COLUMNS, stride);
  }
}
SIMD_FUNCTION void matrices_store_sums(matrices *m, int tiles, int vectors, float *to, int64_t tile_floats,
                                       int64_t stride) {
#pragma clang loop unroll(full)
  for (int t = 0; t < tiles; t++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++)
      matrices_store(m, t * vectors + v, to + t * tile_floats + v * MATRIX_COLUMNS, stride);
  }
}
SIMD_FUNCTION void matrices_zero_sums(matrices *m, int count) {
#pragma clang loop unroll(full)
  for (int i = 0; i < count; i++) matrices_zero(m, i);
}

/* Where the rows of tiles stand: the first one of tile t at a + t * tile; the elements of the next depth are `ahead`
 * behind, and a row is `row` bytes behind the one before it. */
typedef struct MatrixRows {
  const uint16_t *a;
  int64_t tile, ahead, row;
} MatrixRows;

/* Sums t * vectors + v += tile t times vector v of the panel, of which a row has panel_vectors. */
SIMD_FUNCTION void matrices_multiply(matrices *m, int tiles, int vectors, const MatrixRows *rows, const uint16_t *panel,
                                     int panel_vectors, int64_t depth) {
  const int64_t panel_row = panel_vectors * MATRIX_BYTES;
  const uint16_t *a = rows->a;
#pragma clang loop unroll(disable)
  for (int64_t k = 0; k < depth; k += MATRIX_DEPTH, a += rows->ahead, panel += MATRIX_ROWS * panel_row / 2) {
#pragma clang loop unroll(full)
    for (int t = 0; t < tiles; t++) matrices_load(m, 4 + t, a + t * rows->tile, rows->row);
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) {
      matrices_load(m, 6 + v % 2, panel + v * MATRIX_DEPTH, panel_row);
#pragma clang loop unroll(full)
      for (int t = 0; t < tiles; t++) matrices_dot_bf16(m, t * vectors + v, 4 + t, 6 + v % 2);
    }
  }
}

#endif
