/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_EQUAL_NODES_H
#define RNNCC_EQUAL_NODES_H

#include "ir/graph.h"

/* By node id, the first node that computes the same, whatever the inputs are: of the same operator and attributes, of
 * values that are the same, or outputs of such nodes, or constants of equal bytes. Itself, if there is none before it.
 * needs: infer_shapes; no epilogues, no prologues. Does not change the graph. */
Node **equal_nodes(Graph *graph);

/* May the constants, or values of the graph, stand for each other? `first` is equal_nodes()'. */
bool equal_values(Node *const *first, const Value *a, const Value *b);

/* Of the same values, given in the same order. */
bool same_attributes(const Node *a, const Node *b);

#endif
