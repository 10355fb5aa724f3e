/* SPDX-License-Identifier: MIT */
/* Constant folding: nodes whose inputs are constants, or whose results depend on shapes only, are computed by the
 * reference kernels. */
#ifndef RNNCC_FOLD_NODE_H
#define RNNCC_FOLD_NODE_H

#include "ir/graph.h"

/* Makes the node's outputs constants if its inputs are, unless the module would grow much. False if the node stays as
 * it is. error_at() if the kernel refuses the constants. needs: its outputs' shapes. */
bool fold_node(Graph *graph, Node *node);

/* The same for small inputs and outputs, as in shape arithmetic. The node stays. */
bool fold_small(Graph *graph, Node *node);

#endif
