/* SPDX-License-Identifier: MIT */
/* Nodes that compute y = s*x + t with constants s and t for each channel (axis 1): batch normalisation, and arithmetic
 * with constants that vary along channels at most. */
#ifndef RNNCC_CHANNEL_AFFINE_H
#define RNNCC_CHANNEL_AFFINE_H

#include "ir/graph.h"

typedef struct ChannelAffine {
  Value *x;
  int64_t C;
  double *s, *t; /* finite */
} ChannelAffine;

/* False if the node is not such a function. needs: infer_shapes, no epilogue. */
bool channel_affine_of(Graph *graph, const Node *node, ChannelAffine *affine);

#endif
