/* SPDX-License-Identifier: MIT */
#include "ir/family.h"
#include "passes.h"

/* needs: infer_shapes, fuse_epilogue; graph->config->target. keeps: everything. Sets each node's schedule and scratch.
 */
void choose_schedules(Graph *graph) {
  for (int i = 0; i < graph->n_nodes; i++) {
    Node *node = graph->nodes[i];
    const KernelFamily *family = node->op->family;
    if (family && family->schedule) family->schedule(graph, node);
    if (family && family->scratch) family->scratch(graph, node);
  }
  stop_on_errors();
}
