/* SPDX-License-Identifier: MIT */
/*
 * Choosing one alternative of each of many variables so that costs of alternatives and costs of pairs of them,
 * together, are least: a partitioned boolean quadratic problem. NeoCPU (section 3.3.2) chooses the layouts of a network
 * this way; nothing here knows of layouts.
 *
 * Costs are at least 0. INFINITY: the alternative, or the two together, may not be chosen.
 */
#ifndef RNNCC_CHOICES_H
#define RNNCC_CHOICES_H

#include <stdbool.h>
#include <stdint.h>

#include "support/arena.h"

typedef struct ChoiceVariable {
  int n; /* alternatives */
  double *cost;
} ChoiceVariable;

typedef struct ChoicePair {
  int u, v;
  double *cost; /* [alternatives of u][alternatives of v] */
} ChoicePair;

typedef struct ChoiceProblem {
  Arena *arena;
  int n_variables, variable_capacity;
  ChoiceVariable *variables;
  int n_pairs, pair_capacity;
  ChoicePair *pairs; /* two variables may have several, which add up */
} ChoiceProblem;

ChoiceProblem *choices_new(Arena *arena);
/* Its number. The costs are copied, and may be changed later. */
int choices_add_variable(ChoiceProblem *problem, int alternatives, const double *cost);
/* The cost matrix of two different variables; copied. */
void choices_add_pair(ChoiceProblem *problem, int u, int v, const double *cost);
/* The cost of an assignment; `chosen` by variable. */
double choices_total(const ChoiceProblem *problem, const int *chosen);

/* How many variables each rule of the PBQP solver took out: those of no neighbour, of one, of two, and by heuristic. */
typedef enum ChoiceRule { RULE_R0, RULE_RI, RULE_RII, RULE_RN, CHOICE_RULES } ChoiceRule;

typedef struct ChoiceSolution {
  int *chosen; /* by variable; NULL: the solver gave up */
  double total;
  bool exact; /* there is no less */
  int by_rule[CHOICE_RULES];
  int64_t largest_table; /* of the eliminating solver: entries of the largest table it needed, or would have */
} ChoiceSolution;

/* Exact, by dynamic programming: it eliminates variable after variable, each into a table over its neighbours. It gives
 * up where a table, or the work, would pass a bound, so that it takes well below a second. Chains, trees and
 * series-parallel graphs never need more than two neighbours at once, networks a few. */
ChoiceSolution choices_eliminate(const ChoiceProblem *problem);

/* Reductions R0, RI and RII, which are exact, and RN, which is not, where every variable that is left has three
 * neighbours or more (Scholz and Eckstein, LCTES 2002; Hames and Scholz, JMLC 2006). What RN chooses is then bettered
 * one by one, in a bounded number of trials. The total may be infinite although a finite one exists. */
ChoiceSolution choices_pbqp(const ChoiceProblem *problem);

/* The first where it does not give up, else the second. */
ChoiceSolution choices_solve(const ChoiceProblem *problem);

#endif
