/* SPDX-License-Identifier: MIT */
/* Max, Min and Sum of many inputs become chains of two, which kernels and epilogues take. */
#include "passes.h"
#include "shapes/shape.h"

static bool is_variadic(const Node *node) { return is_op(node, OP_Max) || is_op(node, OP_Min) || is_op(node, OP_Sum); }

static const OpInfo *binary_op(const Node *node) { return is_op(node, OP_Sum) ? op_info(OP_Add) : node->op; }

static void append_chain(Graph *graph, Node *node) {
  Value *sum = node->inputs[0];
  for (int i = 1; i < node->n_inputs; i++) {
    Node *step = graph_node(graph, binary_op(node), node->name, 2, 1);
    bool last = i == node->n_inputs - 1;
    step->where = node->where;
    step->inputs[0] = sum;
    step->inputs[1] = node->inputs[i];
    graph_set_output(step, 0, last ? node->outputs[0] : graph_value(graph, node->outputs[0]->name, node->where));
    if (!last && !infer_node(graph, step)) bug("a part of %s does not fit", node->op->name);
    sum = step->outputs[0];
  }
}

/* needs: infer_shapes. keeps: types and shapes. */
void split_variadic(Graph *graph) {
  Node **nodes;
  int n_nodes = graph_take_nodes(graph, &nodes);
  for (int n = 0; n < n_nodes; n++) {
    bool split = is_variadic(nodes[n]) && (nodes[n]->n_inputs > 2 || binary_op(nodes[n]) != nodes[n]->op);
    if (split && nodes[n]->n_inputs > 1)
      append_chain(graph, nodes[n]);
    else
      graph_append(graph, nodes[n]);
  }
  graph_renumber(graph);
}
