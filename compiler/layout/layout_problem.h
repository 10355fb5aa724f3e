/* SPDX-License-Identifier: MIT */
/*
 * The choice of layouts as a problem of search/choices.h (NeoCPU section 3.3.2). Its variables are the nodes that can
 * run blocked, and the values that they read or write:
 *
 *   a node    runs on row-major tensors, or on blocked ones; its cost is the time of its best kernel then. That kernel
 *             reads and writes all tensors so, which is why inputs of a Concat or an Add share a layout.
 *   a value   is made in one layout, and exists in some; its cost is that of the transforms from the one to the others,
 *             each of which all readers share.
 *
 * Pairs cost nothing, or may not be: a value is made as its producer writes it, and exists as its readers want it.
 */
#ifndef RNNCC_LAYOUT_PROBLEM_H
#define RNNCC_LAYOUT_PROBLEM_H

#include "ir/graph.h"
#include "search/choices.h"

typedef enum Layout {
  LAYOUT_ROW_MAJOR,
  LAYOUT_NARROW,  /* one block of a few channels */
  LAYOUT_BLOCKED, /* blocks of a vector */
  LAYOUTS
} Layout;

typedef struct NodeLayouts {
  Node *node;
  int n;
  Layout reads[LAYOUTS]; /* by alternative: how it reads inputs[0]; blocked, unless that is row-major */
  double seconds[LAYOUTS];
} NodeLayouts;

enum { MOST_VALUE_LAYOUTS = 6 }; /* made row-major, with any of the others, and blocked, with row-major or not */

typedef struct ValueLayouts {
  Value *value;
  int n;
  Layout made[MOST_VALUE_LAYOUTS];     /* by alternative */
  unsigned exists[MOST_VALUE_LAYOUTS]; /* a bit a Layout; that of `made` too */
  double seconds[MOST_VALUE_LAYOUTS];
} ValueLayouts;

typedef struct LayoutProblem {
  Graph *graph;
  ChoiceProblem *choices; /* variables: the nodes, then the values */
  int n_nodes, n_values;
  NodeLayouts *nodes;
  ValueLayouts *values;
} LayoutProblem;

/* needs: dense ids; no value is laid out yet. */
LayoutProblem *layout_problem(Graph *graph);

/* The assignment that the graph's layouts are, as a pass has set them. */
int *layout_assignment(const LayoutProblem *problem);
/* Lays out the graph as the assignment says. */
void layout_apply(const LayoutProblem *problem, const int *chosen);

/* The block of channels that a layout of the value means; 0: row-major. */
int layout_block(const Graph *graph, const Value *value, Layout layout);

#endif
