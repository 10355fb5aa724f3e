/* SPDX-License-Identifier: MIT */
/* Reductions: the named axes, or all of them, become 1 or vanish. */
#include "shapes/shape.h"

static bool set_reduced(Graph *graph, Node *node, const bool reduced[MAX_RANK]) {
  const Value *input = node->inputs[0];
  bool keep = node_int(node, ATTR_keepdims) != 0;
  const Dim *shape[MAX_RANK];
  int rank = 0;
  for (int axis = 0; axis < input->rank; axis++) {
    if (!reduced[axis])
      shape[rank++] = input->shape[axis];
    else if (keep)
      shape[rank++] = dim_const(graph->dims, 1);
  }
  return set_shape(graph, node, 0, rank, shape);
}

bool read_reduced(Graph *graph, const Node *node, bool reduced[MAX_RANK]) {
  IntList axes;
  if (!operand_ints(graph, node, ATTR_axes, 1, &axes)) return false;
  if (!operand_axes(node, &axes, node->inputs[0]->rank, reduced)) return false;
  bool all = axes.n == 0 && node_int(node, ATTR_noop_with_empty_axes) == 0;
  for (int axis = 0; axis < MAX_RANK; axis++) reduced[axis] |= all;
  return true;
}

bool shape_reduce(Graph *graph, Node *node) {
  bool reduced[MAX_RANK];
  return read_reduced(graph, node, reduced) && set_reduced(graph, node, reduced);
}

bool shape_arg(Graph *graph, Node *node) {
  bool reduced[MAX_RANK] = {false};
  int axis = check_axis(node, "axis", node_int(node, ATTR_axis), node->inputs[0]->rank);
  if (axis < 0) return false;
  reduced[axis] = true;
  return set_reduced(graph, node, reduced);
}

bool shape_mean_variance(Graph *graph, Node *node) {
  static const int64_t usual[] = {0, 2, 3};
  IntList axes;
  bool reduced[MAX_RANK];
  if (!operand_ints(graph, node, ATTR_axes, -1, &axes)) return false;
  if (!axes.given) axes = (IntList){true, 3, usual};
  return operand_axes(node, &axes, node->inputs[0]->rank, reduced) && shape_same(graph, node);
}
