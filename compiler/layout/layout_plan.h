/* SPDX-License-Identifier: MIT */
/* The result of a layout search, for `rnncc inspect --explain=layout`. */
#ifndef RNNCC_LAYOUT_PLAN_H
#define RNNCC_LAYOUT_PLAN_H

#include "layout/layout_problem.h"
#include "support/text.h"

struct LayoutPlan {
  LayoutProblem *problem;
  const int *greedy;   /* assignments, by variable of problem->choices */
  double greedy_total; /* costs of the problem: with a margin on every layout but the greedy one */
  ChoiceSolution found;
  bool better; /* than the greedy one */
  const int *chosen;
  double posing_seconds, solving_seconds; /* time to estimate the costs, and to search */
};

/* Nodes and transforms with their costs, and the total of each search. Empty if nothing was searched. */
Text explain_layouts(const Graph *graph);

#endif
