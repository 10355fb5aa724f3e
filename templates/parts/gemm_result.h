/* SPDX-License-Identifier: MIT */
/*
 * A part of the templates of matrix products: what becomes of their sums, and the tiles that hold them. The template
 * says before it how many VECTORS a panel has.
 */
#include "kernel.h"
#include "panel.h"
#include "simd/math.h"
#include "simd/simd.h"

/* 1: the product is multiplied by `scale`, the addend by `addend_scale`.
 * legal: 0 1 */
enum { SCALED = 0 };
/* 0: nothing is added; 1: a row of N elements, the next one addend_row further on; 2: one element a row.
 * legal: 0 1 2 */
enum { ADDEND = 1 };

typedef struct Gemm {
  const float *a, *b, *scales, *addend;
  float *c;
  int64_t m, n, k, panels;
  int64_t a_row, a_depth, addend_row, c_row; /* strides, in elements */
  float scale, addend_scale;
} Gemm;

/* hook: maps an element of the result; x and the result are one vector of columns. */
static inline vec epilogue(vec x) { return x; }

/* One vector of the result, `count` columns of it. */
SIMD_FUNCTION vec finish(const Gemm *g, vec sum, int64_t row, int64_t column, int64_t count) {
  if (SCALED) sum = vmul(sum, vset(g->scale));
  if (!ADDEND) return epilogue(sum);
  const float *from = g->addend + row * g->addend_row;
  vec more = ADDEND == 1 ? panel_load(from + column, count) : vset(*from);
  return epilogue(SCALED ? vfma(sum, more, vset(g->addend_scale)) : vadd(sum, more));
}

/* ---- tiles: blocks with fewer columns than a panel, or with partial sums ---- */

static void tile_from_c(const Gemm *g, float *tile, int64_t first, int64_t rows, int64_t column) {
  for (int64_t m = 0; m < rows; m++) {
    for (int64_t at = 0; at < VECTORS * LANES; at += LANES) {
      const float *c = g->c + (first + m) * g->c_row + column + at;
      vstore(tile + m * VECTORS * LANES + at, panel_load(c, g->n - column - at));
    }
  }
}

static void tile_to_c(const Gemm *g, const float *tile, int64_t first, int64_t rows, int64_t column, bool last) {
  for (int64_t m = 0; m < rows; m++) {
    for (int64_t at = 0; at < VECTORS * LANES; at += LANES) {
      vec sum = vload(tile + m * VECTORS * LANES + at);
      int64_t count = g->n - column - at;
      if (last && count > 0) sum = finish(g, sum, first + m, column + at, count);
      panel_store(g->c + (first + m) * g->c_row + column + at, sum, count);
    }
  }
}
