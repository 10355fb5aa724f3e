/* SPDX-License-Identifier: MIT */
/*
 * A gate before its activation: products of inputs with constant weights, plus constants, plus at most one strip that
 * is neither. MatMul, Gemm, Add and Sub may be in any order and association; a product of concatenated inputs is one
 * of each.
 */
#ifndef RNNCC_AFFINE_H
#define RNNCC_AFFINE_H

#include "reroll/strip.h"

enum { MAX_PRODUCTS = 8, MAX_ADDENDS = 8 };

/* scale * input[., K] * weights[row .. row + K, column ..] */
typedef struct Product {
  Strip input; /* at its origin */
  const Value *weights;
  bool transposed; /* weights are [column, row] */
  int64_t row, column;
  double scale;
} Product;

/* scale * the numbers of a constant, one a column or one for all */
typedef struct Addend {
  Strip numbers;
  double scale;
} Addend;

typedef struct Affine {
  int n_products, n_addends;
  Product products[MAX_PRODUCTS];
  Addend addends[MAX_ADDENDS];
  Strip rest; /* `value` NULL: there is none */
} Affine;

/* False if it is not such a sum, or has too many terms. Adds the nodes between the strip and the inputs to the trail.
 */
bool affine_read(Graph *graph, Trail *trail, Strip strip, Affine *affine);

void affine_negate(Affine *affine);

/* Adds the product's weights: to target[unit * stride + k]. */
void product_weights(const Product *product, int64_t units, int64_t stride, float *target);
/* The sum of the addends in the column of a unit. */
double affine_bias(const Affine *affine, int64_t unit);

/* The same constant, or another with the same contents. */
bool same_constant(const Value *a, const Value *b);

#endif
