/* SPDX-License-Identifier: MIT */
/* Losses: of scores x[N, C, ...], and for each other place a target, one of the C classes. */
#include "shapes/shape.h"

bool shape_loss(Graph *graph, Node *node) {
  const Value *x = node->inputs[0];
  const Dim *places[MAX_RANK];
  if (!check_rank(graph, node, 0, 2, MAX_RANK)) return false;
  for (int axis = 0, from = 0; axis < x->rank; axis++)
    if (axis != 1) places[from++] = x->shape[axis];
  if (!check_shape(graph, node, 1, x->rank - 1, places, "[N, ...] of the scores [N, C, ...]")) return false;
  if (!check_shape(graph, node, 2, 1, &x->shape[1], "a weight for each of the classes")) return false;
  set_shape(graph, node, 1, x->rank, x->shape);
  return set_shape(graph, node, 0, node_word(node, ATTR_reduction) == LOSS_none ? x->rank - 1 : 0, places);
}
