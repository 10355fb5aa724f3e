/* SPDX-License-Identifier: MIT */
/* How a family packs weights that can change, as copies that the running module can do. */
#ifndef RNNCC_TRACE_PACKING_H
#define RNNCC_TRACE_PACKING_H

#include "ir/graph.h"

/* Does the node read weights that can change? */
bool reads_mutable(const Node *node);

/* needs: the node's family packs. Sets node->packed as the family does; what depends on weights that can change becomes
 * a block of its own, and graph->mutables gets the copies that make it. */
void trace_packing(Graph *graph, Node *node);

#endif
