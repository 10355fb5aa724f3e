/* SPDX-License-Identifier: MIT */
/* The solvers of search/ compared with trying all assignments, on random problems of a few variables. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "search/choices.h"

enum { PROBLEMS = 2000, MAX_VARIABLES = 8, MAX_ALTERNATIVES = 3 };

/* ---- random problems ---- */

static uint64_t random_state;

/* In 0..n-1 (xorshift64*). */
static int below(int n) {
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return (int)((random_state * 0x2545f4914f6cdd1dULL >> 33) % (uint64_t)n);
}

/* Integers, so that sums are exact in any order. One in `rarity` is infinite; 0: none. */
static double random_cost(int rarity) { return rarity && below(rarity) == 0 ? INFINITY : below(100); }

static ChoiceProblem *problem_of(Arena *arena, int n) {
  ChoiceProblem *problem = choices_new(arena);
  for (int v = 0; v < n; v++) {
    double cost[MAX_ALTERNATIVES];
    int alternatives = 1 + below(MAX_ALTERNATIVES);
    for (int a = 0; a < alternatives; a++) cost[a] = random_cost(0);
    choices_add_variable(problem, alternatives, cost);
  }
  return problem;
}

/* Half of the edges are like those of layouts: cost 0 if both variables agree. */
static void join(ChoiceProblem *problem, int u, int v, int rarity) {
  double cost[MAX_ALTERNATIVES * MAX_ALTERNATIVES];
  int rows = problem->variables[u].n, columns = problem->variables[v].n, alike = below(2);
  for (int i = 0; i < rows * columns; i++) cost[i] = alike && i / columns == i % columns ? 0 : random_cost(rarity);
  choices_add_pair(problem, u, v, cost);
}

typedef enum Shape { CHAIN, TREE, SERIES_PARALLEL, ARBITRARY } Shape;

/* Replaces an edge (u, v) by a path over a new variable, or adds such a path beside it, and so on. */
static void join_series_parallel(ChoiceProblem *problem, int rarity) {
  int edges[2 * MAX_VARIABLES][2] = {{0, 1}}, n = 1;
  for (int v = 2; v < problem->n_variables; v++) {
    int e = below(n), u = edges[e][0], w = edges[e][1];
    if (below(2)) {
      edges[e][1] = v;
    } else {
      edges[n][0] = u;
      edges[n++][1] = v;
    }
    edges[n][0] = v;
    edges[n++][1] = w;
  }
  for (int e = 0; e < n; e++) join(problem, edges[e][0], edges[e][1], rarity);
}

static ChoiceProblem *random_problem(Arena *arena, Shape shape, int rarity) {
  int n = 2 + below(MAX_VARIABLES - 1);
  ChoiceProblem *problem = problem_of(arena, n);
  if (shape == SERIES_PARALLEL) join_series_parallel(problem, rarity);
  for (int v = 1; v < n && shape <= TREE; v++) join(problem, shape == CHAIN ? v - 1 : below(v), v, rarity);
  for (int u = 0; u < n && shape == ARBITRARY; u++)
    for (int v = 0; v < n; v++)
      if (u != v && below(2) == 0) join(problem, u, v, rarity);
  return problem;
}

/* ---- all assignments ---- */

static double least_of_all(const ChoiceProblem *problem) {
  int chosen[MAX_VARIABLES] = {0};
  double least = INFINITY;
  for (int v = 0; v < problem->n_variables;) {
    least = fmin(least, choices_total(problem, chosen));
    for (v = 0; v < problem->n_variables && ++chosen[v] == problem->variables[v].n; v++) chosen[v] = 0;
  }
  return least;
}

static bool same_cost(double a, double b) { return a == b; }

static void check(const ChoiceProblem *problem, const ChoiceSolution *solution, double least) {
  for (int v = 0; v < problem->n_variables; v++) assert_in_range(solution->chosen[v], 0, problem->variables[v].n - 1);
  assert_true(same_cost(solution->total, choices_total(problem, solution->chosen)));
  assert_true(solution->total >= least);
  if (solution->exact) assert_true(same_cost(solution->total, least));
}

/* ---- properties ---- */

static void elimination_finds_the_least(void **state) {
  (void)state;
  for (int i = 0; i < 4 * PROBLEMS; i++) {
    Arena *arena = arena_new();
    const ChoiceProblem *problem = random_problem(arena, (Shape)(i % 4), i % 3 * 3);
    ChoiceSolution solution = choices_eliminate(problem);
    assert_true(solution.chosen && solution.exact);
    check(problem, &solution, least_of_all(problem));
    arena_free(arena);
  }
}

static void reductions_are_exact_with_at_most_two_neighbours(void **state) {
  (void)state;
  for (int i = 0; i < 3 * PROBLEMS; i++) {
    Arena *arena = arena_new();
    const ChoiceProblem *problem = random_problem(arena, (Shape)(i % 3), i % 2 * 5);
    ChoiceSolution solution = choices_pbqp(problem);
    assert_true(solution.exact);
    check(problem, &solution, least_of_all(problem));
    arena_free(arena);
  }
}

/* On any graph, with one in `rarity` costs infinite: mean and worst ratio to the least cost, and how often no
 * assignment was found. */
static void try_heuristic(int rarity, double most_mean, double most_lost) {
  double sum = 0, worst = 1;
  int n = 0, lost = 0, heuristic = 0;
  for (int i = 0; i < 2 * PROBLEMS; i++) {
    Arena *arena = arena_new();
    const ChoiceProblem *problem = random_problem(arena, ARBITRARY, rarity);
    ChoiceSolution solution = choices_pbqp(problem);
    double least = least_of_all(problem), ratio = least > 0 ? solution.total / least : 1;
    check(problem, &solution, least);
    heuristic += !solution.exact;
    lost += isinf(solution.total) && !isinf(least);
    if (!isinf(solution.total)) n++, sum += ratio, worst = fmax(worst, ratio);
    arena_free(arena);
  }
  print_message("infinite: one in %d; RN in %d of %d; ratio to the least: mean %.4f, worst %.3f; none found: %d\n",
                rarity, heuristic, 2 * PROBLEMS, sum / n, worst, lost);
  assert_true(heuristic > PROBLEMS / 4);
  assert_true(sum / n <= most_mean);
  assert_true(lost <= most_lost * 2 * PROBLEMS);
}

/* The bounds are the observed values, rounded up. A broken solver is far beyond them. */
static void the_heuristic_is_near_the_least(void **state) {
  (void)state;
  try_heuristic(0, 1.002, 0);
  try_heuristic(12, 1.002, 0.001);
}

/* A complete graph has no small table. */
static void elimination_gives_up_where_tables_would_be_large(void **state) {
  (void)state;
  static const int sizes[] = {12, 40}; /* too many entries; too many axes */
  for (int s = 0; s < 2; s++) {
    Arena *arena = arena_new();
    ChoiceProblem *problem = choices_new(arena);
    const double own[] = {3, 2, 1}, unlike[] = {0, 1, 1, 1, 0, 1, 1, 1, 0};
    for (int v = 0; v < sizes[s]; v++) choices_add_variable(problem, 3, own);
    for (int v = 0; v < sizes[s]; v++)
      for (int u = 0; u < v; u++) choices_add_pair(problem, u, v, unlike);
    assert_null(choices_eliminate(problem).chosen);
    ChoiceSolution solution = choices_solve(problem);
    assert_true(same_cost(solution.total, sizes[s]));
    arena_free(arena);
  }
}

static void no_variables_cost_nothing(void **state) {
  (void)state;
  Arena *arena = arena_new();
  const ChoiceProblem *problem = choices_new(arena);
  assert_true(same_cost(choices_eliminate(problem).total, 0));
  assert_true(same_cost(choices_pbqp(problem).total, 0));
  arena_free(arena);
}

/* An order of the variables in which elimination would make large tables of any ladder. */
static int scattered(int place, int count) { return place * 777 % count; }

/* A ladder: the width stays two, however long it is. */
static void elimination_of_a_long_ladder_needs_small_tables(void **state) {
  (void)state;
  enum { RUNGS = 1000 };
  Arena *arena = arena_new();
  ChoiceProblem *problem = choices_new(arena);
  const double own[] = {1, 1, 1};
  for (int v = 0; v < 2 * RUNGS; v++) choices_add_variable(problem, 3, own);
  for (int v = 0; v + 2 < 2 * RUNGS; v++) join(problem, scattered(v, 2 * RUNGS), scattered(v + 2, 2 * RUNGS), 5);
  for (int v = 0; v < 2 * RUNGS; v += 2) join(problem, scattered(v, 2 * RUNGS), scattered(v + 1, 2 * RUNGS), 5);
  ChoiceSolution solution = choices_eliminate(problem);
  assert_true(solution.exact);
  assert_int_equal(solution.largest_table, 9);
  assert_true(choices_pbqp(problem).total >= solution.total);
  arena_free(arena);
}

static int seed(void **state) {
  (void)state;
  random_state = 20;
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(elimination_finds_the_least, seed),
      cmocka_unit_test_setup(reductions_are_exact_with_at_most_two_neighbours, seed),
      cmocka_unit_test_setup(the_heuristic_is_near_the_least, seed),
      cmocka_unit_test_setup(elimination_gives_up_where_tables_would_be_large, seed),
      cmocka_unit_test_setup(no_variables_cost_nothing, seed),
      cmocka_unit_test_setup(elimination_of_a_long_ladder_needs_small_tables, seed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
