/* SPDX-License-Identifier: MIT */
/*
 * Recurrent layers in a row, each of whose inputs is, time by time, what the one before it puts out. They can run as a
 * wavefront: one that is at a time needs no more of its input than up to that time.
 */
#ifndef RNNCC_STACK_H
#define RNNCC_STACK_H

#include "ir/graph.h"

struct Stack {
  int n_layers; /* at least 2 */
  Node **layers;
};

/* The stack that the node is a layer of, and which: *layer. NULL if it is of none. */
const Stack *stack_of(const Graph *graph, const Node *node, int *layer);

#endif
