/* SPDX-License-Identifier: MIT */
/*
 * y = op(a, b, c) in f32, element by element, with up to three operands broadcast to y's shape. Axes that are
 * contiguous or broadcast together are merged before, so a row is as long as it can be.
 *
 * The last vector of a row is masked and runs through the same op, so NaN and rounding are the same in body and tail.
 */
#include "kernel.h"
#include "rows.h"
#include "simd/math.h"

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

/* hook: the operation on one vector of each operand. */
static inline vec op(vec a, vec b, vec c) {
  (void)c;
  return vadd(a, b);
}

static inline vec load_part(const float *p, bool moves, int64_t i, int n) {
  if (!moves) return vbroadcast_load(p);
  return n == LANES ? vload(p + i) : vload_n(p + i, n);
}

/* n of LANES elements from i on. */
SIMD_FUNCTION vec part(const float *a, const float *b, const float *c, int64_t i, int n) {
  vec va = load_part(a, A_MOVES, i, n), vb = vzero(), vc = vzero();
  if (OPERANDS > 1) vb = load_part(b, B_MOVES, i, n);
  if (OPERANDS > 2) vc = load_part(c, C_MOVES, i, n);
  return op(va, vb, vc);
}

static void piece(const float *a, const float *b, const float *c, float *y, int64_t n) {
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) vstore(y + i, part(a, b, c, i, LANES));
  if (i < n) vstore_n(y + i, part(a, b, c, i, (int)(n - i)), (int)(n - i));
}

/* shape and strides: RANK values each. y is contiguous, and may be an operand that is not broadcast. */
static void elementwise(const Team *team, const float *a, const float *b, const float *c, float *y,
                        const int64_t *shape, const int64_t *a_stride, const int64_t *b_stride,
                        const int64_t *c_stride) {
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
