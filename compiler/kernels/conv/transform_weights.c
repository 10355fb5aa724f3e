/* SPDX-License-Identifier: MIT */
/*
 * Where an algorithm computes with the weights before it reads them, of weights that are not known a node does so: in
 * the derivation, of those that can change, or else in the network, before the convolution.
 */
#include "ir/mutable.h"
#include "kernels/conv/convolution.h"
#include "passes.h"

static void transform(Graph *graph, Node *node, const UseList *uses) {
  const ConvAlgorithm *algorithm = node->op->family == &family_conv ? node_algorithm(node) : NULL;
  if (!algorithm || !algorithm->transform) return;
  const Value *weights = conv_schedule_of(node)->conv.weights;
  if (!value_is_known(weights)) algorithm->transform(graph, node, uses->count[weights->id] == 1);
}

/* needs: choose_schedules, dense ids. keeps: the nodes that there are, in order. */
void transform_weights(Graph *graph) {
  UseList uses = graph_uses(graph);
  Node **nodes;
  int n_nodes = graph_take_nodes(graph, &nodes);
  for (int n = 0; n < n_nodes; n++) {
    transform(graph, nodes[n], &uses);
    graph_append(graph, nodes[n]);
  }
  graph_renumber(graph);
  if (graph->mutables) graph_renumber(graph->mutables->derivation);
}
