/* SPDX-License-Identifier: MIT */
/* Working memory of which each worker has a slot. */
#ifndef RNNCC_WORKER_SLOTS_H
#define RNNCC_WORKER_SLOTS_H

#include "ir/graph.h"

/* Sets node->scratch to memory of which each of n_slots workers has a slot. Nodes share it, so that a slot's lines stay
 * in the caches of its worker: to write what another core wrote or read last takes ten times as long. Slots that are
 * more than a core's cache holds are the node's own. */
void graph_slots(Graph *graph, Node *node, int64_t n_slots, int64_t slot_bytes);
/* From one slot of the node's to the next, once all nodes have theirs; slot_bytes: as given to graph_slots(). */
int64_t graph_slot_bytes(const Graph *graph, const Node *node, int64_t slot_bytes);

#endif
