/* SPDX-License-Identifier: MIT */
/* A matrix in f32, transposed by squares of LANES rows and columns in registers. */
#ifndef TRANSPOSE_H
#define TRANSPOSE_H

#include "panel.h"
#include "simd/simd.h"

/* A square of which `rows` rows and `columns` columns are there; rows that are not are zeros. `kept` numbers of each
 * result are stored. */
SIMD_FUNCTION void transpose_square(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows,
                                    int64_t columns, int64_t kept) {
  vec square[LANES];
#pragma clang loop unroll(full)
  for (int i = 0; i < LANES; i++) square[i] = i < rows ? panel_load(from + i * from_row, columns) : vzero();
  vtranspose(square);
#pragma clang loop unroll(full)
  for (int i = 0; i < LANES; i++)
    if (i < columns) panel_store(to + i * to_row, square[i], kept);
}

/* to[j * to_row + i] = from[i * from_row + j], of `rows` rows i and `columns` columns j. */
SIMD_FUNCTION void transpose_floats(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows,
                                    int64_t columns) {
  for (int64_t i = 0; i < rows; i += LANES)
    for (int64_t j = 0; j < columns; j += LANES)
      transpose_square(to + j * to_row + i, to_row, from + i * from_row + j, from_row, rows - i, columns - j, rows - i);
}

#endif
