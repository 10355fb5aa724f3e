/* SPDX-License-Identifier: MIT */
/*
 * Dynamic programming over a graph of any shape: a variable is eliminated by a table that tells, for each way its
 * neighbours may be chosen, what it costs at least together with all that depends on it, and which of its alternatives
 * that takes. In a chain that is the table of NeoCPU's Algorithm 2; where branches meet, tables have more axes. The
 * variable whose table is smallest goes first. Then the alternatives are read off in the opposite order.
 *
 * Bertele and Brioschi, Nonserial Dynamic Programming (1972).
 */
#include <math.h>
#include <string.h>

#include "search/choices.h"

#include "support/list.h"

/* Entries of a table; entries read altogether. */
enum { MAX_ENTRIES = 1 << 16, MAX_WORK = 1 << 25, MAX_AXES = 16 };

/* Costs of some variables together, row-major in their order, which ascends. */
typedef struct Table {
  int n;
  int variables[MAX_AXES];
  const double *cost;
} Table;

/* The tables that mention a variable. */
typedef struct Links {
  int n, capacity;
  const Table **tables; /* that have it for an axis, and are not part of another yet */
  bool gone;
  double entries; /* of the table that its elimination makes */
} Links;

/* An eliminated variable: its best alternative for each choice of the neighbours that it had. */
typedef struct Step {
  int variable;
  Table scope; /* without costs */
  uint16_t *best;
} Step;

typedef struct Elimination {
  const ChoiceProblem *problem;
  Arena *arena;
  Links *links;
  int n_steps;
  Step *steps;
  double work;
  ChoiceSolution *solution;
} Elimination;

static int alternatives(const Elimination *e, int variable) { return e->problem->variables[variable].n; }

/* ---- which table comes next ---- */

static bool insert(Table *scope, int variable) {
  int at = 0;
  while (at < scope->n && scope->variables[at] < variable) at++;
  if (at < scope->n && scope->variables[at] == variable) return true;
  if (scope->n == MAX_AXES) return false;
  memmove(&scope->variables[at + 1], &scope->variables[at], (size_t)(scope->n - at) * sizeof *scope->variables);
  scope->variables[at] = variable;
  scope->n++;
  return true;
}

/* The variable's neighbours. False if they are too many for a table. */
static bool find_scope(const Elimination *e, int variable, Table *scope) {
  *scope = (Table){0};
  for (int t = 0; t < e->links[variable].n; t++) {
    const Table *table = e->links[variable].tables[t];
    for (int axis = 0; axis < table->n; axis++)
      if (table->variables[axis] != variable && !insert(scope, table->variables[axis])) return false;
  }
  return true;
}

static double entries_of(const Elimination *e, const Table *scope) {
  double entries = 1;
  for (int axis = 0; axis < scope->n; axis++) entries *= alternatives(e, scope->variables[axis]);
  return entries;
}

static void measure(Elimination *e, int variable) {
  Table scope;
  e->links[variable].entries = find_scope(e, variable, &scope) ? entries_of(e, &scope) : INFINITY;
}

static int smallest(const Elimination *e) {
  int best = -1;
  for (int v = 0; v < e->problem->n_variables; v++)
    if (!e->links[v].gone && (best < 0 || e->links[v].entries < e->links[best].entries)) best = v;
  return best;
}

/* ---- tables ---- */

static void link_table(Elimination *e, const Table *table) {
  for (int axis = 0; axis < table->n; axis++) {
    Links *links = &e->links[table->variables[axis]];
    *LIST_ADD(e->arena, links->tables, links->n, links->capacity) = table;
  }
}

static void unlink_table(Elimination *e, const Table *table) {
  for (int axis = 0; axis < table->n; axis++) {
    Links *links = &e->links[table->variables[axis]];
    int kept = 0;
    for (int t = 0; t < links->n; t++)
      if (links->tables[t] != table) links->tables[kept++] = links->tables[t];
    links->n = kept;
  }
}

static void link_pair(Elimination *e, const ChoicePair *pair) {
  int u = pair->u, v = pair->v, rows = alternatives(e, u), columns = alternatives(e, v);
  Table *table = ARENA_NEW(e->arena, Table);
  *table = (Table){.n = 2, .variables = {u < v ? u : v, u < v ? v : u}, .cost = pair->cost};
  if (u > v) {
    double *turned = ARENA_ARRAY(e->arena, double, rows *columns);
    for (int i = 0; i < rows; i++)
      for (int j = 0; j < columns; j++) turned[j * rows + i] = pair->cost[i * columns + j];
    table->cost = turned;
  }
  link_table(e, table);
}

/* Strides through a table that a sum reads: for each axis of the scope, and for the variable itself. */
typedef struct Walk {
  const double *cost;
  int64_t stride[MAX_AXES], own;
} Walk;

static Walk walk_of(const Elimination *e, const Table *table, const Table *scope, int variable) {
  Walk walk = {.cost = table->cost};
  int64_t stride = 1;
  for (int axis = table->n - 1; axis >= 0; axis--) {
    if (table->variables[axis] == variable) walk.own = stride;
    for (int k = 0; k < scope->n; k++)
      if (scope->variables[k] == table->variables[axis]) walk.stride[k] = stride;
    stride *= alternatives(e, table->variables[axis]);
  }
  return walk;
}

/* The next choice of the scope's variables, the last first; `offsets` into the tables follow. */
static void advance(const Elimination *e, const Table *scope, int *at, int n, const Walk *walks, int64_t *offsets) {
  for (int k = scope->n - 1; k >= 0; k--) {
    int back = ++at[k] == alternatives(e, scope->variables[k]) ? at[k] : 0;
    for (int t = 0; t < n; t++) offsets[t] += walks[t].stride[k] * (1 - back);
    if (!back) return;
    at[k] = 0;
  }
}

/* The variable's best alternative beside one choice of its neighbours, and the cost of all together. */
static double best_alternative(const Elimination *e, int variable, int n, const Walk *walks, const int64_t *offsets,
                               uint16_t *best) {
  const ChoiceVariable *v = &e->problem->variables[variable];
  double least = INFINITY;
  *best = 0;
  for (int a = 0; a < v->n; a++) {
    double cost = v->cost[a];
    for (int t = 0; t < n; t++) cost += walks[t].cost[offsets[t] + a * walks[t].own];
    if (!(cost < least)) continue;
    least = cost;
    *best = (uint16_t)a;
  }
  return least;
}

static const Table *eliminate(Elimination *e, int variable, const Table *scope, int64_t entries) {
  Links *links = &e->links[variable];
  int n = links->n, at[MAX_AXES] = {0};
  double *cost = ARENA_ARRAY(e->arena, double, entries);
  Table *table = arena_copy(e->arena, scope, sizeof *scope);
  Step *step = &e->steps[e->n_steps++];
  *step = (Step){.variable = variable, .scope = *scope, .best = ARENA_ARRAY(e->arena, uint16_t, entries)};
  Walk *walks = ARENA_ARRAY(e->arena, Walk, n);
  int64_t *offsets = ARENA_ARRAY(e->arena, int64_t, n);
  for (int t = 0; t < n; t++) {
    walks[t] = walk_of(e, links->tables[t], scope, variable);
    offsets[t] = 0;
  }
  for (int64_t i = 0; i < entries; i++) {
    cost[i] = best_alternative(e, variable, n, walks, offsets, &step->best[i]);
    advance(e, scope, at, n, walks, offsets);
  }
  table->cost = cost;
  while (links->n) unlink_table(e, links->tables[0]);
  links->gone = true;
  return table;
}

/* ---- all of it ---- */

/* False: the table or the work is too large. */
static bool eliminate_next(Elimination *e) {
  int variable = smallest(e);
  Table scope;
  double entries = e->links[variable].entries;
  if (entries > (double)e->solution->largest_table)
    e->solution->largest_table = entries < 1e18 ? (int64_t)entries : INT64_MAX;
  e->work += entries * alternatives(e, variable) * (e->links[variable].n + 1);
  if (entries > MAX_ENTRIES || e->work > MAX_WORK || !find_scope(e, variable, &scope)) return false;
  const Table *table = eliminate(e, variable, &scope, (int64_t)entries);
  if (table->n) link_table(e, table);
  for (int axis = 0; axis < scope.n; axis++) measure(e, scope.variables[axis]);
  return true;
}

/* Backwards, so that a variable's neighbours are chosen before it. */
static void read_off(const Elimination *e, int *chosen) {
  for (int s = e->n_steps - 1; s >= 0; s--) {
    const Step *step = &e->steps[s];
    int64_t entry = 0;
    for (int axis = 0; axis < step->scope.n; axis++)
      entry = entry * alternatives(e, step->scope.variables[axis]) + chosen[step->scope.variables[axis]];
    chosen[step->variable] = step->best[entry];
  }
}

ChoiceSolution choices_eliminate(const ChoiceProblem *problem) {
  ChoiceSolution solution = {0};
  int n = problem->n_variables;
  Elimination e = {.problem = problem, .arena = problem->arena, .solution = &solution};
  e.links = ARENA_ARRAY(e.arena, Links, n);
  e.steps = ARENA_ARRAY(e.arena, Step, n);
  for (int p = 0; p < problem->n_pairs; p++) link_pair(&e, &problem->pairs[p]);
  for (int v = 0; v < n; v++) measure(&e, v);
  while (e.n_steps < n)
    if (!eliminate_next(&e)) return solution;
  solution.chosen = ARENA_ARRAY(e.arena, int, n);
  read_off(&e, solution.chosen);
  solution.total = choices_total(problem, solution.chosen);
  solution.exact = true;
  return solution;
}
