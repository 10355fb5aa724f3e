/* SPDX-License-Identifier: MIT */
/*
 * The product of a block of rows with a packed panel of bf16, of CPUs that multiply two rows by two columns of bf16 at
 * once (simd/bf16.h). The rows are of f32, and rounded to bf16 as they come: each panel rounds them anew, which costs
 * two instructions for each 2 * `vectors` products.
 *
 * A panel is packed [depth / 4][vectors][LANES][4], its last steps filled with zeros. Every sum runs over the depth in
 * order, by fours, whether its row has another beside it or not, so results do not depend on the blocking of rows and
 * panels. A row without another counts as both of a tile.
 *
 * `rows` and `vectors` must be constants once inlined.
 */
#ifndef PANEL_BF16_H
#define PANEL_BF16_H

#include "panel.h"
#include "simd/bf16.h"

typedef vbf16_tile Bf16Tiles[PANEL_VECTORS];

/* The row that shares a tile with the even row m. */
static inline int beside_row(int m, int rows) { return m + 1 < rows ? m + 1 : m; }

SIMD_FUNCTION void bf16_tiles_dot(Bf16Tiles *tiles, int rows, int vectors, const vbf16_inputs *x, const char *panel) {
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) {
    const char *columns = panel + v * BF16_DEPTH * LANES * 2;
    vbf16_weights left = vbf16_load(columns), right = vbf16_load(columns + BF16_DEPTH * LANES);
#pragma clang loop unroll(full)
    for (int m = 0; m < rows; m += 2) tiles[m / 2][v] = vbf16_dot(tiles[m / 2][v], x[m / 2], left, right);
  }
}

/* The next `count` elements of a row, up to BF16_DEPTH, with zeros behind them. */
SIMD_FUNCTION void bf16_gather(float *to, const float *a, int64_t a_depth, int64_t count) {
#pragma clang loop unroll(full)
  for (int i = 0; i < BF16_DEPTH; i++) to[i] = i < count ? a[i * a_depth] : 0;
}

/* `count` steps, of rows whose elements do not stand side by side, or are fewer than a tile takes. */
SIMD_FUNCTION void bf16_tiles_gathered(Bf16Tiles *tiles, int rows, int vectors, const float *a, int64_t a_row,
                                       int64_t a_depth, const char *panel, int64_t count) {
  vbf16_inputs x[PANEL_ROWS / 2];
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m += 2) {
    float first[BF16_DEPTH], second[BF16_DEPTH];
    bf16_gather(first, a + m * a_row, a_depth, count);
    bf16_gather(second, a + beside_row(m, rows) * a_row, a_depth, count);
    x[m / 2] = vbf16_round(first, second);
  }
  bf16_tiles_dot(tiles, rows, vectors, x, panel);
}

SIMD_FUNCTION void bf16_tiles_side_by_side(Bf16Tiles *tiles, int rows, int vectors, const float *a, int64_t a_row,
                                           const char *panel) {
  vbf16_inputs x[PANEL_ROWS / 2];
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m += 2) x[m / 2] = vbf16_round(a + m * a_row, a + beside_row(m, rows) * a_row);
  bf16_tiles_dot(tiles, rows, vectors, x, panel);
}

/* sums[m][v] += row m of A times the panel. A's element (m, k) stands at a[m * a_row + k * a_depth]. */
SIMD_FUNCTION void bf16_multiply(PanelRow *sums, int rows, int vectors, const float *a, int64_t a_row, int64_t a_depth,
                                 const void *panel, int64_t depth) {
  Bf16Tiles tiles[PANEL_ROWS / 2];
  const char *weights = panel;
  const int64_t step = (int64_t)vectors * BF16_DEPTH * LANES * 2; /* bytes */
  int64_t k = 0;
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m += 2) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) tiles[m / 2][v] = vbf16_tile_of_rows(sums[m][v], sums[beside_row(m, rows)][v]);
  }
  if (a_depth == 1) {
#pragma clang loop unroll(disable)
    for (; k + BF16_DEPTH <= depth; k += BF16_DEPTH, weights += step)
      bf16_tiles_side_by_side(tiles, rows, vectors, a + k, a_row, weights);
  }
#pragma clang loop unroll(disable)
  for (; k < depth; k += BF16_DEPTH, weights += step)
    bf16_tiles_gathered(tiles, rows, vectors, a + k * a_depth, a_row, a_depth, weights, depth - k);
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) sums[m][v] = vbf16_tile_row(tiles[m / 2][v], m % 2);
  }
}

#endif
