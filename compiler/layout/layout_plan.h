/* SPDX-License-Identifier: MIT */
/* What a search of layouts has found: for `rnncc inspect --explain=layout`. */
#ifndef RNNCC_LAYOUT_PLAN_H
#define RNNCC_LAYOUT_PLAN_H

#include "layout/layout_problem.h"
#include "support/text.h"

struct LayoutPlan {
  LayoutProblem *problem;
  const int *greedy;   /* assignments, by variable of problem->choices */
  double greedy_total; /* costs of the problem: a layout of a node other than the greedy one is counted dearer */
  ChoiceSolution found;
  bool better; /* than the greedy one, which is chosen where it is not */
  const int *chosen;
  double posing_seconds, solving_seconds; /* that it took to state the problem, and to solve it */
};

/* Nodes and transforms with their costs, and what each way to search comes to. Empty if nothing was searched. */
Text explain_layouts(const Graph *graph);

#endif
