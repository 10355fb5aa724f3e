/* SPDX-License-Identifier: MIT */
/* MatMul as numpy's: vectors are promoted, leading axes broadcast. Gemm: A' B' + C. */
#include "shapes/shape.h"

static bool inner_agrees(Graph *graph, const Node *node, const Dim *a, const Dim *b) {
  return same_dim(a, b) || shape_error(node, "%s times %s: inner extents %s and %s differ%s",
                                       shape_text(graph, node->inputs[0]), shape_text(graph, node->inputs[1]),
                                       dim_text(graph, a), dim_text(graph, b), equal_where(graph, a, b));
}

/* Axis `axis` counted from the end of the batch axes, 1 where there is none. */
static const Dim *batch_extent(Graph *graph, const Value *value, int from_end) {
  int axis = value->rank - 2 - from_end;
  return axis >= 0 ? value->shape[axis] : dim_const(graph->dims, 1);
}

static bool batch_shape(Graph *graph, const Node *node, int batch_rank, const Dim **shape) {
  for (int i = 1; i <= batch_rank; i++) {
    const Dim *a = batch_extent(graph, node->inputs[0], i), *b = batch_extent(graph, node->inputs[1], i);
    shape[batch_rank - i] = broadcast_dim(a, b);
    if (!shape[batch_rank - i])
      return shape_error(node, "%s times %s: batch extents %s and %s do not broadcast",
                         shape_text(graph, node->inputs[0]), shape_text(graph, node->inputs[1]), dim_text(graph, a),
                         dim_text(graph, b));
  }
  return true;
}

bool shape_matmul(Graph *graph, Node *node) {
  if (!check_rank(graph, node, 0, 1, MAX_RANK) || !check_rank(graph, node, 1, 1, MAX_RANK)) return false;
  const Value *a = node->inputs[0], *b = node->inputs[1];
  if (!inner_agrees(graph, node, a->shape[a->rank - 1], b->shape[b->rank > 1 ? b->rank - 2 : 0])) return false;
  int widest = a->rank > b->rank ? a->rank : b->rank;
  int rank = widest > 2 ? widest - 2 : 0;
  const Dim *shape[MAX_RANK];
  if (!batch_shape(graph, node, rank, shape)) return false;
  if (a->rank > 1) shape[rank++] = a->shape[a->rank - 2];
  if (b->rank > 1) shape[rank++] = b->shape[b->rank - 1];
  return set_shape(graph, node, 0, rank, shape);
}

static bool bias_fits(Graph *graph, const Node *node, const Dim *const *shape) {
  const Value *c = node_input(node, 2);
  if (!c) return true;
  const Dim *one = dim_const(graph->dims, 1);
  bool fits = c->rank <= 2;
  for (int axis = 0; fits && axis < c->rank; axis++)
    fits = c->shape[axis] == one || same_dim(c->shape[axis], shape[axis + 2 - c->rank]);
  return fits || shape_error(node, "C is %s; it must broadcast to [%s, %s]", shape_text(graph, c),
                             dim_text(graph, shape[0]), dim_text(graph, shape[1]));
}

bool shape_gemm(Graph *graph, Node *node) {
  if (!check_rank(graph, node, 0, 2, 2) || !check_rank(graph, node, 1, 2, 2)) return false;
  const Dim **a = node->inputs[0]->shape, **b = node->inputs[1]->shape;
  int trans_a = node_int(node, ATTR_transA) != 0, trans_b = node_int(node, ATTR_transB) != 0;
  const Dim *shape[] = {a[trans_a], b[!trans_b]};
  if (!inner_agrees(graph, node, a[!trans_a], b[trans_b]) || !bias_fits(graph, node, shape)) return false;
  return set_shape(graph, node, 0, 2, shape);
}
