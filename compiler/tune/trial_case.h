/* SPDX-License-Identifier: MIT */
/*
 * One convolution of a model, taken out of it to be measured alone: the same node with weights, bias and inputs of
 * small integers, whose products f32 adds exactly. So all schedules except Winograd's must give the same bits.
 */
#ifndef RNNCC_TRIAL_CASE_H
#define RNNCC_TRIAL_CASE_H

#include "ir/graph.h"
#include "ir/tensor.h"

enum { MAX_TRIAL_INPUTS = 2 };

/* The name of its node, whose kernels are timed. */
#define TRIAL_NODE "conv"

typedef struct TrialCase {
  Arena *arena;       /* of the trial's own nodes and values */
  const Graph *model; /* it has the model's dims, and its config except for the schedule */
  Node node;          /* the workload's, with other constants */
  bool exact_input;   /* the prologue's results are integers, too */
  int n_inputs;
  const Value *values[MAX_TRIAL_INPUTS]; /* of the model: x, and the residual, if any */
  Tensor *inputs[MAX_TRIAL_INPUTS];      /* at the dims' optimum */
  int64_t *symbols;                      /* the optimum of each dimension */
} TrialCase;

/* Does it depend on nothing but x, the residual and f32 constants? */
bool can_be_tried(const Node *node);

/* needs: can_be_tried(). The case of the node in this layout. */
TrialCase trial_case(Arena *arena, const Graph *model, const Node *node, NodeLayout layout);

/* The case alone in a graph: its inputs, row-major, are brought into the layout that the node reads.
 * `schedule` is forced, in the form of --conv. */
Graph *trial_graph(const TrialCase *trial, const char *schedule);

#endif
