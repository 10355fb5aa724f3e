/* SPDX-License-Identifier: MIT */
#include "differentiate/backwards.h"

#include "differentiate/flow.h"

Backwards backwards_new(Graph *graph) {
  graph_renumber(graph);
  return (Backwards){.graph = graph,
                     .trained = ARENA_ARRAY(graph->arena, bool, graph->n_values),
                     .d = ARENA_ARRAY(graph->arena, Value *, graph->n_values),
                     .n_values = graph->n_values,
                     .n_nodes = graph->n_nodes};
}

void add_gradient(Backwards *way, const Formula *f, const Value *value, Value *d) {
  Value **sum = &way->d[value->id];
  *sum = *sum ? plus(f, *sum, d) : d;
}

static void differentiate_node(Backwards *way, Node *node) {
  Graph *graph = way->graph;
  const Formula f = {graph, node->name, node->where};
  int n_inputs = node->n_inputs;
  Value **dy = ARENA_ARRAY(graph->arena, Value *, node->n_outputs), **dx = ARENA_ARRAY(graph->arena, Value *, n_inputs);
  bool *wanted = ARENA_ARRAY(graph->arena, bool, n_inputs), any = false;
  for (int i = 0; i < node->n_outputs; i++) dy[i] = node->outputs[i] ? way->d[node->outputs[i]->id] : NULL;
  for (int i = 0; i < n_inputs; i++) any |= wanted[i] = hands_back(node, i) && way->trained[node->inputs[i]->id];
  if (!any) return;
  const GradientRow *row = gradient_row(node);
  const char *lacking = row->rule ? row->rule(&(Gradient){&f, node, dy, wanted, dx}) : NULL;
  if (!row->rule || lacking) no_gradient(node, lacking);
  for (int i = 0; i < n_inputs; i++)
    if (dx[i]) add_gradient(way, &f, node->inputs[i], dx[i]);
}

static bool has_gradient(const Backwards *way, const Node *node) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] && way->d[node->outputs[i]->id]) return true;
  return false;
}

void go_backwards(Backwards *way) {
  for (int n = way->n_nodes - 1; n >= 0; n--)
    if (has_gradient(way, way->graph->nodes[n])) differentiate_node(way, way->graph->nodes[n]);
}
