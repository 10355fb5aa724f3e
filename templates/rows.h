/* SPDX-License-Identifier: MIT */
/*
 * Iteration over a box whose last axis is a row: rows are cut into pieces, pieces are shared out, and an odometer has
 * the offset of the current row in each operand. Operands have strides in elements, 0 along a broadcast axis.
 */
#ifndef ROWS_H
#define ROWS_H

#include "kernel.h"

/* Minimum elements of a worker: ROWS_PIECE of a row, enough to be worth a barrier, and whole cache lines. */
enum { ROWS_OPERANDS = 3, ROWS_PIECE = 1024 };

typedef struct Rows {
  int axes;              /* before the row */
  const int64_t *extent; /* of those axes, then of the row */
  const int64_t *stride[ROWS_OPERANDS];
  int64_t index[RNNCC_MAX_RANK];
  int64_t offset[ROWS_OPERANDS]; /* where the row begins */
} Rows;

static inline int64_t rows_count(int axes, const int64_t *extent) {
  int64_t count = 1;
  for (int axis = 0; axis < axes; axis++) count *= extent[axis];
  return count;
}

/* 0 <= row < rows_count: no extent is zero. */
static inline void rows_seek(Rows *rows, int64_t row) {
  for (int k = 0; k < ROWS_OPERANDS; k++) rows->offset[k] = 0;
  for (int axis = rows->axes - 1; axis >= 0; axis--) {
    rows->index[axis] = row % rows->extent[axis];
    row /= rows->extent[axis];
    for (int k = 0; k < ROWS_OPERANDS; k++) rows->offset[k] += rows->index[axis] * rows->stride[k][axis];
  }
}

static inline void rows_next(Rows *rows) {
  for (int axis = rows->axes - 1; axis >= 0; axis--) {
    bool carry = ++rows->index[axis] == rows->extent[axis];
    int64_t steps = carry ? 1 - rows->extent[axis] : 1;
    for (int k = 0; k < ROWS_OPERANDS; k++) rows->offset[k] += steps * rows->stride[k][axis];
    if (!carry) return;
    rows->index[axis] = 0;
  }
}

#endif
