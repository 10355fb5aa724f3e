/* SPDX-License-Identifier: MIT */
/*
 * The gates' gradients, a row for each sample and time, transposed: the left-hand matrix of the gradients of weights.
 * On the way each column is summed, row by row: the gradient of a bias.
 */
#include "kernel.h"
#include "panel.h"
#include "simd/simd.h"

/* Vectors of columns that are read side by side. */
enum { STRIP = 4 };

typedef struct Turn {
  const float *from;
  float *to;
  int64_t rows, columns, from_row, to_row;
} Turn;

/* LANES rows from `row` on, of one vector of columns; `sums` grows by them. */
SIMD_FUNCTION vec turn_square(const Turn *t, int64_t row, int64_t column, vec sums) {
  int64_t count = t->rows - row, width = t->columns - column;
  vec square[LANES];
#pragma clang loop unroll(full)
  for (int i = 0; i < LANES; i++) {
    square[i] = i < count ? panel_load(t->from + (row + i) * t->from_row + column, width) : vzero();
    sums = vadd(sums, square[i]);
  }
  if (!t->to) return sums;
  vtranspose(square);
#pragma clang loop unroll(full)
  for (int i = 0; i < LANES; i++)
    if (i < width) panel_store(t->to + (column + i) * t->to_row + row, square[i], count);
  return sums;
}

/* from: [rows][from_row], of which `columns` are turned; to: [columns][to_row], or NULL. sums and same_sums: the sums
 * of the columns, or NULL. */
static void turn_gradients(const Team *team, const float *from, float *to, float *sums, float *same_sums, int64_t rows,
                           int64_t columns, int64_t from_row, int64_t to_row) {
  Turn turn = {from, to, rows, columns, from_row, to_row};
  int64_t strip, end;
  team_share(team, ceil_div(columns, STRIP * LANES), &strip, &end);
  for (; strip < end; strip++) {
    vec totals[STRIP];
    for (int v = 0; v < STRIP; v++) totals[v] = vzero();
    for (int64_t row = 0; row < rows; row += LANES) {
      for (int v = 0; v < STRIP; v++) {
        int64_t column = (strip * STRIP + v) * LANES;
        if (column < columns) totals[v] = turn_square(&turn, row, column, totals[v]);
      }
    }
    for (int v = 0; v < STRIP; v++) {
      int64_t column = (strip * STRIP + v) * LANES;
      if (sums) panel_store(sums + column, totals[v], columns - column);
      if (same_sums) panel_store(same_sums + column, totals[v], columns - column);
    }
  }
}
