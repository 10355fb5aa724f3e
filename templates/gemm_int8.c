/* SPDX-License-Identifier: MIT */
/*
 * C = A B of 8-bit numbers with zero points, exact in i32, then as i32, as f32 times a scale, or requantised. B is
 * packed into panels of s8: [group][VECTORS][LANES][DOT], where group 0 is the sum of each column in i32, and group 1 +
 * g has the depths DOT g to DOT g + DOT - 1, zero past the last. With TILES each two groups of 2 * DOT depths are one,
 * [VECTORS][LANES][2 * DOT].
 *
 * A dot product counts inputs from DOT_ZERO on (simd/int8.h), so that
 *   sum over k of (a - zero) (b - b_zero) = dot - zero' columns - b_zero (rows - K zero'),
 * where zero' = zero - DOT_ZERO, and rows and columns are the sums of A's rows, less DOT_ZERO each, and B's columns.
 *
 * Work is cut into (batch, panel, block of rows), in that order, and each worker takes one contiguous share.
 */
#include "kernel.h"
#include "panel.h"
#include "simd/int8.h"
#include "simd/math.h"
#include "simd/simd.h"

/* Vectors of columns in a panel.
 * legal: 1..4 */
enum { VECTORS = 4 };
/* Maximum rows of a block: ROWS * VECTORS sums are in registers.
 * legal: 1..8 */
enum { ROWS = 6 };
/* Minimum rows of a block: where M is known, its blocks have one of two heights.
 * legal: 1..8 */
enum { MIN_ROWS = 1 };
/* Panels that a single row is multiplied with at once.
 * legal: 1 2 4 8 */
enum { GROUP = 4 };
/* Products of DOT bytes: 0: of any weights; 1: of those of which no two exceed 16 bits (DOT_PAIRS).
 * legal: 0 1 */
enum { FORM = 0 };
/* 1: two rows are multiplied at once, by vtile_dot_packed, and one as if it were two.
 * legal: 0 1 */
enum { TILES = 0 };
/* K modulo DOT.
 * legal: 0..3 */
enum { TAIL = 0 };

typedef vint DotRow[4];

#include "parts/gemm_int8_finish.h"

/* ---- products ---- */

/* Where sums begin: the zero point times the sum of the column. */
SIMD_FUNCTION void begin(const Gemm *g, vint *sums, const int8_t *panel) {
#pragma clang loop unroll(full)
  for (int v = 0; v < VECTORS; v++) {
    vint columns = vint_load(panel + v * LANES * DOT);
    sums[v] = vint_sub(vint_zero(), vint_mul(vint_set(g->a_zero), columns));
  }
}

/* 1 for each of the bytes. */
SIMD_FUNCTION vint ones(int bytes) { return vint_set(bytes == DOT ? 0x01010101 : 0x01010101 >> 8 * (DOT - bytes)); }

/* One group of the depth: `bytes` of each row, DOT or the tail. */
SIMD_FUNCTION void step(DotRow *sums, vint *row_sums, int rows, const A *const *at, int64_t k, const int8_t *weights,
                        int bytes) {
  vint w[VECTORS];
#pragma clang loop unroll(full)
  for (int v = 0; v < VECTORS; v++) w[v] = vdot_load(weights + v * LANES * DOT);
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
    vint x = bytes == DOT ? vdot_broadcast(at[m] + k, A_SIGNED) : vdot_broadcast_n(at[m] + k, bytes, A_SIGNED);
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) sums[m][v] = vdot(sums[m][v], x, w[v], FORM);
    if (B_ZERO) row_sums[m] = vdot(row_sums[m], x, ones(bytes), FORM);
  }
}

/* A row's sum and its bytes of two groups of the depth. */
SIMD_FUNCTION vint sum_of_groups(vint row_sum, const A *at) {
  vint x = vdot_broadcast(at, A_SIGNED), next = vdot_broadcast(at + DOT, A_SIGNED);
  return vdot(vdot(row_sum, x, ones(DOT), FORM), next, ones(DOT), FORM);
}

/* Groups of the depth in pairs, and rows in pairs, the last of an odd number with itself: sums are those of the
 * products alone. Returns where it ends. */
SIMD_FUNCTION int64_t multiply_tiles(DotRow *sums, vint *row_sums, int rows, const A *const *at, int64_t depth,
                                     const int8_t *weights) {
  vtile tiles[ROWS][4];
  int64_t k = 0;
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m += 2) {
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) tiles[m][v] = vtile_zero();
  }
#pragma clang loop unroll(disable)
  for (; k + 2 * DOT <= depth; k += 2 * DOT) {
    const int8_t *w = weights + (k + DOT) * VECTORS * LANES;
    vtile_input x[ROWS];
#pragma clang loop unroll(full)
    for (int m = 0; m < rows; m += 2) x[m] = vtile_inputs(at[m] + k, at[m + 1 < rows ? m + 1 : m] + k, A_SIGNED);
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) {
      vint left = vdot_load(w + 2 * v * LANES * DOT), right = vdot_load(w + (2 * v + 1) * LANES * DOT);
#pragma clang loop unroll(full)
      for (int m = 0; m < rows; m += 2) tiles[m][v] = vtile_dot_packed(tiles[m][v], x[m], left, right);
    }
#pragma clang loop unroll(full)
    for (int m = 0; m < rows; m++)
      if (B_ZERO) row_sums[m] = sum_of_groups(row_sums[m], at[m] + k);
  }
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) sums[m][v] = vtile_row(tiles[m / 2 * 2][v], m % 2);
  }
  return k;
}

/* Rows first .. first + rows of one panel. */
SIMD_FUNCTION void block(const Gemm *g, int64_t panel, int64_t first, int rows) {
  DotRow sums[ROWS], start;
  vint row_sums[ROWS];
  const A *at[ROWS];
  const int8_t *weights = g->b + panel * panel_bytes(g);
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
    at[m] = (const A *)vapart((const void *)(g->a + (first + m) * g->k));
    row_sums[m] = vint_zero();
  }
  int64_t k = TILES ? multiply_tiles(sums, row_sums, rows, at, g->k - TAIL, weights) : 0;
  begin(g, start, weights);
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) sums[m][v] = TILES ? vint_add(start[v], sums[m][v]) : start[v];
  }
#pragma clang loop unroll(disable)
  for (; k < g->k - TAIL; k += DOT) step(sums, row_sums, rows, at, k, weights + (k + DOT) * VECTORS * LANES, DOT);
  if (TAIL) step(sums, row_sums, rows, at, k, weights + (k + DOT) * VECTORS * LANES, TAIL);
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) {
      Column column = column_at(g, (panel * VECTORS + v) * LANES);
      finish(g, &column, sums[m][v], row_sums[m], first + m);
    }
  }
}

static void block_of_rows(const Gemm *g, int64_t panel, int64_t first, int64_t rows) {
  if (MIN_ROWS <= 1 && 1 <= ROWS && rows == 1) block(g, panel, first, 1);
  if (MIN_ROWS <= 2 && 2 <= ROWS && rows == 2) block(g, panel, first, 2);
  if (MIN_ROWS <= 3 && 3 <= ROWS && rows == 3) block(g, panel, first, 3);
  if (MIN_ROWS <= 4 && 4 <= ROWS && rows == 4) block(g, panel, first, 4);
  if (MIN_ROWS <= 5 && 5 <= ROWS && rows == 5) block(g, panel, first, 5);
  if (MIN_ROWS <= 6 && 6 <= ROWS && rows == 6) block(g, panel, first, 6);
  if (MIN_ROWS <= 7 && 7 <= ROWS && rows == 7) block(g, panel, first, 7);
  if (MIN_ROWS <= 8 && 8 <= ROWS && rows == 8) block(g, panel, first, 8);
}

/* M = 1: some panels at once, so that enough sums are under way. */
SIMD_FUNCTION void row_group(const Gemm *g, int64_t panel, int panels) {
  DotRow sums[GROUP];
  vint row_sum = vint_zero();
  int64_t stride = panel_bytes(g), k = 0;
  const int8_t *weights = g->b + panel * stride;
#pragma clang loop unroll(full)
  for (int p = 0; p < panels; p++) begin(g, sums[p], weights + p * stride);
  for (; k < g->k; k += DOT) {
    int bytes = TAIL && g->k - k < DOT ? TAIL : DOT;
    vint x = bytes == DOT ? vdot_broadcast(g->a + k, A_SIGNED) : vdot_broadcast_n(g->a + k, TAIL, A_SIGNED);
    const int8_t *w = weights + (k + DOT) * VECTORS * LANES;
#pragma clang loop unroll(full)
    for (int p = 0; p < panels; p++)
#pragma clang loop unroll(full)
      for (int v = 0; v < VECTORS; v++)
        sums[p][v] = vdot(sums[p][v], x, vdot_load(w + p * stride + v * LANES * DOT), FORM);
    if (B_ZERO)
      row_sum = vdot(row_sum, x, vint_set(bytes == DOT ? 0x01010101 : TAIL ? 0x01010101 >> 8 * (DOT - TAIL) : 0), FORM);
  }
#pragma clang loop unroll(full)
  for (int p = 0; p < panels; p++)
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) {
      Column column = column_at(g, ((panel + p) * VECTORS + v) * LANES);
      finish(g, &column, sums[p][v], row_sum, 0);
    }
}

/* Panels begin .. end of M = 1. */
static void single_row(const Gemm *g, int64_t begin, int64_t end) {
  int64_t panel = begin;
  for (; GROUP > 1 && panel + GROUP <= end; panel += GROUP) row_group(g, panel, GROUP);
  for (; panel < end; panel++) row_group(g, panel, 1);
}

/* Blocks begin .. end, of `blocks` that M is cut into, of one panel. */
static void panel_rows(const Gemm *g, int64_t panel, int64_t begin, int64_t end, int64_t blocks) {
  for (int64_t i = begin; i < end; i++) {
    int64_t first = block_begin(g->m, i, blocks, TILES);
    block_of_rows(g, panel, first, block_begin(g->m, i + 1, blocks, TILES) - first);
  }
}

/* a: [batch][m][k], bytes. b: panels that cover n columns. b_zero: what stands for 0 in the packed panels. scale: one,
 * or a row. bias: a row. c: [batch][m][n]. */
static void gemm_int8(const Team *team, const A *a, const int8_t *b, const A *a_zero, int64_t b_zero,
                      const int32_t *bias, const float *a_scale, const float *scale, const float *addend,
                      const float *residual, T *c, int64_t c_zero, int64_t m, int64_t n, int64_t k,
                      int64_t residual_row, int64_t batch_rank, const int64_t *batch_dims, const int64_t *a_batch,
                      const int64_t *b_batch) {
  Gemm all = {.a = a,
              .b = b,
              .bias = bias,
              .scale = scale,
              .addend = addend,
              .residual = residual,
              .c = c,
              .m = m,
              .n = n,
              .k = k,
              .panels = ceil_div(n, VECTORS * LANES),
              .groups = ceil_div(k, DOT),
              .residual_row = residual_row,
              .a_zero = vdot_zero(A_ZERO ? *a_zero : 0, A_SIGNED),
              .b_zero = (int)b_zero,
              .a_scale = A_SCALE ? *a_scale : 1,
              .c_zero = (float)c_zero};
  int64_t batches = 1, blocks = ceil_div(m, ROWS), item, end;
  for (int64_t axis = 0; axis < batch_rank; axis++) batches *= batch_dims[axis];
  team_share(team, batches * all.panels * blocks, &item, &end);
  while (item < end) {
    int64_t in_batch = all.panels * blocks, batch = item / in_batch, first = item % in_batch;
    Gemm g = at_batch(&all, batch, batch_rank, batch_dims, a_batch, b_batch);
    int64_t last = min_i64(in_batch, first + end - item), at = first % blocks;
    if (MIN_ROWS == 1 && !TILES && m == 1) {
      single_row(&g, first, last);
      item += last - first;
      continue;
    }
    int64_t stop = min_i64(blocks, at + last - first);
    panel_rows(&g, first / blocks, at, stop, blocks);
    item += stop - at;
  }
}
