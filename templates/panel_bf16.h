/* SPDX-License-Identifier: MIT */
/*
 * The product of a block of rows with a packed panel of bf16, of CPUs that multiply one or two rows by some columns of
 * bf16 at once (simd/bf16.h). The rows are of f32, and rounded to bf16 as they come: each panel rounds them anew, which
 * costs two instructions for each 2 * `vectors` products of NEON's, four for each 16 * `vectors` of AVX-512's.
 *
 * A panel is packed [depth / BF16_DEPTH][vectors][LANES][BF16_DEPTH], its last steps filled with zeros. Every sum runs
 * over the depth in order, by BF16_DEPTH, whether its row has another beside it or not, so results do not depend on the
 * blocking of rows and panels. A row without another counts as both of a tile of two.
 *
 * `rows` and `vectors` must be constants once inlined.
 */
#ifndef PANEL_BF16_H
#define PANEL_BF16_H

#include "panel.h"
#include "simd/bf16.h"

typedef vbf16_tile Bf16Tiles[PANEL_VECTORS];

/* Elements of a row that are rounded at once. */
enum { BF16_ROUNDED = BF16_STEPS * BF16_DEPTH };

/* The row that shares a tile with row m, the tile's first. */
static inline int beside_row(int m, int rows) { return m + BF16_ROWS - 1 < rows ? m + BF16_ROWS - 1 : m; }

/* Of tiles of one row all weights of a step are in registers, and inputs come after each other; of two rows it is the
 * other way round. */
SIMD_FUNCTION void bf16_tiles_dot(Bf16Tiles *tiles, int rows, int vectors, const vbf16_rounded *x, int64_t steps,
                                  const char *panel) {
  const int count = (rows + BF16_ROWS - 1) / BF16_ROWS;
#pragma clang loop unroll(disable)
  for (int64_t i = 0; i < steps; i++, panel += vectors * BF16_DEPTH * LANES * 2) {
#pragma clang loop unroll(full)
    for (int at = 0; at < count * vectors; at++) {
      const int t = BF16_ROWS == 1 ? at / vectors : at % count, v = BF16_ROWS == 1 ? at % vectors : at / count;
      vbf16_weights weights = vbf16_load(panel + v * BF16_DEPTH * LANES * 2);
      tiles[t][v] = vbf16_dot(tiles[t][v], vbf16_step(&x[t], i), weights);
    }
  }
}

/* Steps that `count` elements are, of those that are rounded at once. */
static inline int64_t bf16_steps(int64_t count) {
  return BF16_STEPS == 1 ? 1 : ceil_div(min_i64(count, BF16_ROUNDED), BF16_DEPTH);
}

/* The next `count` elements of a row, up to BF16_ROUNDED, with zeros behind them. Where these are many, they are loaded
 * as vectors if they stand side by side. */
SIMD_FUNCTION void bf16_gather(float *to, const float *a, int64_t a_depth, int64_t count) {
  if (BF16_STEPS > 1 && a_depth == 1) {
#pragma clang loop unroll(full)
    for (int i = 0; i < BF16_ROUNDED; i += LANES) vstore(to + i, panel_load(a + i, count - i));
    return;
  }
#pragma clang loop unroll_count(4)
  for (int i = 0; i < BF16_ROUNDED; i++) to[i] = i < count ? a[i * a_depth] : 0;
}

/* `count` steps of the depth, of rows whose elements do not stand side by side, or are fewer than are rounded. */
SIMD_FUNCTION void bf16_tiles_gathered(Bf16Tiles *tiles, int rows, int vectors, const float *a, int64_t a_row,
                                       int64_t a_depth, const char *panel, int64_t count) {
  vbf16_rounded x[PANEL_ROWS / BF16_ROWS];
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m += BF16_ROWS) {
    float first[BF16_ROUNDED], second[BF16_ROUNDED];
    bf16_gather(first, a + m * a_row, a_depth, count);
    if (BF16_ROWS > 1) bf16_gather(second, a + beside_row(m, rows) * a_row, a_depth, count);
    x[m / BF16_ROWS] = vbf16_round(first, second);
  }
  bf16_tiles_dot(tiles, rows, vectors, x, bf16_steps(count), panel);
}

SIMD_FUNCTION void bf16_tiles_side_by_side(Bf16Tiles *tiles, int rows, int vectors, const float *a, int64_t a_row,
                                           const char *panel) {
  vbf16_rounded x[PANEL_ROWS / BF16_ROWS];
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m += BF16_ROWS)
    x[m / BF16_ROWS] = vbf16_round(a + m * a_row, a + beside_row(m, rows) * a_row);
  bf16_tiles_dot(tiles, rows, vectors, x, BF16_STEPS, panel);
}

/* sums[m][v] += row m of A times the panel. A's element (m, k) stands at a[m * a_row + k * a_depth]. */
SIMD_FUNCTION void bf16_multiply(PanelRow *sums, int rows, int vectors, const float *a, int64_t a_row, int64_t a_depth,
                                 const void *panel, int64_t depth) {
  Bf16Tiles tiles[PANEL_ROWS / BF16_ROWS];
  const char *weights = panel;
  const int64_t step = (int64_t)vectors * BF16_ROUNDED * LANES * 2; /* bytes */
  int64_t k = 0;
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m += BF16_ROWS) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++)
      tiles[m / BF16_ROWS][v] = vbf16_tile_of_rows(sums[m][v], sums[beside_row(m, rows)][v]);
  }
  if (a_depth == 1) {
#pragma clang loop unroll(disable)
    for (; k + BF16_ROUNDED <= depth; k += BF16_ROUNDED, weights += step)
      bf16_tiles_side_by_side(tiles, rows, vectors, a + k, a_row, weights);
  }
#pragma clang loop unroll(disable)
  for (; k < depth; k += BF16_ROUNDED, weights += step)
    bf16_tiles_gathered(tiles, rows, vectors, a + k * a_depth, a_row, a_depth, weights, depth - k);
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) sums[m][v] = vbf16_tile_row(tiles[m / BF16_ROWS][v], m % BF16_ROWS);
  }
}

#endif
