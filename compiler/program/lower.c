/* SPDX-License-Identifier: MIT */
#include "ir/family.h"
#include "ir/mutable.h"
#include "ir/op.h"
#include "program/build.h"
#include "program/build_internal.h"
#include "support/diagnostics.h"

static void lower_node(Program *program, Node *node) {
  if (node_makes_nothing(node)) return;
  if (node->op->family)
    node->op->family->lower(program, node);
  else if (!op_is_view(node->op))
    bug("n%d: nothing runs a %s", node->id, node->op->name);
}

static void lower_nodes(Program *program, const Graph *graph) {
  for (int i = 0; i < graph->n_nodes; i++) lower_node(program, graph->nodes[i]);
}

/* What the loss needs comes first, then what only gradients need: a run may end between. */
static void lower_trained(Program *program, const Graph *graph) {
  const bool *forward = graph_forward_nodes(graph);
  for (int n = 0; n < graph->n_nodes; n++)
    if (forward[n]) lower_node(program, graph->nodes[n]);
  int first = program->schedule->count;
  for (int n = 0; n < graph->n_nodes; n++)
    if (!forward[n]) lower_node(program, graph->nodes[n]);
  if (first < program->schedule->count) program->backward = program->schedule->items[first];
}

static bool is_of_part(const Node *node, const int *parts, int part) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i]) return parts[node->outputs[i]->id] == part;
  return false;
}

/* One part after the other: the module runs those that it must. */
static void lower_derivation(Program *program, const Graph *graph) {
  const int *parts = derivation_parts(program->arena, graph, &program->n_parts);
  program->parts = ARENA_ARRAY(program->arena, const Item *, program->n_parts);
  for (int p = 0; p < program->n_parts; p++) {
    int first = program->schedule->count;
    for (int n = 0; n < graph->n_nodes; n++)
      if (is_of_part(graph->nodes[n], parts, p)) lower_node(program, graph->nodes[n]);
    if (first < program->schedule->count) program->parts[p] = program->schedule->items[first];
  }
}

static void complete_item(Item *item, Block *block, void *context) {
  (void)context;
  const Wavefront *wavefront = block->owner ? block->owner->wavefront : NULL;
  if (item->call) complete_operands(item->call, wavefront && wavefront->layers > 1);
}

void lower_body(Program *program, Graph *body) {
  Graph *outer = program->graph;
  program->graph = body;
  lower_nodes(program, body);
  program->graph = outer;
}

/* needs: choose_schedules, pack_weights, dense ids. keeps: the graph's nodes and their
 * order. breaks: ids of values in bodies, which are numbered with all others, and views there, which are set to what
 * stands outside. */
Program *lower(Graph *graph) {
  Program *program = program_new(graph);
  program_take(program, graph);
  if (graph->n_parameters)
    lower_trained(program, graph);
  else if (graph->is_derivation)
    lower_derivation(program, graph);
  else
    lower_nodes(program, graph);
  each_item(program, complete_item, NULL);
  return program;
}
