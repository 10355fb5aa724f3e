/* SPDX-License-Identifier: MIT */
/*
 * C = alpha * A B + beta * D by plain loops, for integers; sums wrap around. Workers take whole
 * rows of C.
 */
#include "kernel.h"

/* Element type.
 * legal: int32_t int64_t */
typedef int32_t T;
/* 1: D is added.
 * legal: 0 1 */
enum { ADDEND = 0 };

/* Sums that may wrap are formed in unsigned arithmetic, where that is defined. */
static int64_t wrapping_dot(const T *a, int64_t a_depth, const T *b, int64_t b_depth, int64_t k) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < k; i++) sum += (uint64_t)a[i * a_depth] * (uint64_t)b[i * b_depth];
  return (int64_t)sum;
}

/* In f64, truncated: what Gemm's floating factors mean to integers. Past the range of i64 the result is its minimum. */
static int64_t scaled(int64_t x, double factor) {
  if (factor == 1) return x;
  double product = factor * (double)x;
  return product > -0x1p63 && product < 0x1p63 ? (int64_t)product : INT64_MIN;
}

/* Strides are in elements, 0 where an operand is repeated. c: [batch][m][n], dense. */
static void matmul_plain(const Team *team, const T *a, const T *b, const T *addend, T *c, double alpha, double beta,
                         int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_depth, int64_t b_depth,
                         int64_t b_column, int64_t addend_row, int64_t addend_column, int64_t batch_rank,
                         const int64_t *batch_dims, const int64_t *a_batch, const int64_t *b_batch) {
  int64_t batches = 1, item, end;
  for (int64_t axis = 0; axis < batch_rank; axis++) batches *= batch_dims[axis];
  team_share(team, batches * m, &item, &end);
  for (; item < end; item++) {
    int64_t row = item % m, index = item / m;
    const T *from_a = a + row * a_row, *from_b = b;
    for (int64_t axis = batch_rank - 1; axis >= 0; axis--) {
      from_a += index % batch_dims[axis] * a_batch[axis];
      from_b += index % batch_dims[axis] * b_batch[axis];
      index /= batch_dims[axis];
    }
    for (int64_t column = 0; column < n; column++) {
      int64_t sum = scaled(wrapping_dot(from_a, a_depth, from_b + column * b_column, b_depth, k), alpha);
      int64_t more = ADDEND ? scaled(addend[row * addend_row + column * addend_column], beta) : 0;
      c[item * n + column] = (T)((uint64_t)sum + (uint64_t)more);
    }
  }
}
