/* SPDX-License-Identifier: MIT */
/*
 * Connected element-wise nodes that are not epilogues become one node: a chain. Its kernel reads each operand once and
 * writes only results with readers outside; all others stay in registers.
 */
#include <string.h>

#include "kernels/elementwise/chain_groups.h"
#include "passes.h"

/* The node without its epilogue. */
static Node *bare_node(Graph *graph, const Node *node) {
  Node *bare = arena_copy(graph->arena, node, sizeof *node);
  bare->n_inputs = node_own_inputs(node);
  bare->n_epilogue = 0;
  bare->outputs = ARENA_ARRAY(graph->arena, Value *, 1);
  bare->outputs[0] = node->n_epilogue ? node->epilogue[0]->inputs[0] : node->outputs[0];
  return bare;
}

void chain_add_members(Graph *graph, Node *chain, const Node *node) {
  for (int m = 0; m < node->n_members; m++) chain->members[chain->n_members++] = node->members[m];
  if (node->n_members) return;
  chain->members[chain->n_members++] = bare_node(graph, node);
  for (int k = 0; k < node->n_epilogue; k++) chain->members[chain->n_members++] = node->epilogue[k];
}

/* By value id: how often the group's nodes read it. */
static int uses_inside(const ChainGroup *group, const Value *value) {
  int uses = 0;
  for (int n = 0; n < group->n_nodes; n++)
    for (int k = 0; k < group->nodes[n]->n_inputs; k++) uses += group->nodes[n]->inputs[k] == value;
  return uses;
}

/* The results with readers outside the group, graph outputs included. */
static void set_outputs(Node *chain, const ChainGroup *group, const UseList *uses) {
  chain->n_outputs = 0;
  for (int n = 0; n < group->n_nodes; n++) {
    Value *value = group->nodes[n]->outputs[0];
    if (uses->count[value->id] > uses_inside(group, value)) graph_set_output(chain, chain->n_outputs++, value);
  }
}

static Node *chain_of(Graph *graph, const ChainGroup *group, const UseList *uses) {
  const Node *last = group->nodes[group->n_nodes - 1];
  Node *chain = graph_node(graph, &op_chain, last->name, group->n_inputs, group->n_nodes);
  chain->where = last->where;
  memcpy(chain->inputs, group->inputs, (size_t)group->n_inputs * sizeof *chain->inputs);
  chain->members = ARENA_ARRAY(graph->arena, Node *, group->n_members);
  for (int n = 0; n < group->n_nodes; n++) chain_add_members(graph, chain, group->nodes[n]);
  set_outputs(chain, group, uses);
  return chain;
}

/* Puts the chain in the place of the group's last node, and removes the others. */
static void replace(Graph *graph, const ChainGroup *group, Node **places, const UseList *uses) {
  Node *chain = chain_of(graph, group, uses);
  for (int n = 0; n < group->n_nodes; n++) places[group->nodes[n]->id] = NULL;
  places[group->nodes[group->n_nodes - 1]->id] = chain;
}

/* needs: infer_shapes, fuse_epilogue, no dead nodes; dense ids. keeps: types and shapes of what remains, and what is
 * computed, to the bit. breaks: that every element-wise node is one of ops.def. */
void fuse_chains(Graph *graph) {
  UseList uses = graph_uses(graph);
  ChainGroups found = find_chain_groups(graph);
  int n_nodes = graph->n_nodes;
  Node **places = arena_copy(graph->arena, graph->nodes, (size_t)n_nodes * sizeof *places);
  for (int g = 0; g < found.n; g++) replace(graph, found.groups[g], places, &uses);
  graph->n_nodes = 0;
  for (int n = 0; n < n_nodes; n++)
    if (places[n]) graph_append(graph, places[n]);
  sort_nodes(graph);
  graph_renumber(graph);
}
