/* SPDX-License-Identifier: MIT */
/* The invariants of graph.h, as a pass and with --verify-each after every other pass. A breach is a bug(). */
#include "ir/op.h"
#include "passes.h"

static bool listed(const Graph *graph, const Value *value) {
  return value->id >= 0 && value->id < graph->n_values && graph->values[value->id] == value;
}

static void check_ids(const Graph *graph) {
  for (int i = 0; i < graph->n_values; i++)
    if (graph->values[i]->id != i) bug("value %d carries id %d", i, graph->values[i]->id);
  for (int i = 0; i < graph->n_nodes; i++)
    if (graph->nodes[i]->id != i) bug("node %d carries id %d", i, graph->nodes[i]->id);
}

static void check_origin(const Graph *graph, const Value *value) {
  int origins = (value->producer != NULL) + value->is_input + (value->data != NULL);
  if (origins > 1) bug("value t%d is more than one of produced, input and constant", value->id);
  if (value->producer && value->producer->outputs[value->producer_output] != value)
    bug("value t%d is not output %d of its producer", value->id, value->producer_output);
  if (value->view_of && !listed(graph, value->view_of)) bug("value t%d views one outside the graph", value->id);
}

/* Reads must come after writes: `written` marks what nodes so far have produced, by value id. */
static void check_read(const Graph *graph, const Node *node, const Value *value, const bool *written) {
  if (!listed(graph, value)) bug("n%d (%s) reads a value outside the graph", node->id, node->op->name);
  if (value->is_input || value->data || value_is_for_shapes(value) || written[value->id]) return;
  bug("n%d (%s) reads t%d before it is written", node->id, node->op->name, value->id);
}

static void check_write(const Graph *graph, const Node *node, int output, bool *written) {
  const Value *value = node->outputs[output];
  if (!listed(graph, value)) bug("n%d (%s) writes a value outside the graph", node->id, node->op->name);
  if (written[value->id] || value->is_input || value->data) bug("n%d writes t%d again", node->id, value->id);
  if (value->producer != node || value->producer_output != output)
    bug("t%d does not know n%d as its producer", value->id, node->id);
  written[value->id] = true;
}

static void check_arity(const Node *node) {
  const OpInfo *op = node->op;
  int inputs = node_own_inputs(node);
  int most = op->max_inputs + (op_draws(op) ? N_DRAW_INPUTS : 0);
  if (inputs < op->min_inputs || (op->max_inputs >= 0 && inputs > most))
    bug("n%d (%s) has %d inputs", node->id, op->name, inputs);
  if (node->n_outputs < op->min_outputs || (op->max_outputs >= 0 && node->n_outputs > op->max_outputs))
    bug("n%d (%s) has %d outputs", node->id, op->name, node->n_outputs);
}

/* A prologue is computed from the first input and constants. */
static void check_prologue(const Node *node) {
  for (int p = 0; p < node->n_prologue; p++) {
    const Node *step = node->prologue[p];
    if (p == 0 && step->inputs[0] != node->inputs[0])
      bug("n%d (%s) has a prologue of another value", node->id, node->op->name);
    for (int i = 1; i < step->n_inputs; i++)
      if (step->inputs[i] && !step->inputs[i]->data)
        bug("n%d (%s): a prologue by no constant", node->id, node->op->name);
  }
}

static void check_nodes(const Graph *graph, bool *written) {
  for (int n = 0; n < graph->n_nodes; n++) {
    const Node *node = graph->nodes[n];
    check_arity(node);
    check_prologue(node);
    for (int i = 0; i < node->n_inputs; i++)
      if (node->inputs[i]) check_read(graph, node, node->inputs[i], written);
    for (int i = 0; i < node->n_outputs; i++)
      if (node->outputs[i]) check_write(graph, node, i, written);
  }
}

static void check_output(const Graph *graph, const Value *value, const bool *written) {
  if (!listed(graph, value)) bug("an output lies outside the graph");
  if (!value->is_input && !value->data && !written[value->id]) bug("output t%d is never written", value->id);
}

/* needs: nothing. keeps: everything. */
void verify(Graph *graph) {
  bool *written = ARENA_ARRAY(graph->arena, bool, graph->n_values);
  check_ids(graph);
  for (int i = 0; i < graph->n_values; i++) check_origin(graph, graph->values[i]);
  for (int i = 0; i < graph->n_inputs; i++)
    if (!graph->inputs[i]->is_input) bug("graph input %d is not marked as one", i);
  check_nodes(graph, written);
  for (int i = 0; i < graph->n_outputs; i++) check_output(graph, graph->outputs[i], written);
  for (int i = 0; i < graph->n_states; i++) check_output(graph, graph->states[i].output, written);
}
