/* SPDX-License-Identifier: MIT */
/*
 * A product of joined features and a constant column is the sum of the parts' products, so that the parts need not be
 * joined: w . [a; b] = wa . a + wb . b. A part that is repeated is multiplied before that. Of a part that is the
 * product of each a and each b, as in the similarity of M. Seo et al. (Bidirectional Attention Flow, ICLR 2017), w . (a
 * b) is (w a) . b, a product of matrices: the tensor of all pairs and their features is not made.
 */
#include "expand/formula.h"
#include "passes.h"
#include "shapes/shape.h"

/* Elements of the joined tensor: of fewer, a copy takes less time than several kernels. */
enum { LEAST_ELEMENTS = 8192 };

/* What the value repeats along axes of extent 1, but not the last; else the value. */
static Value *unrepeated(Value *value) {
  const Node *node = value->producer;
  if (!(is_op(node, OP_Expand) || is_op(node, OP_Tile)) || node->n_epilogue) return value;
  Value *x = node->inputs[0];
  if (x->rank != value->rank || !same_dim(extent_from_end(x, 1), extent_from_end(value, 1))) return value;
  for (int axis = 0; axis < x->rank; axis++)
    if (!same_dim(x->shape[axis], value->shape[axis]) && !dim_equals(x->shape[axis], 1)) return value;
  return x;
}

/* a [..., T, 1, D] and b [..., 1, J, D]. */
static bool are_pairs(const Value *a, const Value *b) {
  if (a->rank != b->rank || a->rank < 3 || !same_dim(extent_from_end(a, 1), extent_from_end(b, 1))) return false;
  for (int axis = 0; axis < a->rank - 3; axis++)
    if (!same_dim(a->shape[axis], b->shape[axis])) return false;
  return dim_equals(extent_from_end(a, 2), 1) && dim_equals(extent_from_end(b, 3), 1) &&
         !dim_equals(extent_from_end(a, 3), 1) && !dim_equals(extent_from_end(b, 2), 1);
}

/* Is the part the product of all pairs? Then *a and *b are what it pairs. */
static bool pairs_of(const Value *part, Value **a, Value **b) {
  const Node *mul = part->producer;
  if (!is_op(mul, OP_Mul) || mul->n_epilogue) return false;
  for (int i = 0; i < 2; i++) {
    *a = unrepeated(mul->inputs[i]);
    *b = unrepeated(mul->inputs[1 - i]);
    if (are_pairs(*a, *b)) return true;
  }
  return false;
}

/* ---- the terms ---- */

/* (w a) . b of all pairs, [..., T, J, 1]. */
static Value *product_of_pairs(const Formula *f, Value *a, Value *b, const float *weights) {
  int64_t features = dim_value(extent_from_end(a, 1));
  Value *scales = graph_constant(f->graph, f->name, RNNCC_F32, 1, &features, weights);
  Value *left = times(f, without_axis(f, a, -2), scales), *right = without_axis(f, b, -3);
  return with_axis(f, apply2(f, OP_MatMul, left, matrices_turned(f, right)), -1);
}

static Value *term(const Formula *f, Value *part, const float *weights) {
  Value *a, *b;
  if (pairs_of(part, &a, &b)) return product_of_pairs(f, a, b, weights);
  const int64_t shape[] = {dim_value(extent_from_end(part, 1)), 1};
  Value *column = graph_constant(f->graph, f->name, RNNCC_F32, 2, shape, weights);
  return apply2(f, OP_MatMul, unrepeated(part), column);
}

/* ---- which products ---- */

/* The Concat of features that the product of a constant column alone reads; NULL: the node is none. */
static const Node *joined(const UseList *uses, const Node *node) {
  if (!is_op(node, OP_MatMul) || node->n_epilogue || node->outputs[0]->dtype != RNNCC_F32) return NULL;
  const Value *x = node->inputs[0], *w = node->inputs[1];
  const Node *concat = x->producer;
  bool column = w->rank == 2 && value_is_known(w) && !w->narrow && dim_equals(w->shape[1], 1);
  if (!column || !is_op(concat, OP_Concat) || uses->single[x->id] != node || x->rank < 2) return NULL;
  if (normal_axis(node_int(concat, ATTR_axis), x->rank) != x->rank - 1) return NULL;
  for (int i = 0; i < concat->n_inputs; i++)
    if (!dim_is_const(extent_from_end(concat->inputs[i], 1))) return NULL;
  return value_optimum(x) >= LEAST_ELEMENTS ? concat : NULL;
}

static Value *sum_of_terms(const Formula *f, const Node *concat, const float *weights) {
  Value *sum = NULL;
  for (int i = 0; i < concat->n_inputs; i++) {
    Value *part = concat->inputs[i], *more = term(f, part, weights);
    sum = sum ? plus(f, sum, more) : more;
    weights += dim_value(extent_from_end(part, 1));
  }
  return sum;
}

/* needs: simplify, choose_precision; before products_by_vectors. keeps: types and shapes of what remains; results but
 * for the order of sums. */
void split_weighted_sums(Graph *graph) {
  UseList uses = graph_uses(graph);
  for (int n = 0, n_nodes = graph->n_nodes; n < n_nodes; n++) {
    Node *node = graph->nodes[n];
    const Formula f = {graph, node->name, node->where};
    const Node *concat = joined(&uses, node);
    if (!concat) continue;
    Value *sum = sum_of_terms(&f, concat, node->inputs[1]->data);
    if (!shapes_agree(sum, node->outputs[0])) continue; /* every part is repeated along some axis */
    graph_set_output(sum->producer, 0, node->outputs[0]);
    node->outputs[0] = sum; /* which nothing reads */
  }
  graph_tidy(graph);
}
