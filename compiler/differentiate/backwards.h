/* SPDX-License-Identifier: MIT */
/* From results back to what they were computed of, by the rules of the nodes between. */
#ifndef RNNCC_BACKWARDS_H
#define RNNCC_BACKWARDS_H

#include "differentiate/rule.h"

/* Over the nodes and values that a graph has when it begins. */
typedef struct Backwards {
  Graph *graph;
  bool *trained; /* by value id, as in flow.h; the caller marks them */
  Value **d;     /* by value id: the gradient so far; NULL: 0 */
  int n_values, n_nodes;
} Backwards;

Backwards backwards_new(Graph *graph);
/* Adds to the gradient of the value. */
void add_gradient(Backwards *way, const Formula *f, const Value *value, Value *d);
/* Goes back through all nodes whose results have gradients. needs: `trained`. */
void go_backwards(Backwards *way);

#endif
