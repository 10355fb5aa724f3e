/* SPDX-License-Identifier: MIT */
#include "search/choices.h"

#include <string.h>

ChoiceProblem *choices_new(Arena *arena) {
  ChoiceProblem *problem = ARENA_NEW(arena, ChoiceProblem);
  problem->arena = arena;
  return problem;
}

/* A list of `count` elements has room for one more. Returns the list, moved if need be. */
static void *with_room(Arena *arena, void *list, int count, int *capacity, size_t size) {
  if (count < *capacity) return list;
  *capacity = *capacity ? 2 * *capacity : 64;
  char *larger = arena_alloc(arena, (size_t)*capacity * size);
  if (count) memcpy(larger, list, (size_t)count * size);
  return larger;
}

int choices_add_variable(ChoiceProblem *problem, int alternatives, const double *cost) {
  problem->variables = with_room(problem->arena, problem->variables, problem->n_variables, &problem->variable_capacity,
                                 sizeof *problem->variables);
  problem->variables[problem->n_variables] =
      (ChoiceVariable){alternatives, arena_copy(problem->arena, cost, (size_t)alternatives * sizeof *cost)};
  return problem->n_variables++;
}

void choices_add_pair(ChoiceProblem *problem, int u, int v, const double *cost) {
  size_t entries = (size_t)problem->variables[u].n * (size_t)problem->variables[v].n;
  problem->pairs =
      with_room(problem->arena, problem->pairs, problem->n_pairs, &problem->pair_capacity, sizeof *problem->pairs);
  problem->pairs[problem->n_pairs++] = (ChoicePair){u, v, arena_copy(problem->arena, cost, entries * sizeof *cost)};
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
