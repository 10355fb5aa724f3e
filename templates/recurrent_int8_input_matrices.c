/* SPDX-License-Identifier: MIT */
/*
 * The input's part of all gates of all steps of a recurrent layer, as recurrent_int8_input.c has it, bit for bit, by
 * matrices in registers (panel_matrices.h). Panels have zeros to a whole number of MATRIX_BYTES inputs.
 *
 * A block is of one or two tiles of as many rows as registers are set up for, which costs hundreds of cycles. So the
 * last one may go on behind the rows that there are, where there is memory for whole tiles.
 */
#include "panel_int8.h"
#include "panel_matrices.h"

enum { FORM = IN_MATRICES };

/* Vectors of columns in a panel.
 * legal: 1 2 */
enum { VECTORS = 2 };

enum { ROWS = 2 * MATRIX_ROWS, WIDTH = VECTORS * LANES };

#include "parts/recurrent_int8_input.h"
#include "simd/matrices.h"

/* The sums of rows from `first` on, [tiles][MATRIX_ROWS][WIDTH]. */
SIMD_FUNCTION void multiply(const Product *p, matrices *m, int64_t panel, int64_t first, int tiles, int32_t *sums) {
  const MatrixRows rows = {
      .a = p->a + first * p->a_row, .tile = MATRIX_ROWS * p->a_row, .ahead = MATRIX_BYTES, .row = p->a_row};
  matrices_zero_sums(m, tiles * VECTORS);
  matrices_multiply(m, tiles, VECTORS, &rows, p->weights + panel * p->depth * WIDTH, VECTORS, p->depth / MATRIX_BYTES,
                    OF_BYTES);
  matrices_store_sums(m, tiles, VECTORS, sums, MATRIX_ROWS * WIDTH, WIDTH * (int64_t)sizeof(int32_t));
}

static void block(const Product *p, matrices *m, int64_t panel, int64_t first, int64_t rows) {
  int32_t sums[ROWS * WIDTH] __attribute__((aligned(64)));
  if (rows <= MATRIX_ROWS)
    multiply(p, m, panel, first, 1, sums);
  else
    multiply(p, m, panel, first, 2, sums);
  for (int64_t row = 0; row < rows; row++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) {
      const int64_t column = panel * WIDTH + v * LANES, rest = p->gates_row - column;
      vec start = p->bias ? panel_load(p->bias + column, rest) : vzero();
      vec sum = int8_product(start, vint_load(sums + row * WIDTH + v * LANES), p->rows[first + row], p->scales + column,
                             p->totals + column);
      panel_store(p->gates + (first + row) * p->gates_row + column, sum, rest);
    }
  }
}

/* x: [rows][inputs]. weights: panels of panel_matrices.h, scales and totals [panels][VECTORS][LANES],
 * bias: gates_row floats, or NULL. gates: [rows][gates_row], of which the panels have the columns in their order.
 * quantised: int8_row(inputs) bytes for each row, of whole tiles; row_scales: a RowScale for each row. least, most: the
 * range, if FIXED. */
static void recurrent_int8_input_matrices(Team *team, const float *x, const int8_t *weights, const float *scales,
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
               .depth = round_up(inputs, MATRIX_BYTES),
               .panels = ceil_div(gates_row, WIDTH),
               .a_row = int8_row(inputs),
               .gates_row = gates_row};
  int64_t begin, end, blocks = ceil_div(rows, ROWS);
  team_share(team, p.panels * blocks, &begin, &end);
  if (begin == end) return;
  matrices m;
  matrices_begin(&m, (int)min_i64(rows, MATRIX_ROWS));
  for (int64_t i = begin; i < end; i++) {
    const int64_t first = i % blocks * ROWS;
    block(&p, &m, i / blocks, first, min_i64(rows - first, ROWS));
  }
  matrices_end(&m);
}
