/* SPDX-License-Identifier: MIT */
#include "ir/family.h"
#include "ir/op.h"
#include "program/build.h"
#include "program/build_internal.h"
#include "support/diagnostics.h"

static bool always_empty(const Node *node) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] && (!value_static(node->outputs[i]) || value_count(node->outputs[i]) > 0)) return false;
  return true;
}

static void lower_nodes(Program *program, const Graph *graph) {
  for (int i = 0; i < graph->n_nodes; i++) {
    Node *node = graph->nodes[i];
    if (always_empty(node)) continue;
    if (node->op->family)
      node->op->family->lower(program, node);
    else if (!op_is_view(node->op))
      bug("n%d: nothing runs a %s", node->id, node->op->name);
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
  lower_nodes(program, graph);
  each_item(program, complete_item, NULL);
  return program;
}
