/* SPDX-License-Identifier: MIT */
/* What a node computes from constants alone is computed now, by the reference kernels; so is what only shapes
 * determine.
 */
#ifndef RNNCC_FOLD_NODE_H
#define RNNCC_FOLD_NODE_H

#include "ir/graph.h"

/* Makes the node's outputs constants where its inputs are, unless the module would grow much by it. False if the node
 * stays as it is. error_at() where the kernel refuses the constants. needs: its outputs' shapes. */
bool fold_node(Graph *graph, Node *node);

/* The same where inputs and outputs are small, as in the arithmetic on shapes. The node stays. */
bool fold_small(Graph *graph, Node *node);

#endif
