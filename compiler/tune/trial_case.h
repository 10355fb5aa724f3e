/* SPDX-License-Identifier: MIT */
/*
 * One convolution of a model, taken out of it to be tried: the same node with weights, bias and inputs of small whole
 * numbers, whose products f32 adds exactly. So all schedules but Winograd's must agree to the bit.
 */
#ifndef RNNCC_TRIAL_CASE_H
#define RNNCC_TRIAL_CASE_H

#include "ir/graph.h"
#include "ir/tensor.h"

enum { MAX_TRIAL_INPUTS = 2 };

/* The name of its node, whose kernels are timed. */
#define TRIAL_NODE "conv"

typedef struct TrialCase {
  Arena *arena;       /* of what was made for the trial */
  const Graph *model; /* whose dims it has, and whose config but for the schedule */
  Node node;          /* the workload's, but for its constants */
  bool exact_input;   /* what the sums are over is whole after the prologue too */
  int n_inputs;
  const Value *values[MAX_TRIAL_INPUTS]; /* of the model: x, and the residual if there is one */
  Tensor *inputs[MAX_TRIAL_INPUTS];      /* at the dims' optimum */
  int64_t *symbols;                      /* the optimum of each */
} TrialCase;

/* Does it depend on nothing but x, the residual and f32 constants? */
bool can_be_tried(const Node *node);

/* needs: can_be_tried(). The node as it is if it is laid out so. */
TrialCase trial_case(Arena *arena, const Graph *model, const Node *node, NodeLayout layout);

/* The case alone in a graph: its inputs, row-major, are brought into the layout that the node reads.
 * `schedule` is forced, in the form of --conv. */
Graph *trial_graph(const TrialCase *trial, const char *schedule);

#endif
