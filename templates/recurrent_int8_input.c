/* SPDX-License-Identifier: MIT */
/*
 * The input's part of all gates of all steps of a recurrent layer, X W^T + bias, where a row of X is quantised by its
 * own range, or all by one, and W is s8 with a scale for each column: see panel_int8.h.
 *
 * First each worker quantises its share of the rows; then, behind a barrier, work is cut into (panel, block of rows),
 * in that order, and each worker takes one contiguous share.
 */
#include "kernel.h"
#include "panel.h"
#include "panel_int8.h"
#include "simd/int8.h"
#include "simd/simd.h"

/* Vectors of columns in a panel.
 * legal: 1..16 */
enum { VECTORS = 4 };
/* Maximum rows of a block: ROWS * VECTORS sums are in registers.
 * legal: 1..8 */
enum { ROWS = 6 };
/* Minimum rows of a block: where their number is known, blocks have one of two heights.
 * legal: 1..8 */
enum { MIN_ROWS = 1 };
/* Partial sums of a block of one row.
 * legal: 1 2 4 8 */
enum { PARTS = 2 };
/* How products are made: DOT_ANY, DOT_PAIRS or DOT_SIGNS of int8.h, by what is known of the weights, or IN_TILES.
 * legal: 0 1 2 3 */
enum { FORM = 0 };

#include "parts/recurrent_int8_input.h"

SIMD_FUNCTION void block(const Product *p, int64_t panel, int64_t first, int rows) {
  PanelSums sums[PANEL_ROWS];
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) sums[m][v] = vint_zero();
  }
  const uint8_t *a = p->a + first * p->a_row;
  const int8_t *weights = p->weights + panel * p->depth * VECTORS * LANES;
  if (rows == 1)
    int8_multiply_split(sums[0], PARTS, VECTORS, a, weights, p->depth, FORM);
  else
    int8_multiply(sums, rows, VECTORS, a, p->a_row, weights, p->depth, FORM);
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) {
      int64_t column = (panel * VECTORS + v) * LANES;
      vec start = p->bias ? panel_load(p->bias + column, p->gates_row - column) : vzero();
      vec sum = int8_product(start, sums[m][v], p->rows[first + m], p->scales + column, p->totals + column);
      panel_store(p->gates + (first + m) * p->gates_row + column, sum, p->gates_row - column);
    }
  }
}

static void block_of_rows(const Product *p, int64_t panel, int64_t first, int64_t rows) {
  if (MIN_ROWS <= 1 && 1 <= ROWS && rows == 1) block(p, panel, first, 1);
  if (MIN_ROWS <= 2 && 2 <= ROWS && rows == 2) block(p, panel, first, 2);
  if (MIN_ROWS <= 3 && 3 <= ROWS && rows == 3) block(p, panel, first, 3);
  if (MIN_ROWS <= 4 && 4 <= ROWS && rows == 4) block(p, panel, first, 4);
  if (MIN_ROWS <= 5 && 5 <= ROWS && rows == 5) block(p, panel, first, 5);
  if (MIN_ROWS <= 6 && 6 <= ROWS && rows == 6) block(p, panel, first, 6);
  if (MIN_ROWS <= 7 && 7 <= ROWS && rows == 7) block(p, panel, first, 7);
  if (MIN_ROWS <= 8 && 8 <= ROWS && rows == 8) block(p, panel, first, 8);
}

/* x: [rows][inputs]. weights: [panels][inputs, padded][VECTORS][LANES], scales and totals [panels][VECTORS][LANES],
 * bias: gates_row floats, or NULL. gates: [rows][gates_row], of which the panels have the columns in their order.
 * quantised: int8_row(inputs) bytes for each row, IN_TILES for an even number of them, row_scales: a RowScale for each
 * row. least, most: the range, if FIXED. */
static void recurrent_int8_input(Team *team, const float *x, const int8_t *weights, const float *scales,
                                 const int32_t *totals, const float *bias, float *gates, uint8_t *quantised,
                                 float *row_scales, float least, float most, int64_t rows, int64_t inputs,
                                 int64_t gates_row) {
  RowScale *made = (RowScale *)row_scales;
  quantise_share(team, x, quantised, made, least, most, rows, inputs);
  team_barrier(team);
  Product p = {.a = quantised,
               .weights = weights,
               .rows = made,
               .scales = scales,
               .bias = bias,
               .totals = totals,
               .gates = gates,
               .depth = round_up(inputs, FORM == IN_TILES ? TILE_DEPTH : DOT),
               .panels = ceil_div(gates_row, VECTORS * LANES),
               .a_row = int8_row(inputs),
               .gates_row = gates_row};
  int64_t begin, end, blocks = ceil_div(rows, ROWS);
  team_share(team, p.panels * blocks, &begin, &end);
  for (int64_t i = begin; i < end; i++) {
    int64_t j = i % blocks, first = block_begin(rows, j, blocks, FORM == IN_TILES);
    block_of_rows(&p, i / blocks, first, block_begin(rows, j + 1, blocks, FORM == IN_TILES) - first);
  }
}
