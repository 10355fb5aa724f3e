/* SPDX-License-Identifier: MIT */
/*
 * Reshape and its like cost nothing: their output is their input's memory under another shape. But every graph output
 * must be written by the module, so one that is the caller's input, a constant, or the same memory as another output
 * gets a copy of its own.
 */
#include "ir/op.h"
#include "passes/passes.h"
#include "passes/simplify.h"

/* From here on `output` is a copy of what it was, under the same name. */
static Value *copied(Graph *graph, Value *output) {
  Node *copy = graph_node(graph, op_info(OP_Identity), output->name, 1, 1);
  Value *value = graph_value(graph, output->name, output->where);
  copy->where = output->where;
  copy->inputs[0] = output;
  value->dtype = output->dtype;
  value->rank = output->rank;
  value->shape = output->shape;
  graph_set_output(copy, 0, value);
  return value;
}

static void copy_shared_outputs(Graph *graph) {
  bool *taken = ARENA_ARRAY(graph->arena, bool, graph->n_values); /* by root's id: another output's memory */
  for (int i = 0; i < graph->n_outputs; i++) {
    Value *root = value_root(graph->outputs[i]);
    if (root->is_input || root->data || taken[root->id]) graph->outputs[i] = copied(graph, graph->outputs[i]);
    taken[root->id] = true;
  }
  for (int i = 0; i < graph->n_states; i++) {
    State *state = &graph->states[i];
    Value *root = value_root(state->output);
    if (root->is_input || root->data || taken[root->id]) state->output = copied(graph, state->output);
    taken[root->id] = true;
  }
}

/* needs: simplify, insert_layout_transforms. keeps: nodes and shapes. Sets view_of; afterwards no output's memory is an
 * input's, a constant's or another output's. */
void alias_views(Graph *graph) {
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    if (op_is_view(node->op) && !node->op->family) node->outputs[0]->view_of = node->inputs[0];
  }
  copy_shared_outputs(graph);
  graph_renumber(graph);
}
