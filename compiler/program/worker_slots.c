/* SPDX-License-Identifier: MIT */
#include "program/worker_slots.h"

#include "machine/machine.h"
#include "support/numbers.h"

/* CPUs prefetch cache lines in pairs. */
static int64_t whole_line_pairs(int64_t bytes) { return saturating_add(bytes, 127) / 128 * 128; }

void graph_slots(Graph *graph, Node *node, int64_t n_slots, int64_t slot_bytes) {
  static const char *name = "workers' memory";
  int64_t bytes = whole_line_pairs(slot_bytes);
  bool shared = bytes <= graph->config->machine->l2_bytes;
  if (!shared || !graph->slots)
    graph_scratch(graph, node, name, dim_const(graph->dims, saturating_mul(n_slots, bytes)));
  if (!shared) return;
  if (!graph->slots) graph->slots = node->scratch;
  if (graph->n_slots < n_slots) graph->n_slots = n_slots;
  if (graph->slot_bytes < bytes) graph->slot_bytes = bytes;
  graph->slots->shape[0] = dim_const(graph->dims, graph->n_slots * graph->slot_bytes);
  node->scratch = graph->slots;
}

int64_t graph_slot_bytes(const Graph *graph, const Node *node, int64_t slot_bytes) {
  return node->scratch == graph->slots ? graph->slot_bytes : whole_line_pairs(slot_bytes);
}
