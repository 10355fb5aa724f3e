/* SPDX-License-Identifier: MIT */
/*
 * Graphs for tests, from one line of text a node. Two named dimensions exist: T in 2..400 (opt 50), B in 1..8 (opt 1).
 *
 * Inputs, separated by spaces:
 *   f32[T,4]     a graph input             i64=1,2      a constant list (i64= is the empty one)
 *   f32[2,3]!    a constant of 1, 2, 3...  i64(5)       a constant scalar
 *   shape(T,4)   i64 values known only symbolically
 *   _            absent                    @k           output 0 of the graph's node k
 * Attributes: `axis=1 perm=[0,2,1] mode=edge activations=[Relu,Tanh]`, typed by the op's row.
 */
#ifndef RNNCC_TEST_IR_BUILD_H
#define RNNCC_TEST_IR_BUILD_H

#include "ir/graph.h"
#include "ir/op.h"

Graph *build_graph(Arena *arena);
/* A config of the graph's own, which the test may change: two cores of the target, no forced schedules. */
Config *build_config(Graph *graph, const char *target);
Node *build_node(Graph *graph, const char *op, const char *inputs, const char *attributes, int n_outputs);
void build_output(Graph *graph, Value *value); /* a graph output from now on */

/* "f32[T, 4]" */
const char *text_of(Graph *graph, const Value *value);
Node *producer_named(Graph *graph, const char *op); /* the first node of this op; NULL: none */
int count_nodes(const Graph *graph, const char *op);

/* capture_errors() begins to collect what is written to stderr; the other function returns it. */
void capture_errors(void);
const char *captured_errors(Arena *arena);

#endif
