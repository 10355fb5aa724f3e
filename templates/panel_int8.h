/* SPDX-License-Identifier: MIT */
/*
 * Products of rows that are quantised as they come, each by its own range or all by one, with a packed panel of s8
 * weights.
 *
 * A row of f32 becomes u8 as ONNX's DynamicQuantizeLinear has it: 0 is exact, the largest and the smallest element, or
 * 0, are 255 and 0. By a fixed range these are its ends, and elements beyond it are the end. Elements are multiplied by
 * the scale's inverse, where ONNX divides: of numbers within some 1e-7 of half a step, one may become its neighbour. A
 * row's numbers depend on no other row, so results depend on neither the batch nor the blocking; sums of integers are
 * exact in any order.
 *
 * A panel holds `vectors` * LANES columns, packed [K / 4][vectors][LANES][4], its last rows filled with zeros. `rows`,
 * `vectors`, `parts` and `form`, of vdot's or IN_TILES, must be constants once inlined.
 *
 * IN_TILES is of CPUs that multiply two rows of 2 * DOT bytes by two columns at once (vtile_dot_packed of int8.h, where
 * LANES is DOT). Panels are then packed [K / 8][vectors][LANES][8], and the bytes of the rows 2i and 2i + 1 stand in
 * turn, 2 * DOT of each, less 128: so that a tile's inputs are one load and need no change. Blocks begin with even
 * rows. What stands where a row has no more bytes, or in place of a row that is not there, counts for nothing.
 *
 * IN_MATRICES is of CPUs that multiply matrices (simd/matrices.h), by panel_matrices.h. Bytes count as they are.
 */
#ifndef PANEL_INT8_H
#define PANEL_INT8_H

#include "kernel.h"
#include "panel.h"
#include "simd/int8.h"
#include "simd/simd.h"

typedef vint PanelSums[PANEL_VECTORS];

/* What a row's bytes mean: element i is scale * (byte i - zero). `zero` counts as the products do: see byte_zero(). */
typedef struct RowScale {
  float scale;
  int32_t zero;
} RowScale;

/* How products are made, beside the forms of vdot. */
enum { IN_TILES = DOT_SIGNS + 1, IN_MATRICES };

/* The byte that counts as 0. */
static inline int32_t byte_zero(int form) {
  return form == IN_MATRICES ? 0 : form == DOT_SIGNS ? DOT_SIGNS_ZERO : DOT_ZERO;
}

/* Bytes of a row that a tile multiplies at once. */
enum { TILE_DEPTH = 2 * DOT };

/* Bytes from one quantised row to the next: whole vectors are stored. */
static inline int64_t int8_row(int64_t n) { return round_up(n, 64); }

/* Where the bytes of row `index` begin. */
SIMD_FUNCTION uint8_t *int8_row_at(uint8_t *rows, int64_t index, int64_t row, int form) {
  if (form != IN_TILES) return rows + index * row;
  return rows + index / 2 * 2 * row + index % 2 * TILE_DEPTH;
}

/* Stores elements i .. i + LANES of a row: their bytes, within 0 .. 255. */
SIMD_FUNCTION void store_bytes(uint8_t *row, int64_t i, vint bytes, int form) {
  if (form == IN_TILES)
    vint_store_s8(row + i + i / TILE_DEPTH * TILE_DEPTH, vint_sub(bytes, vint_set(128)));
  else
    vint_store_u8(row + i, bytes);
}

/* spoiled: NaN in a lane that has seen an element that is infinite or not a number, else 0. */
typedef struct RowRange {
  vec least, most, spoiled;
} RowRange;

SIMD_FUNCTION void widen_range(RowRange *range, vec v) {
  range->least = vmin_bound(range->least, v);
  range->most = vmax_bound(range->most, v);
  range->spoiled = vfma(range->spoiled, v, vzero());
}

SIMD_FUNCTION RowRange range_of(const float *x, int64_t n) {
  RowRange a = {vzero(), vzero(), vzero()}, b = a;
  int64_t i = 0;
  for (; i + 2 * LANES <= n; i += 2 * LANES) {
    widen_range(&a, vload(x + i));
    widen_range(&b, vload(x + i + LANES));
  }
  for (; i < n; i += LANES) widen_range(&a, panel_load(x + i, n - i));
  widen_range(&a, b.least);
  widen_range(&a, b.most);
  a.spoiled = vadd(a.spoiled, b.spoiled);
  return a;
}

/* Rows of less than this are zero to products in f32. */
#define LEAST_RANGE 0x1p-100f

/* Quantises n elements of a row. One that is infinite or not a number makes all products of the row NaN. */
SIMD_FUNCTION RowScale quantise_row(const float *x, int64_t n, uint8_t *bytes, int form) {
  RowRange range = range_of(x, n);
  float least = vhmin(range.least), width = vhmax(range.most) - least;
  bool finite = !vany(visnan(range.spoiled)) && width < __builtin_inff(), tiny = !(width > LEAST_RANGE);
  float inverse = finite && !tiny ? 255 / width : 0;
  vint zero = vround_to_int(vset(finite ? -least * inverse : 0));
  for (int64_t i = 0; i < n; i += LANES) {
    vec scaled = finite ? vmul(panel_load(x + i, n - i), vset(inverse)) : vzero();
    store_bytes(bytes, i, vint_add(vround_to_int(scaled), zero), form);
  }
  int32_t zeros[LANES];
  vint_store(zeros, zero);
  return (RowScale){.scale = finite ? (tiny ? 0 : width / 255) : __builtin_nanf(""),
                    .zero = zeros[0] - byte_zero(form)};
}

/* A range for all rows, least <= 0 <= most: element x becomes the byte x * inverse + zero. */
typedef struct FixedRange {
  float least, most, inverse, scale;
  int32_t zero;
} FixedRange;

SIMD_FUNCTION FixedRange fixed_range(float least, float most) {
  float width = most - least, inverse = 255 / width;
  int32_t zeros[LANES];
  vint_store(zeros, vround_to_int(vset(-least * inverse)));
  return (FixedRange){.least = least, .most = most, .inverse = inverse, .scale = width / 255, .zero = zeros[0]};
}

/* quantise_row() by that range, in one pass. */
SIMD_FUNCTION RowScale quantise_row_by(const float *x, int64_t n, uint8_t *bytes, int form, const FixedRange *range) {
  vec least = vset(range->least), most = vset(range->most), spoiled = vzero();
  vint zero = vint_set(range->zero);
  for (int64_t i = 0; i < n; i += LANES) {
    vec v = panel_load(x + i, n - i);
    spoiled = vfma(spoiled, v, vzero());
    vec bounded = vmin_bound(vmax_bound(v, least), most);
    store_bytes(bytes, i, vint_add(vround_to_int(vmul(bounded, vset(range->inverse))), zero), form);
  }
  return (RowScale){.scale = vany(visnan(spoiled)) ? __builtin_nanf("") : range->scale,
                    .zero = range->zero - byte_zero(form)};
}

typedef vtile PanelTiles[PANEL_VECTORS];

/* int8_multiply() of IN_TILES. */
SIMD_FUNCTION void int8_multiply_tiles(PanelSums *sums, int rows, int vectors, const uint8_t *a, int64_t a_row,
                                       const int8_t *panel, int64_t depth) {
  PanelTiles tiles[PANEL_ROWS / 2];
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m += 2) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) tiles[m / 2][v] = vtile_of_rows(sums[m][v], sums[m + 1 < rows ? m + 1 : m][v]);
  }
#pragma clang loop unroll(disable)
  for (int64_t k = 0; k < depth; k += TILE_DEPTH) {
    vtile_input x[PANEL_ROWS / 2];
#pragma clang loop unroll(full)
    for (int m = 0; m < rows; m += 2) x[m / 2] = vtile_inputs_packed(a + m * a_row + 2 * k, 1);
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) {
      const int8_t *b = panel + (k * vectors + v * TILE_DEPTH) * LANES;
      vint left = vdot_load(b), right = vdot_load(b + DOT * LANES);
#pragma clang loop unroll(full)
      for (int m = 0; m < rows; m += 2) tiles[m / 2][v] = vtile_dot_packed(tiles[m / 2][v], x[m / 2], left, right);
    }
  }
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) sums[m][v] = vtile_row(tiles[m / 2][v], m % 2);
  }
}

/* sums[m][v] += row m of A times the panel, `depth` elements each. */
SIMD_FUNCTION void int8_multiply(PanelSums *sums, int rows, int vectors, const uint8_t *a, int64_t a_row,
                                 const int8_t *panel, int64_t depth, int form) {
  if (form == IN_TILES) {
    int8_multiply_tiles(sums, rows, vectors, a, a_row, panel, depth);
    return;
  }
  for (int64_t k = 0; k < depth; k += DOT) {
    vint b[PANEL_VECTORS];
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) b[v] = vdot_load(panel + (k * vectors + v * DOT) * LANES);
#pragma clang loop unroll(full)
    for (int m = 0; m < rows; m++) {
      vint x = vdot_broadcast(a + m * a_row + k, 0);
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++) sums[m][v] = vdot(sums[m][v], x, b[v], form);
    }
  }
}

/* One row in `parts` partial sums, which hide the latency of an addition; in tiles as it is among others. */
SIMD_FUNCTION void int8_multiply_split(vint *sums, int parts, int vectors, const uint8_t *a, const int8_t *panel,
                                       int64_t depth, int form) {
  if (form == IN_TILES) {
    int8_multiply((PanelSums *)sums, 1, vectors, a, 0, panel, depth, form);
    return;
  }
  PanelSums partial[PANEL_ROWS];
#pragma clang loop unroll(full)
  for (int i = 0; i < parts; i++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) partial[i][v] = i ? vint_zero() : sums[v];
  }
  int64_t step = parts * DOT, whole = depth / step * step;
  for (int64_t k = 0; k < whole; k += step) {
#pragma clang loop unroll(full)
    for (int i = 0; i < parts; i++) {
      vint x = vdot_broadcast(a + k + i * DOT, 0);
      const int8_t *row = panel + (k + i * DOT) * vectors * LANES;
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++) partial[i][v] = vdot(partial[i][v], x, vdot_load(row + v * DOT * LANES), form);
    }
  }
  int8_multiply(partial, 1, vectors, a + whole, 0, panel + whole * vectors * LANES, depth - whole, form);
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) {
    sums[v] = partial[0][v];
#pragma clang loop unroll(full)
    for (int i = 1; i < parts; i++) sums[v] = vint_add(sums[v], partial[i][v]);
  }
}

/* start + the product that a vector of sums stands for. scales, totals: of these columns' weights; a total is the sum
 * of a column's. */
SIMD_FUNCTION vec int8_product(vec start, vint sum, RowScale row, const float *scales, const int32_t *totals) {
  vint exact = vint_sub(sum, vint_mul(vint_set(row.zero), vint_load(totals)));
  return vfma(start, vmul(vset(row.scale), vload(scales)), vint_to_float(exact));
}

#endif
