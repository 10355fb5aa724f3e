/* SPDX-License-Identifier: MIT */
/*
 * The choice of layouts as a problem of search/choices.h (NeoCPU section 3.3.2). Its variables are the nodes that can
 * run blocked, and the values that they read or write:
 *
 *   a node    runs on row-major or on blocked tensors; its cost is the time of its best kernel. Some kernels also read
 *             and write wide blocks: a convolution chooses one layout for its first input and one for output and
 *             residual; all others have one for all tensors, so the inputs of a Concat or an Add share a layout.
 *   a value   is made in one layout and exists in some; its cost is that of the transforms between them, which readers
 *             share.
 *
 * A pair costs 0 if it fits, else infinity: a value is made as its producer writes it, and exists as its readers want
 * it.
 */
#ifndef RNNCC_LAYOUT_PROBLEM_H
#define RNNCC_LAYOUT_PROBLEM_H

#include "ir/graph.h"
#include "search/choices.h"

enum { MAX_NODE_LAYOUTS = 7 }; /* row-major; and narrow, blocked and wide, each to blocked or wide */

typedef struct NodeLayouts {
  Node *node;
  int n;
  NodeLayout layout[MAX_NODE_LAYOUTS]; /* by alternative */
  double seconds[MAX_NODE_LAYOUTS];
  bool recorded[MAX_NODE_LAYOUTS]; /* the seconds are measured */
} NodeLayouts;

enum { MAX_VALUE_LAYOUTS = 16 }; /* row-major with any others; blocked or wide with all but narrow */

typedef struct ValueLayouts {
  Value *value;
  int n;
  Layout made[MAX_VALUE_LAYOUTS];     /* by alternative */
  unsigned exists[MAX_VALUE_LAYOUTS]; /* a bit for each Layout, that of `made` included */
  double seconds[MAX_VALUE_LAYOUTS];
} ValueLayouts;

typedef struct LayoutProblem {
  Graph *graph;
  ChoiceProblem *choices; /* variables: the nodes, then the values */
  int n_nodes, n_values;
  bool has_wide; /* some node is faster in wide blocks; else there are no wide alternatives */
  NodeLayouts *nodes;
  ValueLayouts *values;
} LayoutProblem;

/* needs: dense ids. possible: by index in graph->nodes. */
LayoutProblem *layout_problem(Graph *graph, const LayoutSet *possible);

/* The assignment that the greedy pass has set in the graph. */
int *layout_assignment(const LayoutProblem *problem);
void layout_apply(const LayoutProblem *problem, const int *chosen);

/* Least speedup of a node to use wide blocks: less is noise, the kernel being the same. */
extern const double layout_wide_margin;

/* Does it read or write wide blocks? */
bool is_wide_alternative(const NodeLayouts *layouts, int alternative);

#endif
