/* SPDX-License-Identifier: MIT */
/*
 * Targets of Reshape and Expand that are computed from shapes at run time become constants: 0 and -1 in Reshape, 1 in
 * Expand, stand for what the input's shape says. The arithmetic that computed them is then dead.
 */
#include <string.h>

#include "graph/simplify.h"
#include "ir/op.h"

/* The target's entry for `axis`; false if only the computed one will do. */
static bool reshape_entry(const Node *node, int axis, bool *open, int64_t *entry) {
  const Value *input = node->inputs[0], *output = node->outputs[0];
  const Dim *extent = output->shape[axis];
  *entry = -1;
  if (dim_is_const(extent))
    *entry = dim_value(extent);
  else if (axis < input->rank && input->shape[axis] == extent && node_int(node, "allowzero") == 0)
    *entry = 0;
  else if (*open)
    return false;
  else
    *open = true;
  return true;
}

static bool expand_entry(const Node *node, int axis, int64_t *entry) {
  const Value *input = node->inputs[0], *output = node->outputs[0];
  const Dim *extent = output->shape[axis];
  int mine = axis - (output->rank - input->rank);
  if (dim_is_const(extent))
    *entry = dim_value(extent);
  else if (mine >= 0 && input->shape[mine] == extent)
    *entry = 1;
  else
    return false;
  return true;
}

static bool is_op(const Node *node, const char *name) { return !strcmp(node->op->name, name); }

static void settle(Graph *graph, Node *node) {
  int64_t target[MAX_RANK], rank = node->outputs[0]->rank;
  bool open = false;
  for (int axis = 0; axis < rank; axis++) {
    bool known = is_op(node, "Reshape") ? reshape_entry(node, axis, &open, &target[axis])
                                        : expand_entry(node, axis, &target[axis]);
    if (!known) return;
  }
  const void *data = arena_copy(graph->arena, target, (size_t)rank * sizeof *target);
  node->inputs[1] = graph_constant(graph, node->inputs[1]->name, RNNCC_I64, 1, &rank, data);
}

/* needs: infer_shapes. keeps: everything else. */
void settle_operands(Graph *graph) {
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    if ((is_op(node, "Reshape") || is_op(node, "Expand")) && !node->inputs[1]->data) settle(graph, node);
  }
}
