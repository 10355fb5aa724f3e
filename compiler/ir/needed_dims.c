/* SPDX-License-Identifier: MIT */
/* Nodes that others need for the extents alone that they find: NonZero, where only how many there are is read. */
#include "ir/bodies.h"
#include "ir/control.h"

static void mark_value(const Value *value, bool *marks) {
  if (!value || value->rank < 0) return;
  for (int axis = 0; axis < value->rank; axis++) dim_mark_symbols(value->shape[axis], marks);
  int64_t count = value->elements && value_static(value) ? value_count(value) : 0;
  for (int64_t i = 0; i < count; i++) dim_mark_symbols(value->elements[i], marks);
}

void node_mark_dims(const Node *node, bool *marks) {
  Attribute *bodies[MAX_BODIES];
  int count = node_bodies(node, bodies);
  for (int i = 0; i < node->n_inputs; i++) mark_value(node->inputs[i], marks);
  for (int i = 0; i < node->n_outputs; i++) mark_value(node->outputs[i], marks);
  if (node->control && node->control->trip) dim_mark_symbols(node->control->trip, marks);
  for (int b = 0; b < count; b++)
    for (int n = 0; n < bodies[b]->graph->n_nodes; n++) node_mark_dims(bodies[b]->graph->nodes[n], marks);
}

/* Most nodes have none that is found. */
static bool any_found(const Node *node) {
  for (int i = 0; i < node->n_outputs; i++)
    for (int axis = 0; node->outputs[i] && axis < node->outputs[i]->rank; axis++)
      if (!dim_is_given(node->outputs[i]->shape[axis])) return true;
  return false;
}

bool node_finds_dim(const Graph *graph, const Node *node, const bool *marks) {
  if (!any_found(node)) return false;
  int n_symbols = dim_symbol_count(graph->dims);
  bool *before = ARENA_ARRAY(graph->arena, bool, n_symbols), *after = ARENA_ARRAY(graph->arena, bool, n_symbols);
  for (int i = 0; i < node->n_inputs; i++) mark_value(node->inputs[i], before);
  for (int i = 0; i < node->n_outputs; i++) mark_value(node->outputs[i], after);
  for (int s = 0; s < n_symbols; s++)
    if (marks[s] && after[s] && !before[s] && dim_symbol_at(graph->dims, s)->kind != DIM_GIVEN) return true;
  return false;
}
