/* SPDX-License-Identifier: MIT */
/*
 * C = alpha * A B + beta * D by plain loops, for integers, whose sums wrap around, and f64. Workers take whole rows of
 * C.
 */
#include "kernel.h"

/* Element type.
 * legal: double int64_t int32_t uint64_t uint32_t */
typedef int32_t T;
/* The type of sums: for integers, modulo 2^64.
 * legal: double uint64_t */
typedef uint64_t Total;
/* 1: D is added.
 * legal: 0 1 */
enum { ADDEND = 0 };

enum { FLOATING = (Total)0.5 > 0 };

static Total dot(const T *a, int64_t a_depth, const T *b, int64_t b_depth, int64_t k) {
  Total sum = 0;
  for (int64_t i = 0; i < k; i++) sum += (Total)a[i * a_depth] * (Total)b[i * b_depth];
  return sum;
}

/* Integers are multiplied in f64 and truncated, as Gemm's floating-point factors need. Out of the range of i64 the
 * result is the minimum of i64. */
static Total scaled(Total x, double factor) {
  if (factor == 1) return x;
  if (FLOATING) return (Total)((double)x * factor);
  double product = factor * (double)(int64_t)x;
  return (Total)(product > -0x1p63 && product < 0x1p63 ? (int64_t)product : INT64_MIN);
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
      Total sum = scaled(dot(from_a, a_depth, from_b + column * b_column, b_depth, k), alpha);
      Total more = ADDEND ? scaled((Total)addend[row * addend_row + column * addend_column], beta) : 0;
      c[item * n + column] = (T)(sum + more);
    }
  }
}
