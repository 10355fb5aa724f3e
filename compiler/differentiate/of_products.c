/* SPDX-License-Identifier: MIT */
/* Gradients of matrix products: Y = A B gives dA = dY B', dB = A' dY. */
#include "differentiate/rule.h"
#include "ir/op.h"

const char *of_gemm(const Gradient *g) {
  const Formula *f = g->f;
  const Node *node = g->node;
  Value *a = node->inputs[0], *b = node->inputs[1], *d = gradient_in(g);
  bool turn_a = node_int(node, ATTR_transA), turn_b = node_int(node, ATTR_transB);
  double alpha = node_float(node, ATTR_alpha), beta = node_float(node, ATTR_beta);
  if (a->dtype != RNNCC_F32) return "elements other than f32";
  if (g->wanted[0])
    g->dx[0] = turn_a ? matrix_product(f, b, turn_b, d, true, alpha) : matrix_product(f, d, false, b, !turn_b, alpha);
  if (g->wanted[1])
    g->dx[1] = turn_b ? matrix_product(f, d, true, a, turn_a, alpha) : matrix_product(f, a, !turn_a, d, false, alpha);
  if (node->n_inputs > 2 && g->wanted[2])
    g->dx[2] = sum_to(f, beta == 1 ? d : times(f, d, number(f, d, beta)), node->inputs[2]);
  return NULL;
}

/* All rows of A, in whichever matrix, or its only one, meet the one matrix B: two products of matrices. */
static void of_one_matrix(const Gradient *g, Value *a, Value *b, Value *d) {
  const Formula *f = g->f;
  if (g->wanted[0]) g->dx[0] = shaped_as(f, matrix_product(f, as_matrix(f, d), false, b, true, 1), a);
  if (g->wanted[1]) g->dx[1] = matrix_product(f, as_matrix(f, a), true, as_matrix(f, d), false, 1);
}

const char *of_matmul(const Gradient *g) {
  const Formula *f = g->f;
  Value *a = g->node->inputs[0], *b = g->node->inputs[1], *d = gradient_in(g);
  if (a->dtype != RNNCC_F32) return "elements other than f32";
  if (b->rank == 2) {
    of_one_matrix(g, a, b, d);
    return NULL;
  }
  /* A vector is a matrix of one row, or one column. */
  Value *left = a->rank == 1 ? with_axis(f, a, 0) : a, *right = b->rank == 1 ? with_axis(f, b, 1) : b;
  if (b->rank == 1) d = with_axis(f, d, d->rank);
  if (a->rank == 1) d = with_axis(f, d, d->rank - 1);
  if (g->wanted[0]) {
    Value *da = apply2(f, OP_MatMul, d, matrices_turned(f, right));
    g->dx[0] = shaped_as(f, sum_to(f, da, left), a);
  }
  if (g->wanted[1]) {
    Value *db = apply2(f, OP_MatMul, matrices_turned(f, left), d);
    g->dx[1] = shaped_as(f, sum_to(f, db, right), b);
  }
  return NULL;
}
