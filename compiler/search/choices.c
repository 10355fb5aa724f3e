/* SPDX-License-Identifier: MIT */
#include "search/choices.h"

#include "support/list.h"

#include <string.h>

ChoiceProblem *choices_new(Arena *arena) {
  ChoiceProblem *problem = ARENA_NEW(arena, ChoiceProblem);
  problem->arena = arena;
  return problem;
}

int choices_add_variable(ChoiceProblem *problem, int alternatives, const double *cost) {
  double *costs = arena_copy(problem->arena, cost, (size_t)alternatives * sizeof *cost);
  *LIST_ADD(problem->arena, problem->variables, problem->n_variables, problem->variable_capacity) =
      (ChoiceVariable){alternatives, costs};
  return problem->n_variables - 1;
}

void choices_add_pair(ChoiceProblem *problem, int u, int v, const double *cost) {
  size_t entries = (size_t)problem->variables[u].n * (size_t)problem->variables[v].n;
  double *costs = arena_copy(problem->arena, cost, entries * sizeof *cost);
  *LIST_ADD(problem->arena, problem->pairs, problem->n_pairs, problem->pair_capacity) = (ChoicePair){u, v, costs};
}

double choices_total(const ChoiceProblem *problem, const int *chosen) {
  double total = 0;
  for (int v = 0; v < problem->n_variables; v++) total += problem->variables[v].cost[chosen[v]];
  for (int p = 0; p < problem->n_pairs; p++) {
    const ChoicePair *pair = &problem->pairs[p];
    total += pair->cost[chosen[pair->u] * problem->variables[pair->v].n + chosen[pair->v]];
  }
  return total;
}

ChoiceSolution choices_solve(const ChoiceProblem *problem) {
  ChoiceSolution solution = choices_eliminate(problem);
  return solution.chosen ? solution : choices_pbqp(problem);
}
