/* SPDX-License-Identifier: MIT */
/*
 * What layouts cost, in seconds at the dims' optimum. Nothing is measured here, but a convolution whose schedule is
 * recorded costs what was measured of it.
 */
#ifndef RNNCC_LAYOUT_COSTS_H
#define RNNCC_LAYOUT_COSTS_H

#include "ir/graph.h"

/* Of `bytes` that all cores together read and write where they stand, and where they are copied from one place to
 * another, which is slower. */
double moving_seconds(const Graph *graph, double bytes);
double copying_seconds(const Graph *graph, double bytes);

/* Of a node, if it is laid out so. */
typedef struct NodeSeconds {
  double estimated;
  double recorded; /* 0: no schedule of it is recorded */
} NodeSeconds;
NodeSeconds layout_node_seconds(Graph *graph, const Node *node, NodeLayout layout);

/* Of the transform of a value from blocks of `from` to blocks of `to`, 0 being row-major; none where the bytes are the
 * same. needs: can_be_blocked. */
double layout_transform_seconds(const Graph *graph, const Value *value, int from, int to);

#endif
