/* SPDX-License-Identifier: MIT */
/* Running sums, determinants. */
#include "shapes/shape.h"

int cumsum_axis(Graph *graph, const Node *node) {
  IntList axis;
  if (!operand_ints(graph, node, ATTR_NONE, 1, &axis)) return -1;
  if (axis.n == 1) return check_axis(node, "axis", axis.items[0], node->inputs[0]->rank);
  shape_error(node, "input 1 must be a scalar, found %s", shape_text(graph, node->inputs[1]));
  return -1;
}

bool shape_cumsum(Graph *graph, Node *node) { return cumsum_axis(graph, node) >= 0 && shape_same(graph, node); }

bool shape_determinant(Graph *graph, Node *node) {
  const Value *x = node->inputs[0];
  if (!check_rank(graph, node, 0, 2, MAX_RANK)) return false;
  if (!same_dim(x->shape[x->rank - 2], x->shape[x->rank - 1]))
    return shape_error(node, "input 0 must be square matrices, found %s", shape_text(graph, x));
  return set_shape(graph, node, 0, x->rank - 2, x->shape);
}

/* Positions along the axis are constants. */
bool shape_hardmax(Graph *graph, Node *node) {
  const Value *x = node->inputs[0];
  int axis = check_axis(node, "axis", node_int(node, ATTR_axis), x->rank);
  if (axis < 0) return false;
  if (!dim_is_const(x->shape[axis]))
    return shape_unsupported(node, "axis %d of %s must be known at compile time", axis, shape_text(graph, x));
  return shape_same(graph, node);
}
