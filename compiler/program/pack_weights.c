/* SPDX-License-Identifier: MIT */
#include "ir/family.h"
#include "passes.h"
#include "program/trace_packing.h"

/* needs: choose_schedules. keeps: everything. Adds to each node its constants in the layout that its kernel reads;
 * place_weights leaves out constants that no kernel reads any more. */
void pack_weights(Graph *graph) {
  for (int i = 0; i < graph->n_nodes; i++) {
    Node *node = graph->nodes[i];
    const KernelFamily *family = node->op->family;
    if (!family || !family->pack) continue;
    if (reads_mutable(node))
      trace_packing(graph, node);
    else
      family->pack(graph, node);
  }
}
