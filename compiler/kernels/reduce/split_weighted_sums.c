/* SPDX-License-Identifier: MIT */
/*
 * A product of joined features and a constant column is the sum of the parts' products, so that the parts need not be
 * joined: w . [a; b] = wa . a + wb . b. A part that is repeated is multiplied before that. Of a part that is the
 * product of each a and each b, as in the similarity of M. Seo et al. (Bidirectional Attention Flow, ICLR 2017), w . (a
 * b) is (w a) . b, a product of matrices: the tensor of all pairs and their features is not made.
 */
#include "kernels/reduce/reduce.h"
#include "passes.h"
#include "shapes/build.h"
#include "shapes/shape.h"

/* Elements of the joined tensor: of fewer, a copy takes less time than several kernels. */
enum { LEAST_ELEMENTS = 8192 };

static const Dim *axis_of(const Value *value, int from_end) { return value->shape[value->rank - from_end]; }

static bool is_one(const Dim *dim) { return dim_equals(dim, 1); }

/* What the value repeats along axes of extent 1, but not the last; else the value. */
static Value *unrepeated(Value *value) {
  const Node *node = value->producer;
  if (!(is_op(node, OP_Expand) || is_op(node, OP_Tile)) || node->n_epilogue) return value;
  Value *x = node->inputs[0];
  if (x->rank != value->rank || !same_dim(axis_of(x, 1), axis_of(value, 1))) return value;
  for (int axis = 0; axis < x->rank; axis++)
    if (!same_dim(x->shape[axis], value->shape[axis]) && !is_one(x->shape[axis])) return value;
  return x;
}

/* a [..., T, 1, D] and b [..., 1, J, D]. */
static bool are_pairs(const Value *a, const Value *b) {
  if (a->rank != b->rank || a->rank < 3 || !same_dim(axis_of(a, 1), axis_of(b, 1))) return false;
  for (int axis = 0; axis < a->rank - 3; axis++)
    if (!same_dim(a->shape[axis], b->shape[axis])) return false;
  return is_one(axis_of(a, 2)) && is_one(axis_of(b, 3)) && !is_one(axis_of(a, 3)) && !is_one(axis_of(b, 2));
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

static Value *call(const Builder *builder, OpKind op, Value *a, Value *b) {
  return build_op(builder, op, 2, (Value *const[]){a, b}, 1, 0, NULL)->outputs[0];
}

/* op: Squeeze or Unsqueeze. */
static Value *with_axis(const Builder *builder, OpKind op, Value *x, int64_t axis) {
  const int64_t one = 1, *axes = arena_copy(builder->graph->arena, &axis, sizeof axis);
  return call(builder, op, x, graph_constant(builder->graph, builder->name, RNNCC_I64, 1, &one, axes));
}

/* (w a) . b of all pairs, [..., T, J, 1]. */
static Value *product_of_pairs(const Builder *builder, Value *a, Value *b, const float *weights) {
  int64_t features = dim_value(axis_of(a, 1)), perm[MAX_RANK];
  Value *scales = graph_constant(builder->graph, builder->name, RNNCC_F32, 1, &features, weights);
  Value *left = call(builder, OP_Mul, with_axis(builder, OP_Squeeze, a, -2), scales);
  Value *right = with_axis(builder, OP_Squeeze, b, -3);
  for (int axis = 0; axis < right->rank; axis++) perm[axis] = axis;
  perm[right->rank - 2] = right->rank - 1;
  perm[right->rank - 1] = right->rank - 2;
  return with_axis(builder, OP_Unsqueeze, call(builder, OP_MatMul, left, build_transpose(builder, right, perm)), -1);
}

static Value *term(const Builder *builder, Value *part, const float *weights) {
  Value *a, *b;
  if (pairs_of(part, &a, &b)) return product_of_pairs(builder, a, b, weights);
  const int64_t shape[] = {dim_value(axis_of(part, 1)), 1};
  Value *column = graph_constant(builder->graph, builder->name, RNNCC_F32, 2, shape, weights);
  return call(builder, OP_MatMul, unrepeated(part), column);
}

/* ---- which products ---- */

/* The Concat of features that the product of a constant column alone reads; NULL: the node is none. */
static const Node *joined(const UseList *uses, const Node *node) {
  if (!is_op(node, OP_MatMul) || node->n_epilogue || node->outputs[0]->dtype != RNNCC_F32) return NULL;
  const Value *x = node->inputs[0], *w = node->inputs[1];
  const Node *concat = x->producer;
  bool column = w->rank == 2 && value_is_known(w) && !w->narrow && is_one(w->shape[1]);
  if (!column || !is_op(concat, OP_Concat) || uses->single[x->id] != node || x->rank < 2) return NULL;
  if (normal_axis(node_int(concat, ATTR_axis), x->rank) != x->rank - 1) return NULL;
  for (int i = 0; i < concat->n_inputs; i++)
    if (!dim_is_const(axis_of(concat->inputs[i], 1))) return NULL;
  return value_optimum(x) >= LEAST_ELEMENTS ? concat : NULL;
}

static Value *sum_of_terms(const Builder *builder, const Node *concat, const float *weights) {
  Value *sum = NULL;
  for (int i = 0; i < concat->n_inputs; i++) {
    Value *part = concat->inputs[i], *more = term(builder, part, weights);
    sum = sum ? call(builder, OP_Add, sum, more) : more;
    weights += dim_value(axis_of(part, 1));
  }
  return sum;
}

/* needs: simplify, choose_precision; before products_by_vectors. keeps: types and shapes of what remains; results but
 * for the order of sums. */
void split_weighted_sums(Graph *graph) {
  UseList uses = graph_uses(graph);
  bool any = false;
  for (int n = 0, n_nodes = graph->n_nodes; n < n_nodes; n++) {
    Node *node = graph->nodes[n];
    const Builder builder = {graph, node->name, node->where};
    const Node *concat = joined(&uses, node);
    if (!concat) continue;
    Value *sum = sum_of_terms(&builder, concat, node->inputs[1]->data);
    if (!shapes_agree(sum, node->outputs[0])) continue; /* every part is repeated along some axis */
    graph_set_output(sum->producer, 0, node->outputs[0]);
    node->outputs[0] = sum; /* which nothing reads */
    any = true;
  }
  if (any && !sort_nodes(graph)) bug("terms of sums read each other");
  graph_remove_dead(graph);
}
