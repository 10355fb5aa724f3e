/* SPDX-License-Identifier: MIT */
/* Bodies of If, Loop and Scan: captures, copies, inlining. */
#ifndef RNNCC_BODIES_H
#define RNNCC_BODIES_H

#include "ir/graph.h"

enum { MAX_BODIES = 2 };

/* The node's attributes that are graphs. */
int node_bodies(const Node *node, Attribute *bodies[MAX_BODIES]);

/* Does the graph, or a body in it, draw random numbers? */
bool graph_draws(const Graph *graph);
/* Does this node? A Dropout does if its mode is true, or is absent where the network is trained. */
bool node_draws(const Graph *graph, const Node *node);

Graph *body_new(Graph *outer, const char *name);

/* For the front ends, once a node has all its attributes: values of outer graphs that its bodies read become inputs of
 * the node, its captures, and of each body; except constants. Inner nodes first. */
void node_capture(Graph *graph, Node *node);

/* Does the body read values of outer graphs, constants apart? Before node_capture. */
bool body_reads_outside(Graph *body);

/* A copy that shares no Value, Node or Graph with it. */
Graph *body_clone(Graph *outer, const Graph *source);

/* Copies the body's nodes to nodes[0..n-1] of `into`, not in its list yet, with `arguments` as inputs; results[i] is
 * its output i. Returns n; `nodes` has room for all. */
int body_copy_nodes(Graph *into, const Graph *body, Value *const *arguments, Node **nodes, Value **results);

/* Appends copies of an inferred body's nodes with their types, shapes and, of inner bodies, all that passes have made
 * of them. `arguments` have the inputs' types. The extents that only the data tells have the same symbols: the nodes
 * that find them are copied, too, so that no node of either reads them before its own has found them. */
void body_append_inferred(Graph *into, const Graph *body, Value *const *arguments, Value **results);

/* Applies a pass to the graph, then to the bodies of its nodes, once shapes have been inferred. */
void graph_each(Graph *graph, void (*pass)(Graph *));

#endif
