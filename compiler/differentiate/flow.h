/* SPDX-License-Identifier: MIT */
/*
 * Which values gradients pass: those that the loss depends on ("reached"), and that depend on what is trained. Both are
 * marks by value id; an operator without a gradient, which ends the way to the loss, counts as if it had one.
 */
#ifndef RNNCC_FLOW_H
#define RNNCC_FLOW_H

#include "differentiate/rule.h"

typedef unsigned InputSet;

typedef struct GradientRow {
  InputSet inputs;
  GradientRule *rule; /* NULL and `flat` false: no gradient */
  bool flat;
} GradientRow;

const GradientRow *gradient_row(const Node *node);

/* May a gradient of the node's results be one of this input? */
bool hands_back(const Node *node, int input);

/* From the values that are marked on backwards. */
void mark_reached(const Graph *graph, bool *reached);
/* From the values that are marked on, which no node makes. */
void mark_trained(const Graph *graph, bool *trained);

/* The marks in a body of If, Loop or Scan, by its value ids: of any branch that is taken, or any iteration. `outputs`
 * and `inputs` are marks of the node's. */
const bool *body_reached(const Node *node, const Graph *body, const bool *outputs);
const bool *body_trained(const Node *node, const Graph *body, const bool *inputs);
/* Of the node's outputs, by those of the graph around it. */
bool *marks_of_outputs(const Graph *graph, const Node *node, const bool *marks);

/* Where the body's outputs begin that are the node's, one for one: a Loop's body gives a condition before them. */
int first_body_output(const Node *node);

void no_gradient(const Node *node, const char *what); /* what: of the node, or NULL */
/* Tells of nodes that have no gradient, also in bodies, where one is asked for. */
void tell_missing(const Graph *graph, const bool *reached, const bool *trained);

#endif
