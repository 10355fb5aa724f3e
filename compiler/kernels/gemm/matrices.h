/* SPDX-License-Identifier: MIT */
/* Matrices in registers, as templates/simd/matrices.h has them: rows and bytes of a row, and how many hold sums. */
#ifndef RNNCC_GEMM_MATRICES_H
#define RNNCC_GEMM_MATRICES_H

#include "machine/targets.h"
#include "support/numbers.h"

enum { MATRIX_ROWS = 16, MATRIX_BYTES = 64, MATRIX_SUMS = 4 };

/* Below so many rows or depths their instructions do too little; they are set up for each call, which costs more than
 * they gain below so many products. Of bytes, measured beside VNNI. */
enum { LEAST_MATRIX_ROWS = 6, LEAST_MATRIX_DEPTH = 48, LEAST_MATRIX_PRODUCTS = 3 << 17 };

/* Is a product of bytes, [m][k] by [k][n], made by them? */
static inline bool product_in_matrices(const Target *target, int64_t m, int64_t n, int64_t k) {
  return target->has_matrices && m >= LEAST_MATRIX_ROWS && k >= LEAST_MATRIX_DEPTH &&
         saturating_mul(saturating_mul(m, n), k) >= LEAST_MATRIX_PRODUCTS;
}

#endif
