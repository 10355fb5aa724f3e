/* SPDX-License-Identifier: MIT */
/*
 * Consecutive recurrent layers, each reading the output of the one before at the same times. They can run as a
 * wavefront: a step needs its input up to the same time only.
 */
#ifndef RNNCC_STACK_H
#define RNNCC_STACK_H

#include "ir/graph.h"

struct Stack {
  int n_layers; /* at least 2 */
  Node **layers;
};

/* The stack of the node, and its index in *layer; NULL: none. */
const Stack *stack_of(const Graph *graph, const Node *node, int *layer);

#endif
