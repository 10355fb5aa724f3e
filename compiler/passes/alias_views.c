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
  Value *value = graph_value_like(graph, output->name, output->where, output);
  copy->where = output->where;
  copy->inputs[0] = output;
  graph_set_output(copy, 0, value);
  return value;
}

/* taken: by id of a root, another output has this memory. */
static void copy_if_shared(Graph *graph, Value **output, bool *taken) {
  Value *root = value_root(*output);
  if (root->is_input || root->data || taken[root->id]) *output = copied(graph, *output);
  taken[root->id] = true;
}

static void copy_shared_outputs(Graph *graph) {
  bool *taken = ARENA_ARRAY(graph->arena, bool, graph->n_values);
  for (int i = 0; i < graph->n_outputs; i++) copy_if_shared(graph, &graph->outputs[i], taken);
  for (int i = 0; i < graph->n_states; i++) copy_if_shared(graph, &graph->states[i].output, taken);
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
