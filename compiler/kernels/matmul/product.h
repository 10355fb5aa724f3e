/* SPDX-License-Identifier: MIT */
/* The extents and strides of a matrix product with batches, shared by its families. */
#ifndef RNNCC_PRODUCT_H
#define RNNCC_PRODUCT_H

#include "ir/graph.h"
#include "program/build.h"

typedef struct Product {
  const Dim *m, *n, *k;
  const Dim *a_row, *a_depth, *b_column, *b_depth; /* strides, in elements */
  int batch_rank;
  const Dim *batch[MAX_RANK], *a_batch[MAX_RANK]; /* extents, strides in elements */
  const Dim *b_batch[MAX_RANK];                   /* strides in matrices */
  const Dim *b_matrices;
  const Value *addend; /* NULL: none */
  const Dim *addend_row, *addend_column;
  double alpha, beta;
} Product;

static inline const Dim *one_of(Graph *graph) { return dim_const(graph->dims, 1); }
static inline const Dim *zero_of(Graph *graph) { return dim_const(graph->dims, 0); }

/* Of numpy.matmul's shapes, without an addend. With one matrix B, batches of A become rows. */
Product product_of(Graph *graph, const Value *a, const Value *b, const Value *y);

/* Operands: dims by the names of parameters, which end with NULL. */
void product_dims(Call *call, const char *const *parameters, const Dim *const *dims);
/* The batch axes, B's strides in units of `b_matrix` elements. */
void product_batches(Call *call, Graph *graph, const Product *p, const Dim *b_matrix);

/* For the profile: its flops, and A, B and C once, in elements of these bytes. */
void product_cost(Call *call, const Product *p, double a_size, double b_size, double c_size);

#endif
