/* SPDX-License-Identifier: MIT */
/*
 * A product of a matrix and a vector becomes a sum of element-wise products, as one node: the matrix is read once,
 * where it stands, in whole vectors. The kernel of products packs its second matrix, and would use one lane of each
 * vector of a single column. What element-wise nodes compute of the matrix, fuse_reductions makes part of the sum.
 *
 *   A v, v [K, 1]    sums along the rows of A; along the columns of X where A is X', which is then not needed
 *   v B, v [1, K]    sums along the columns of B, or along the rows of Y where B is Y'. Constants are packed beforehand
 *
 * Batches are as in MatMul, of as many matrices as vectors.
 */
#include "kernels/reduce/reduce.h"

#include "expand/formula.h"
#include "passes.h"
#include "shapes/shape.h"

/* Shorter rows fill too little of a vector. A single row by a constant column is as fast where it is packed. */
enum { LEAST_DEPTH = 8, LEAST_SUMS = 4 };

typedef struct VectorProduct {
  Value *matrix, *vector, *addend; /* the vector: [..., K, 1], [..., 1, K] or [K]; the addend: of a Gemm, or NULL */
  bool column;                     /* the vector is the second operand */
  bool turned;                     /* the matrix stands transposed */
} VectorProduct;

/* ---- views ---- */

/* X of the Transpose X' of the last two axes, which computes the value; NULL: it is none. */
static Value *untransposed(const Value *value) {
  const Node *node = value->producer;
  if (!is_op(node, OP_Transpose) || node->n_epilogue) return NULL;
  const Attribute *perm = node_attribute(node, ATTR_perm);
  int rank = value->rank;
  if (!perm) return rank == 2 ? node->inputs[0] : NULL;
  for (int axis = 0; axis < rank; axis++) {
    int from = axis == rank - 1 ? rank - 2 : axis == rank - 2 ? rank - 1 : axis;
    if (normal_axis(perm->ints[axis], rank) != from) return NULL;
  }
  return node->inputs[0];
}

/* [K] as [K, 1]. */
static Value *standing_vector(const Formula *f, Value *x) {
  if (!value_is_known(x)) return with_axis(f, x, -1);
  const int64_t shape[] = {dim_value(x->shape[0]), 1};
  return graph_constant(f->graph, x->name, x->dtype, 2, shape, x->data);
}

/* [..., K, 1] as [..., 1, K], or the other way. */
static Value *turned_vector(const Formula *f, Value *x) {
  bool stands = dim_equals(extent_from_end(x, 1), 1);
  Value *below = untransposed(x);
  if (below) return below;
  if (!value_is_known(x)) {
    Value *flat = without_axis(f, x, stands ? -1 : -2);
    return with_axis(f, flat, stands ? -2 : -1);
  }
  int64_t shape[MAX_RANK], last = dim_value(extent_from_end(x, 1));
  for (int axis = 0; axis < x->rank; axis++) shape[axis] = dim_value(x->shape[axis]);
  shape[x->rank - 1] = shape[x->rank - 2];
  shape[x->rank - 2] = last;
  return graph_constant(f->graph, x->name, x->dtype, x->rank, shape, x->data);
}

/* ---- which products ---- */

/* Has each matrix a vector of its own, or all one vector? Matrices that are repeated are products of matrices. */
static bool batches_fit(const VectorProduct *p) {
  for (int i = 3; i <= p->vector->rank; i++) {
    const Dim *vectors = extent_from_end(p->vector, i);
    if (!dim_equals(vectors, 1) && (i > p->matrix->rank || !same_dim(vectors, extent_from_end(p->matrix, i))))
      return false;
  }
  return true;
}

/* A matrix that is constant, and the second operand, has been packed. */
static bool find_matmul(const Node *node, VectorProduct *p) {
  Value *a = node->inputs[0], *b = node->inputs[1];
  if (a->rank < 2) return false;
  bool column = b->rank == 1 || dim_equals(extent_from_end(b, 1), 1),
       row = b->rank > 1 && dim_equals(extent_from_end(a, 2), 1);
  if (!column && (!row || value_is_constant(b))) return false;
  Value *matrix = column ? a : b, *below = value_is_constant(matrix) ? NULL : untransposed(matrix);
  *p = (VectorProduct){below ? below : matrix, column ? b : a, NULL, column, below != NULL};
  return batches_fit(p);
}

static bool find_gemm(const Node *node, VectorProduct *p) {
  Value *b = node->inputs[1], *c = node_input(node, 2);
  bool plain = node_float(node, ATTR_alpha) == 1 && (!c || node_float(node, ATTR_beta) == 1);
  *p = (VectorProduct){node->inputs[0], b, c, true, node_int(node, ATTR_transA)};
  return plain && dim_equals(extent_from_end(b, node_int(node, ATTR_transB) ? 2 : 1), 1);
}

/* The sums run along the rows of the matrix as it stands, or along its columns. */
static bool along_rows(const VectorProduct *p) { return p->column != p->turned; }

static bool gains(const VectorProduct *p) {
  const Dim *depth = extent_from_end(p->matrix, along_rows(p) ? 1 : 2);
  if (along_rows(p) && dim_optimum(depth) < LEAST_DEPTH) return false;
  double sums = value_optimum(p->matrix) / (double)dim_optimum(depth);
  return !value_is_constant(p->vector) || sums >= LEAST_SUMS;
}

/* Not numbers that a kernel keeps small, or that a program can set and a view would have to follow. */
static bool has_floats(const Value *value) {
  return value->dtype == RNNCC_F32 && !value->narrow && (value_is_known(value) || !value_is_constant(value));
}

static bool is_vector_product(const Node *node, VectorProduct *p) {
  if (node->n_epilogue || !(is_op(node, OP_MatMul) || is_op(node, OP_Gemm))) return false;
  bool found = is_op(node, OP_MatMul) ? find_matmul(node, p) : find_gemm(node, p);
  return found && has_floats(p->matrix) && has_floats(p->vector) && gains(p);
}

/* ---- what they become ---- */

/* The vector along the axis of the matrix that is summed. */
static Value *factor(const Formula *f, const VectorProduct *p) {
  Value *vector = p->vector;
  if (vector->rank == 1) return along_rows(p) ? vector : standing_vector(f, vector);
  return dim_equals(extent_from_end(vector, 2), 1) == along_rows(p) ? vector : turned_vector(f, vector);
}

static Value *sum_of(const Formula *f, const VectorProduct *p, bool keeps_axis) {
  const int64_t axis = along_rows(p) ? -1 : -2;
  Value *product = times(f, p->matrix, factor(f, p));
  Value *sum = keeps_axis ? reduced(f, OP_ReduceSum, product, 1, &axis) : summed_away(f, product, 1, &axis);
  if (!fuse_into_reduction(f->graph, sum->producer, product->producer)) bug("two operands are too many");
  f->graph->nodes[product->producer->id] = NULL;
  return sum;
}

/* In the shape of the product: the axis that is summed is the vector's, or gives its place to it. */
static Value *summed(const Formula *f, const VectorProduct *p) {
  bool flat = p->vector->rank == 1, in_place = p->column == along_rows(p);
  Value *sum = sum_of(f, p, in_place && !flat);
  if (!in_place && !flat) sum = with_axis(f, sum, p->column ? -1 : -2);
  return p->addend ? plus(f, sum, p->addend) : sum;
}

/* needs: simplify, fuse_attention, choose_precision; before fuse_epilogue. keeps: types and shapes of what remains;
 * results but for the order of sums. breaks: that every node is one of ops.def. */
void products_by_vectors(Graph *graph) {
  bool any = false;
  for (int n = 0, n_nodes = graph->n_nodes; n < n_nodes; n++) {
    Node *node = graph->nodes[n];
    const Formula f = {graph, node->name, node->where};
    VectorProduct product;
    if (!is_vector_product(node, &product)) continue;
    Value *sum = summed(&f, &product);
    graph_set_output(sum->producer, 0, node->outputs[0]);
    graph->nodes[n] = NULL;
    any = true;
  }
  if (any) graph_tidy(graph);
}
