/* SPDX-License-Identifier: MIT */
/*
 * The product of a block of rows with a packed panel: the inner loop of matrix products and of recurrent layers.
 *
 * A panel holds `vectors` * LANES columns of the right-hand matrix, packed [k][vectors][LANES]. A block keeps its
 * rows x vectors sums in registers over the whole depth: each k loads the panel's vectors once and broadcasts one
 * element a row. Every sum runs over k in order, whatever the block's size, so results do not depend on the blocking of
 * rows and panels; only panel_multiply_split() has another, fixed order.
 *
 * A panel has as many vectors as fit in registers with its sums: up to 4, or up to 16 for a single row.
 *
 * `rows`, `vectors`, `panels` and `parts` must be constants once inlined: then the loops over them unroll and the sums
 * are registers.
 */
#ifndef PANEL_H
#define PANEL_H

#include "kernel.h"
#include "simd/simd.h"

enum { PANEL_ROWS = 8, PANEL_VECTORS = 16 };

/* The first row of block `index` of `blocks` that n rows are cut into, and n for the end. by_two: an even one, so that
 * where rows are multiplied by two at most the last is alone. */
static inline int64_t block_begin(int64_t n, int64_t index, int64_t blocks, bool by_two) {
  return by_two ? min_i64(n, index * ceil_div(n, 2) / blocks * 2) : index * n / blocks;
}

typedef vec PanelRow[PANEL_VECTORS];

/* Steps of the depth in a turn of a loop: the fewer sums there are, the more of its time is the loop's own. Where a
 * result takes the place of an operand, sums would change registers from one step to the next, and clang would run out
 * of them. */
enum { DEPTH_STEPS = LANE_OPERANDS || TWO_OPERANDS ? 1 : FEW_REGISTERS ? 4 : 2 };

/* LANES steps of the depth. Each row's elements stand side by side and are loaded as one vector: where a multiply-add
 * takes a lane as an operand, an element costs neither a load nor a register of its own. */
SIMD_FUNCTION void panel_multiply_lanes(PanelRow *sums, int rows, int vectors, const float *a, int64_t a_row,
                                        const float *panel) {
  vec x[PANEL_ROWS];
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) x[m] = vload(a + m * a_row);
#pragma clang loop unroll(full)
  for (int i = 0; i < LANES; i++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) {
      vec b = vload(panel + (i * vectors + v) * LANES);
#pragma clang loop unroll(full)
      for (int m = 0; m < rows; m++) sums[m][v] = vfma(sums[m][v], vlane(x[m], i), b);
    }
  }
}

/* Where each row begins: a register each, from which one index reaches all. Clang would else walk from row to row. Rows
 * that are known to be neighbours need but one. */
SIMD_FUNCTION void panel_rows_at(const float **at, int rows, const float *a, int64_t a_row) {
  bool neighbours = __builtin_constant_p(a_row) && a_row == 1;
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) at[m] = neighbours ? a + m : vapart(a + m * a_row);
}

/* sums[m][v] += row m of A times the panel. A's element (m, k) stands at a[m * a_row + k * a_depth]. */
SIMD_FUNCTION void panel_multiply(PanelRow *sums, int rows, int vectors, const float *a, int64_t a_row, int64_t a_depth,
                                  const float *panel, int64_t depth) {
  int64_t done = 0;
  if (LANE_OPERANDS && a_depth == 1) {
    for (; done + LANES <= depth; done += LANES)
      panel_multiply_lanes(sums, rows, vectors, a + done, a_row, panel + done * vectors * LANES);
  }
  const float *at[PANEL_ROWS];
  panel_rows_at(at, rows, a, a_row);
#pragma clang loop unroll_count(DEPTH_STEPS)
  for (int64_t k = done; k < depth; k++) {
    PanelRow b;
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) b[v] = vload(panel + (k * vectors + v) * LANES);
#pragma clang loop unroll(full)
    for (int m = 0; m < rows; m++) {
      vec x = vbroadcast_load(at[m] + k * a_depth);
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++) sums[m][v] = vfma(sums[m][v], x, b[v]);
    }
  }
}

/* panel_multiply_ahead() prefetches half of what it reads, because at least two blocks use each panel: whole lines for
 * each k, or one line for every second k where half a k's vectors are less than a line. */
enum { PANEL_LINE = 16 };
static inline int64_t panel_ahead_floats(int vectors) {
  int64_t floats = vectors * LANES;
  return floats > PANEL_LINE ? ceil_div(floats, 2 * PANEL_LINE) * PANEL_LINE : PANEL_LINE / 2;
}

/* What stands at `ahead` for steps k .. k + count of the depth. */
SIMD_FUNCTION void panel_prefetch(const float *ahead, int64_t k, int count, int vectors) {
  const int64_t floats = panel_ahead_floats(vectors);
#pragma clang loop unroll(full)
  for (int64_t at = 0; at < count * floats; at += PANEL_LINE)
    if (floats >= PANEL_LINE || count > 1 || k % 2 == 0) prefetch_later(ahead + k * floats + at);
}

/* The same for rows of A whose elements stand side by side, while what stands at `ahead` is fetched into the second
 * level of the cache. */
SIMD_FUNCTION void panel_multiply_ahead(PanelRow *sums, int rows, int vectors, const float *a, int64_t a_row,
                                        const float *panel, int64_t depth, const float *ahead) {
  int64_t done = 0;
  for (; LANE_OPERANDS && done + LANES <= depth; done += LANES) {
    panel_prefetch(ahead, done, LANES, vectors);
    panel_multiply_lanes(sums, rows, vectors, a + done, a_row, panel + done * vectors * LANES);
  }
  const float *at[PANEL_ROWS];
  panel_rows_at(at, rows, a, a_row);
#pragma clang loop unroll_count(DEPTH_STEPS)
  for (int64_t k = done; k < depth; k++) {
    panel_prefetch(ahead, k, 1, vectors);
    PanelRow b;
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) b[v] = vload(panel + (k * vectors + v) * LANES);
#pragma clang loop unroll(full)
    for (int m = 0; m < rows; m++) {
      vec x = vbroadcast_load(at[m] + k);
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++) sums[m][v] = vfma(sums[m][v], x, b[v]);
    }
  }
}

/* One row against several panels at once, which hides the latency of the additions where there is but one row. */
SIMD_FUNCTION void panel_multiply_row(PanelRow *sums, int panels, int vectors, const float *a, int64_t a_depth,
                                      const float *panel, int64_t panel_stride, int64_t depth) {
#pragma clang loop unroll_count(TWO_OPERANDS ? 1 : 2)
  for (int64_t k = 0; k < depth; k++) {
    vec x = vbroadcast_load(a + k * a_depth);
#pragma clang loop unroll(full)
    for (int p = 0; p < panels; p++) {
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++)
        sums[p][v] = vfma(sums[p][v], x, vload(panel + p * panel_stride + (k * vectors + v) * LANES));
    }
  }
}

/* Element i of `count` (a power of two) elements of A that are multiplied at once. */
SIMD_FUNCTION vec panel_element(const float *a, int i, int count) {
  if (!LANE_OPERANDS || count % LANES) return vbroadcast_load(a + i);
  return vlane(vload(a + i / LANES * LANES), i % LANES);
}

/* The sum of `parts` (a power of two) partial sums, added pairwise. */
SIMD_FUNCTION void panel_add_parts(vec *sums, PanelRow *partial, int parts, int vectors) {
#pragma clang loop unroll(full)
  for (int gap = 1; gap < parts; gap *= 2) {
#pragma clang loop unroll(full)
    for (int i = 0; i + gap < parts; i += 2 * gap) {
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++) partial[i][v] = vadd(partial[i][v], partial[i + gap][v]);
    }
  }
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) sums[v] = partial[0][v];
}

/* One row against one panel in `parts` (a power of two) interleaved partial sums, added pairwise at the end. The first
 * starts from sums. For panels that are swept once a time step, where one stream of memory is faster than several. */
SIMD_FUNCTION void panel_multiply_split(vec *sums, int parts, int vectors, const float *a, const float *panel,
                                        int64_t depth) {
  PanelRow partial[PANEL_ROWS];
#pragma clang loop unroll(full)
  for (int i = 0; i < parts; i++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) partial[i][v] = i ? vzero() : sums[v];
  }
  int64_t whole = depth / parts * parts;
  for (int64_t k = 0; k < whole; k += parts) {
#pragma clang loop unroll(full)
    for (int i = 0; i < parts; i++) {
      vec x = panel_element(a + k, i, parts);
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++)
        partial[i][v] = vfma(partial[i][v], x, vload(panel + ((k + i) * vectors + v) * LANES));
    }
  }
  panel_multiply(partial, 1, vectors, a + whole, 0, 1, panel + whole * vectors * LANES, depth - whole);
  panel_add_parts(sums, partial, parts, vectors);
}

/* Sums to and from a tile, [rows][vectors][LANES], for what need not be done in registers. */
SIMD_FUNCTION void panel_store_sums(float *tile, const PanelRow *sums, int rows, int vectors) {
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) vstore(tile + (m * vectors + v) * LANES, sums[m][v]);
  }
}
SIMD_FUNCTION void panel_load_sums(PanelRow *sums, const float *tile, int rows, int vectors) {
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) sums[m][v] = tile ? vload(tile + (m * vectors + v) * LANES) : vzero();
  }
}

/* The first `count` lanes, where count may be past either end of the vector. */
SIMD_FUNCTION vec panel_load(const float *p, int64_t count) {
  if (count >= LANES) return vload(p);
  return count > 0 ? vload_n(p, (int)count) : vzero();
}
SIMD_FUNCTION void panel_store(float *p, vec v, int64_t count) {
  if (count >= LANES)
    vstore(p, v);
  else if (count > 0)
    vstore_n(p, v, (int)count);
}

#endif
