/* SPDX-License-Identifier: MIT */
/*
 * The output of Reshape and other views is their input's memory in another shape. A graph output whose memory would be
 * a graph input, a constant or another output is copied, because the module must write every output.
 */
#include "ir/op.h"
#include "passes.h"

/* Replaces the graph output by a copy of the same name. */
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
  bool *taken = ARENA_ARRAY(graph->arena, bool, graph->n_values); /* by id of a root: another output has this memory */
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

/* needs: simplify, insert_layout_transforms. keeps: nodes and shapes. Sets view_of; afterwards no output shares memory
 * with an input, a constant or another output. */
void alias_views(Graph *graph) {
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    if (op_is_view(node->op) && !node->op->family) node->outputs[0]->view_of = node->inputs[0];
  }
  copy_shared_outputs(graph);
  graph_renumber(graph);
}
