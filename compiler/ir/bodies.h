/* SPDX-License-Identifier: MIT */
/* Bodies of If, Loop and Scan as graphs: what they read from outside, copies, and their nodes in the node's place. */
#ifndef RNNCC_BODIES_H
#define RNNCC_BODIES_H

#include "ir/graph.h"

enum { MAX_BODIES = 2 };

/* The node's attributes that are graphs. */
int node_bodies(const Node *node, Attribute *bodies[MAX_BODIES]);

/* An empty one. */
Graph *body_new(Graph *outer, const char *name);

/* For the front ends, once a node has all its attributes: its bodies may read values of the graphs around them. Those
 * that are no constants become inputs of the node, its captures, and of each body. Inner nodes first. */
void node_capture(Graph *graph, Node *node);

/* A copy that shares no Value, Node or Graph with it. */
Graph *body_clone(Graph *outer, const Graph *source);

/* Copies the body's nodes into nodes[0..n-1] of `into`, on no list yet, with `arguments` in place of its inputs;
 * results[i] is what its output i then is. Returns n; `nodes` has room for all. */
int body_copy_nodes(Graph *into, const Graph *body, Value *const *arguments, Node **nodes, Value **results);

/* Applies a pass to the graph, then to the bodies of its nodes, once shapes have been inferred. */
void graph_each(Graph *graph, void (*pass)(Graph *));

#endif
