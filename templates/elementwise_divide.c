/* SPDX-License-Identifier: MIT */
/*
 * Integer Div and Mod with broadcast, over the shape of elementwise.c. A zero divisor is reported, and gives 0; the
 * least integer divided by -1 wraps around. Neither may raise a signal.
 */
#include "kernel.h"
#include "knobs.h"
#include "rows.h"

/* legal: int64_t int32_t int16_t int8_t uint64_t uint32_t uint16_t uint8_t */
typedef int64_t T;

/* DIVIDE_QUOTIENT, ...
 * legal: 0 1 2 */
enum { OPERATION = DIVIDE_QUOTIENT };
/* Axes after merging, the row's included.
 * legal: 1..8 */
enum { RANK = 1 };
/* 1: the operand moves along the row; 0: it is broadcast.
 * legal: 0 1 */
enum { A_MOVES = 1 };
/* legal: 0 1 */
enum { B_MOVES = 1 };

static inline T divided(T a, T b) {
  if (b == 0) return 0;
  if (b == (T)-1 && (T)-1 < 0) return OPERATION != DIVIDE_QUOTIENT ? 0 : (T)(0 - (uint64_t)a);
  if (OPERATION == DIVIDE_QUOTIENT) return (T)(a / b);
  T rest = (T)(a % b);
  if (OPERATION == DIVIDE_REMAINDER) return rest;
  return rest != 0 && (rest < 0) != (b < 0) ? (T)(rest + b) : rest;
}

/* False if a divisor was zero. */
static bool piece(const T *a, const T *b, T *y, int64_t n) {
  bool good = true;
  for (int64_t i = 0; i < n; i++) {
    T divisor = b[B_MOVES * i];
    good = good && divisor != 0;
    y[i] = divided(a[A_MOVES * i], divisor);
  }
  return good;
}

/* shape and strides: RANK values each. y is contiguous, and may be an operand that is not broadcast. */
static void elementwise_divide(const Team *team, atomic_int *fault, const T *a, const T *b, T *y, const int64_t *shape,
                               const int64_t *a_stride, const int64_t *b_stride) {
  Rows rows = {.axes = RANK - 1, .extent = shape, .stride = {a_stride, b_stride, b_stride}};
  int64_t length = shape[RANK - 1], pieces = ceil_div(length, ROWS_PIECE), item, end;
  bool good = true;
  team_share(team, rows_count(RANK - 1, shape) * pieces, &item, &end);
  if (item == end) return;
  rows_seek(&rows, item / pieces);
  for (; item < end; item++) {
    int64_t i = item % pieces * ROWS_PIECE;
    good &= piece(a + rows.offset[0] + A_MOVES * i, b + rows.offset[1] + B_MOVES * i, y + item / pieces * length + i,
                  min_i64(length - i, ROWS_PIECE));
    if ((item + 1) % pieces == 0) rows_next(&rows);
  }
  if (!good) fault_report(fault, RNNCC_ERROR_VALUE);
}
