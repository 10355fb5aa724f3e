/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_FOLD_BY_NODES_H
#define RNNCC_FOLD_BY_NODES_H

#include "ir/graph.h"

/* Of a batch normalisation whose parameters, or the weights of the convolution before it, can change. True if it moved
 * into that convolution; else its parameters may be others now. New nodes are at the end of the list. */
bool fold_by_nodes(Graph *graph, const UseList *uses, Node *node);

#endif
