/* SPDX-License-Identifier: MIT */
/*
 * Matrix products of 8-bit numbers: MatMulInteger, QLinearMatMul, QGemm and MatMulIntegerToFloat name their operands in
 * orders of their own, and compute
 *
 *   sums[m][n] = bias[n] + sum over k of (a[m][k] - a_zero) (b[k][n] - b_zero[n]), in i32
 *   y[m][n] = sums[m][n] * scale[n] + addend[n], in f32; quantised where y has a zero point
 */
#ifndef RNNCC_INTEGER_PRODUCT_H
#define RNNCC_INTEGER_PRODUCT_H

#include "ir/graph.h"
#include "ir/op.h"

/* The inputs of an operator, or -1. scale = a_scale * b_scale, times alpha, over y_scale, each rounded to f32. */
typedef struct ProductInputs {
  OpKind op;
  int a, a_scale, a_zero, b, b_scale, b_zero, bias, addend, y_scale, y_zero;
} ProductInputs;

/* NULL: none of these operators. */
const ProductInputs *product_inputs(const Node *node);

/* A matrix of weights less their zero points, as s8. */
typedef struct CentredWeights {
  int8_t *numbers; /* like b: [matrices][k][n], or of QGemm with transB [n][k] */
  int zero;        /* what is still to be subtracted from each, as the differences do not fit */
} CentredWeights;

/* Of constant weights, zero points [1] or [n]; of the latter all differences fit. turned: b is [n][k]. */
CentredWeights centred_weights(Arena *arena, const Value *b, const Value *zero, bool turned);

/* Have templates/gemm_int8.c's kernels all that the node needs: a constant zero point of B, and one for all of B if
 * only the run knows it; A's zero point and scale one for all; a known depth, sums within 31 bits? */
bool integer_product_has_kernel(const Node *node);

#endif
