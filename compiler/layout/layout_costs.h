/* SPDX-License-Identifier: MIT */
/* The cost of layouts, in seconds at the dims' optimum: estimates, or the measured time where a schedule is recorded.
 */
#ifndef RNNCC_LAYOUT_COSTS_H
#define RNNCC_LAYOUT_COSTS_H

#include "ir/graph.h"

/* Time for all cores to move `bytes` read and written: whole vectors; or single elements. */
double moving_seconds(const Graph *graph, double bytes);
double copying_seconds(const Graph *graph, double bytes);

typedef struct NodeSeconds {
  double estimated;
  double recorded; /* 0: no schedule is recorded */
} NodeSeconds;
NodeSeconds layout_node_seconds(Graph *graph, const Node *node, NodeLayout layout);

/* Transform of a value from blocks of `from` to blocks of `to`, 0: row-major; 0 where the bytes are the same.
 * needs: can_be_blocked. */
double layout_transform_seconds(const Graph *graph, const Value *value, int from, int to);

/* A transpose of an image, [N, H, W, C], to a row-major one with the channels first, or to blocks. */
double transposing_seconds(const Graph *graph, const Node *node, NodeLayout layout);

#endif
