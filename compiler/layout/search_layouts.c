/* SPDX-License-Identifier: MIT */

#include "layout/layout.h"
#include "layout/layout_plan.h"
#include "support/clock.h"

static ChoiceSolution solve(LayoutSearch search, const ChoiceProblem *choices) {
  switch (search) {
  case LAYOUT_SEARCH_DP:
    return choices_eliminate(choices);
  case LAYOUT_SEARCH_PBQP:
    return choices_pbqp(choices);
  default:
    return choices_solve(choices);
  }
}

/* Cost-model error outside its calibrated range: least speedup of a node to leave the layout of the rule, whose kernels
 * the model was calibrated on. */
static const double MARGIN = 1.2;

static void favour(const LayoutProblem *problem, const int *chosen) {
  for (int v = 0; v < problem->n_nodes; v++)
    for (int a = 0; a < problem->nodes[v].n; a++)
      if (a != chosen[v])
        problem->choices->variables[v].cost[a] *=
            is_wide_alternative(&problem->nodes[v], a) ? layout_wide_margin : MARGIN;
}

void search_layouts(Graph *graph) {
  LayoutPlan *plan = ARENA_NEW(graph->arena, LayoutPlan);
  double started = seconds_now();
  graph_renumber(graph);
  const LayoutSet *possible = all_possible_layouts(graph);
  plan->problem = layout_problem(graph, possible);
  choose_layouts_greedily(graph, possible, true);
  plan->greedy = layout_assignment(plan->problem);
  favour(plan->problem, plan->greedy);
  plan->greedy_total = choices_total(plan->problem->choices, plan->greedy);
  double posed = seconds_now();
  plan->found = solve(graph->config->layout_search, plan->problem->choices);
  plan->better = plan->found.chosen && plan->found.total < plan->greedy_total;
  plan->chosen = plan->better ? plan->found.chosen : plan->greedy;
  layout_apply(plan->problem, plan->chosen);
  plan->posing_seconds = posed - started;
  plan->solving_seconds = seconds_now() - posed;
  graph->layout_plan = plan;
}
