/* SPDX-License-Identifier: MIT */
/* Element-wise ops: the input's shape, or what the inputs broadcast to. */
#include "shapes/shape.h"

/* Clip's bounds. */
static bool check_scalars(Graph *graph, const Node *node) {
  for (int i = 1; i < node->n_inputs; i++)
    if (!check_scalar(graph, node, i)) return false;
  return true;
}

bool shape_unary(Graph *graph, Node *node) { return check_scalars(graph, node) && shape_same(graph, node); }

bool shape_cast(Graph *graph, Node *node) {
  node->outputs[0]->dtype = node_dtype(node, ATTR_to);
  if (node->outputs[0]->dtype == RNNCC_NONE)
    return shape_unsupported(node, "`to` is \"%.100s\"; it may be one of %s", node_attribute(node, ATTR_to)->s,
                             dtype_names);
  return shape_same(graph, node);
}

/* Only 0 and 1 are bools. */
bool shape_bit_cast(Graph *graph, Node *node) {
  const Value *x = node->inputs[0];
  if (!shape_cast(graph, node)) return false;
  DType to = node->outputs[0]->dtype;
  if (to == RNNCC_BOOL && x->dtype != RNNCC_BOOL) return shape_unsupported(node, "bits as bool");
  if (dtype_info(to)->bits == dtype_info(x->dtype)->bits) return true;
  return shape_error(node, "`to` is %s; expected a type of as many bits as %s", dtype_name(to), shape_text(graph, x));
}

/* PRelu's slope follows its input, never the other way round. */
static bool check_slope(Graph *graph, const Node *node) {
  const Value *x = node->inputs[0];
  return shapes_agree(node->outputs[0], x) || shape_error(node, "the slope, %s, must broadcast to %s",
                                                          shape_text(graph, node->inputs[1]), shape_text(graph, x));
}

bool shape_broadcast(Graph *graph, Node *node) {
  return broadcast_inputs(graph, node) && (!is_op(node, OP_PRelu) || check_slope(graph, node));
}

bool shape_softmax(Graph *graph, Node *node) {
  return check_axis(node, "axis", node_int(node, ATTR_axis), node->inputs[0]->rank) >= 0 && shape_same(graph, node);
}
