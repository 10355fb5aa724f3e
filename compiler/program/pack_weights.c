/* SPDX-License-Identifier: MIT */
#include "program/pack_weights.h"
#include "ir/family.h"

/* needs: choose_schedules. keeps: everything. Adds to each node the constants in the layout that its kernels stream;
 * constants that no kernel reads any more are left out of the module by place_weights. */
void pack_weights(Graph *graph) {
  for (int i = 0; i < graph->n_nodes; i++) {
    const KernelFamily *family = graph->nodes[i]->op->family;
    if (family && family->pack) family->pack(graph, graph->nodes[i]);
  }
}
