/* SPDX-License-Identifier: MIT */
/*
 * The choice of layouts as a problem of search/choices.h (NeoCPU section 3.3.2). Its variables are the nodes that can
 * run blocked, and the values that they read or write:
 *
 *   a node    runs on row-major tensors, or on blocked ones; its cost is the time of its best kernel then. Of blocked
 *             tensors some kernels read and write wide ones too: a convolution chooses for the first input, and for the
 *             output with the residual, others for all their tensors together, which is why inputs of a Concat or an
 *             Add share a layout.
 *   a value   is made in one layout, and exists in some; its cost is that of the transforms from the one to the others,
 *             each of which all readers share.
 *
 * Pairs cost nothing, or may not be: a value is made as its producer writes it, and exists as its readers want it.
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

enum { MAX_VALUE_LAYOUTS = 16 }; /* made row-major, with any of the others; blocked or wide, with all but narrow */

typedef struct ValueLayouts {
  Value *value;
  int n;
  Layout made[MAX_VALUE_LAYOUTS];     /* by alternative */
  unsigned exists[MAX_VALUE_LAYOUTS]; /* a bit a Layout; that of `made` too */
  double seconds[MAX_VALUE_LAYOUTS];
} ValueLayouts;

typedef struct LayoutProblem {
  Graph *graph;
  ChoiceProblem *choices; /* variables: the nodes, then the values */
  int n_nodes, n_values;
  bool has_wide; /* some node gains by wide blocks; else no alternative is in any */
  NodeLayouts *nodes;
  ValueLayouts *values;
} LayoutProblem;

/* needs: dense ids. possible: by place in graph->nodes. */
LayoutProblem *layout_problem(Graph *graph, const LayoutSet *possible);

/* The assignment that the graph's layouts are, as the greedy pass has set them. */
int *layout_assignment(const LayoutProblem *problem);
/* Lays out the graph as the assignment says. */
void layout_apply(const LayoutProblem *problem, const int *chosen);

/* How much a node must gain to be in wide blocks: it is the same kernel, and less is no more than noise. */
extern const double layout_wide_margin;

/* Is the alternative in wide blocks, in part at least? */
bool is_wide_alternative(const NodeLayouts *layouts, int alternative);

#endif
