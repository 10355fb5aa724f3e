/* SPDX-License-Identifier: MIT */
/* Determinants of `count` matrices of m x m, by elimination with partial pivoting in double, by the first worker. */
#include "kernel.h"

/* legal: float double */
typedef float T;

static void swap_rows(double *a, double *b, int64_t m) {
  for (int64_t column = 0; column < m; column++) {
    double kept = a[column];
    a[column] = b[column];
    b[column] = kept;
  }
}

/* The row from `step` on whose element in that column is largest. */
static int64_t pivot_row(const double *matrix, int64_t m, int64_t step) {
  int64_t best = step;
  for (int64_t row = step + 1; row < m; row++)
    if (__builtin_fabs(matrix[row * m + step]) > __builtin_fabs(matrix[best * m + step])) best = row;
  return best;
}

static void eliminate(double *matrix, int64_t m, int64_t step) {
  const double *pivot = matrix + step * m;
  for (int64_t row = step + 1; row < m; row++) {
    double factor = matrix[row * m + step] / pivot[step];
    for (int64_t column = step + 1; column < m; column++) matrix[row * m + column] -= factor * pivot[column];
  }
}

static double determinant_of(double *matrix, int64_t m) {
  double product = 1;
  for (int64_t step = 0; step < m; step++) {
    int64_t pivot = pivot_row(matrix, m, step);
    if (pivot != step) {
      swap_rows(matrix + pivot * m, matrix + step * m, m);
      product = -product;
    }
    product *= matrix[step * m + step];
    if (matrix[step * m + step] == 0) return 0;
    eliminate(matrix, m, step);
  }
  return product;
}

/* scratch: m * m doubles. */
static void determinant(const Team *team, const T *x, T *y, double *scratch, int64_t count, int64_t m) {
  for (int64_t item = 0; item < count && team->rank == 0; item++) {
    for (int64_t i = 0; i < m * m; i++) scratch[i] = (double)x[item * m * m + i];
    y[item] = (T)determinant_of(scratch, m);
  }
}
