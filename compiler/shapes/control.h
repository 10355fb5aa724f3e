/* SPDX-License-Identifier: MIT */
/*
 * How If, Loop and Scan run. Inputs of a body, before the captures: none of If; the number of the iteration, whether to
 * go on, then what is carried of Loop; what is carried, then a slice of each scanned input of Scan. Outputs of a body:
 * Loop's whether to go on, then what is carried, then a slice of each collected output.
 */
#ifndef RNNCC_CONTROL_H
#define RNNCC_CONTROL_H

#include "ir/control.h"
#include "ir/op.h"

/* May a Loop's condition become false? `body` is as it was read. */
bool loop_is_conditional(const Node *node, const Graph *body);

/* 0 or 1; -1 if it is not known, or no condition. */
int known_truth(const Value *value);

/* A Loop whose condition only counts gets a trip count instead: the body, as it was read, changes with it. Appends
 * nodes. Nothing happens to other nodes. */
void count_iterations(Graph *graph, Node *node);

/* Rewrites control flow that is known at compile time: an If with a known condition becomes the nodes of its branch, a
 * Loop of few iterations copies of its body; a Scan along another axis gets Transposes around it. Calls `infer` with
 * every new node, in order. False if the node stays as it is. */
bool control_rewrite(Graph *graph, Node *node, void (*infer)(Graph *, Node *));

/* A copy of the node's body, with the types, shapes and constants that it captures, becomes the attribute's graph. */
Graph *body_instantiate(Graph *graph, const Node *node, AttributeName name);
/* Infers its nodes; those that are folded go. False after an error. */
bool body_infer(Graph *body);

/* Does the extent depend on symbols of a body: those from number `first` on, the loop's counter? */
bool is_inner(const Graph *graph, const Dim *extent, int first);
/* The iterations that a loop has run, once it has ended. */
const Dim *loop_count(Graph *graph, const Control *control);

/* The two below make nodes of bodies that are inferred already, and whose inputs stand for `inputs`. */

/* An If of two bodies without inputs but captures. */
Node *build_if(const Builder *builder, Value *condition, Graph *const bodies[2], int n_inputs, Value *const *inputs);

/* What goes into a Scan: values carried, then those scanned, then captures. */
typedef struct ScanInputs {
  int n_carried, n_scanned, n_captures;
  Value **list;
  bool *backwards; /* [n_scanned + the outputs collected] */
} ScanInputs;

/* A Scan that has as many iterations as `loop`, the last one of which was the first: in the body the loop's counter has
 * the iteration of the loop. */
Node *build_scan_back(const Builder *builder, const Node *loop, Graph *body, const ScanInputs *inputs);

/* One more output of a loop: this value of its body, of each iteration. */
Value *loop_collect(Graph *graph, Node *loop, Value *inside);

/* Infers all nodes of a graph whose inputs have types and shapes; some are rewritten or folded. */
void infer_nodes(Graph *graph);
/* Drops nodes all of whose outputs became constants. */
void drop_folded_nodes(Graph *graph);

#endif
