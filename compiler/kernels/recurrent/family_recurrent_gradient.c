/* SPDX-License-Identifier: MIT */
#include "ir/family.h"

static void schedule(Graph *graph, Node *node) {
  (void)graph;
  error_at(node->where, EXIT_UNSUPPORTED, "%s has a reference kernel, and none that is compiled", node->op->name);
}

const KernelFamily family_recurrent_gradient = {.schedule = schedule};
