/* SPDX-License-Identifier: MIT */
/* Matrices in registers, as templates/simd/matrices.h has them: rows and bytes of a row, and how many hold sums. */
#ifndef RNNCC_GEMM_MATRICES_H
#define RNNCC_GEMM_MATRICES_H

enum { MATRIX_ROWS = 16, MATRIX_BYTES = 64, MATRIX_SUMS = 4 };

#endif
