/* SPDX-License-Identifier: MIT */
/*
 * y = op(a, b, c), element by element, for any element types: integers, comparisons, Cast, Where. The shape of the work
 * is that of elementwise.c; the loop is plain, and the compiler vectorises it.
 */
#include "kernel.h"
#include "rows.h"
#include "scalar.h"

/* legal: double float int64_t int32_t int16_t int8_t uint64_t uint32_t uint16_t uint8_t */
typedef float A;
/* legal: double float int64_t int32_t int16_t int8_t uint64_t uint32_t uint16_t uint8_t */
typedef float B;
/* legal: double float int64_t int32_t int16_t int8_t uint64_t uint32_t uint16_t uint8_t */
typedef float C;
/* legal: double float int64_t int32_t int16_t int8_t uint64_t uint32_t uint16_t uint8_t */
typedef uint8_t R;

/* Operands; others are not read.
 * legal: 1..3 */
enum { OPERANDS = 2 };
/* Axes after merging, the row's included.
 * legal: 1..8 */
enum { RANK = 1 };
/* 1: the operand moves along the row; 0: it is broadcast.
 * legal: 0 1 */
enum { A_MOVES = 1 };
/* legal: 0 1 */
enum { B_MOVES = 1 };
/* legal: 0 1 */
enum { C_MOVES = 1 };

/* hook: the operation on one element of each operand. */
static inline R op(A a, B b, C c) {
  (void)c;
  return a == b;
}

static void piece(const A *a, const B *b, const C *c, R *y, int64_t n) {
#pragma clang loop vectorize(assume_safety)
  for (int64_t i = 0; i < n; i++) {
    B of_b = 0;
    C of_c = 0;
    if (OPERANDS > 1) of_b = b[B_MOVES * i];
    if (OPERANDS > 2) of_c = c[C_MOVES * i];
    y[i] = op(a[A_MOVES * i], of_b, of_c);
  }
}

/* shape and strides: RANK values each. y is contiguous, and may be an operand of its type that is not broadcast. */
static void elementwise_scalar(const Team *team, const A *a, const B *b, const C *c, R *y, const int64_t *shape,
                               const int64_t *a_stride, const int64_t *b_stride, const int64_t *c_stride) {
  Rows rows = {.axes = RANK - 1, .extent = shape, .stride = {a_stride, b_stride, c_stride}};
  int64_t length = shape[RANK - 1], pieces = ceil_div(length, ROWS_PIECE), item, end;
  team_share(team, rows_count(RANK - 1, shape) * pieces, &item, &end);
  if (item == end) return;
  rows_seek(&rows, item / pieces);
  for (; item < end; item++) {
    int64_t i = item % pieces * ROWS_PIECE;
    piece(a + rows.offset[0] + A_MOVES * i, b + rows.offset[1] + B_MOVES * i, c + rows.offset[2] + C_MOVES * i,
          y + item / pieces * length + i, min_i64(length - i, ROWS_PIECE));
    if ((item + 1) % pieces == 0) rows_next(&rows);
  }
}
