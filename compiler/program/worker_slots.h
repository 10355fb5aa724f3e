/* SPDX-License-Identifier: MIT */
/* Scratch memory with a slot for each worker. */
#ifndef RNNCC_WORKER_SLOTS_H
#define RNNCC_WORKER_SLOTS_H

#include "ir/graph.h"

/* Sets node->scratch to n_slots slots, one a worker. Nodes share slots, so that their lines stay in the worker's
 * caches: writing a line of another core takes ten times as long. Slots larger than a core's cache are the node's own.
 */
void graph_slots(Graph *graph, Node *node, int64_t n_slots, int64_t slot_bytes);
/* The distance of slots, once all nodes have theirs; slot_bytes: as given to graph_slots(). */
int64_t graph_slot_bytes(const Graph *graph, const Node *node, int64_t slot_bytes);

#endif
