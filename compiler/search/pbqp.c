/* SPDX-License-Identifier: MIT */
/*
 * The reductions for partitioned boolean quadratic problems. A variable of no neighbour (R0) takes its cheapest
 * alternative; one of one neighbour (RI) is folded into the neighbour's costs, one of two (RII) into the pair of them.
 * Where all have three or more, that of most neighbours takes the alternative that is cheapest beside what each
 * neighbour would choose for it (RN). What R0, RI and RII take out is chosen at the end, in the opposite order.
 *
 * Given what RN has chosen, the rest is exact. So each of those choices is tried another way, and all the rest solved
 * again, as long as that is cheaper.
 *
 * Scholz and Eckstein, Register Allocation for Irregular Architectures (LCTES 2002); Hames and Scholz, Nearly Optimal
 * Register Allocation with PBQP (JMLC 2006).
 */
#include <math.h>
#include <string.h>

#include "search/choices.h"

#include "support/list.h"

/* The search for the next variable dominates a trial: one step for each pair of variables. */
enum { MAX_TRIALS = 400, MAX_STEPS = 100000000 };

typedef struct Edge {
  int u, v;
  double *cost; /* [u][v] */
  bool gone;
} Edge;

typedef struct Vertex {
  int n; /* alternatives */
  double *cost;
  int n_edges, capacity; /* those that are gone too */
  Edge **edges;
  int degree; /* edges that are not gone */
  bool gone;
} Vertex;

typedef struct Reduction {
  const ChoiceProblem *problem;
  Arena *arena;
  Vertex *vertices;
  int n_taken, *taken; /* in order */
  int *chosen;         /* -1: not yet */
  const int *forced;   /* by variable: what RN is to choose; -1: by its cost */
  int by_rule[CHOICE_RULES];
} Reduction;

static int other_end(const Edge *edge, int vertex) { return edge->u == vertex ? edge->v : edge->u; }

/* The cost of the edge if `vertex` takes alternative `a` and the other end `b`. */
static double *cost_at(const Reduction *r, const Edge *edge, int vertex, int a, int b) {
  int columns = r->vertices[edge->v].n;
  return &edge->cost[edge->u == vertex ? a * columns + b : b * columns + a];
}

/* ---- edges ---- */

static void attach(Reduction *r, int vertex, Edge *edge) {
  Vertex *v = &r->vertices[vertex];
  *LIST_ADD(r->arena, v->edges, v->n_edges, v->capacity) = edge;
  v->degree++;
}

static void detach(Reduction *r, Edge *edge) {
  edge->gone = true;
  r->vertices[edge->u].degree--;
  r->vertices[edge->v].degree--;
}

static Edge *edge_between(const Reduction *r, int u, int v) {
  const Vertex *vertex = &r->vertices[u];
  for (int e = 0; e < vertex->n_edges; e++)
    if (!vertex->edges[e]->gone && other_end(vertex->edges[e], u) == v) return vertex->edges[e];
  return NULL;
}

/* Moves what every alternative of the other end costs beside one of `vertex` into that one's own cost. */
static void move_least(Reduction *r, Edge *edge, int vertex) {
  int others = r->vertices[other_end(edge, vertex)].n;
  for (int a = 0; a < r->vertices[vertex].n; a++) {
    double least = INFINITY;
    for (int b = 0; b < others; b++) least = fmin(least, *cost_at(r, edge, vertex, a, b));
    r->vertices[vertex].cost[a] += least;
    for (int b = 0; b < others; b++) {
      double *cost = cost_at(r, edge, vertex, a, b);
      *cost = isinf(least) ? 0 : *cost - least;
    }
  }
}

/* An edge whose matrix is a sum of two vectors is none. */
static void simplify(Reduction *r, Edge *edge) {
  move_least(r, edge, edge->u);
  move_least(r, edge, edge->v);
  int entries = r->vertices[edge->u].n * r->vertices[edge->v].n;
  for (int i = 0; i < entries; i++)
    if (edge->cost[i] != 0) return;
  detach(r, edge);
}

/* `cost` is the matrix [u][v] to add. */
static void add_edge(Reduction *r, int u, int v, const double *cost) {
  int rows = r->vertices[u].n, columns = r->vertices[v].n;
  Edge *edge = edge_between(r, u, v);
  if (!edge) {
    edge = ARENA_NEW(r->arena, Edge);
    *edge = (Edge){.u = u, .v = v, .cost = ARENA_ARRAY(r->arena, double, rows *columns)};
    attach(r, u, edge);
    attach(r, v, edge);
  }
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) *cost_at(r, edge, u, i, j) += cost[i * columns + j];
  simplify(r, edge);
}

/* ---- reductions ---- */

static void take(Reduction *r, int vertex) {
  Vertex *v = &r->vertices[vertex];
  for (int e = 0; e < v->n_edges; e++)
    if (!v->edges[e]->gone) detach(r, v->edges[e]);
  v->gone = true;
  r->taken[r->n_taken++] = vertex;
}

static Edge *next_edge(const Vertex *v, int *at) {
  while (*at < v->n_edges)
    if (!v->edges[(*at)++]->gone) return v->edges[*at - 1];
  return NULL;
}

/* Keeps what is left of the vertex's edges when it is taken: read_off chooses by them. */
static void keep_edges(Reduction *r, int vertex) {
  Vertex *v = &r->vertices[vertex];
  Edge **kept = ARENA_ARRAY(r->arena, Edge *, v->degree);
  int n = 0, at = 0;
  for (Edge *edge; (edge = next_edge(v, &at));) kept[n++] = edge;
  v->edges = kept;
  v->n_edges = v->capacity = n;
}

static void reduce_one(Reduction *r, int vertex) {
  Vertex *v = &r->vertices[vertex];
  const Edge *edge = v->edges[0];
  Vertex *neighbour = &r->vertices[other_end(edge, vertex)];
  for (int b = 0; b < neighbour->n; b++) {
    double least = INFINITY;
    for (int a = 0; a < v->n; a++) least = fmin(least, v->cost[a] + *cost_at(r, edge, vertex, a, b));
    neighbour->cost[b] += least;
  }
  take(r, vertex);
}

static void reduce_two(Reduction *r, int vertex) {
  const Vertex *v = &r->vertices[vertex];
  const Edge *first = v->edges[0], *second = v->edges[1];
  int y = other_end(first, vertex), z = other_end(second, vertex);
  int rows = r->vertices[y].n, columns = r->vertices[z].n;
  double *cost = ARENA_ARRAY(r->arena, double, rows *columns);
  for (int j = 0; j < rows; j++)
    for (int k = 0; k < columns; k++) {
      double least = INFINITY;
      for (int a = 0; a < v->n; a++)
        least = fmin(least, v->cost[a] + *cost_at(r, first, vertex, a, j) + *cost_at(r, second, vertex, a, k));
      cost[j * columns + k] = least;
    }
  take(r, vertex);
  add_edge(r, y, z, cost);
}

/* The cost of an alternative, plus for each neighbour the least cost of an alternative and the edge. */
static double local_cost(const Reduction *r, int vertex, int a) {
  const Vertex *v = &r->vertices[vertex];
  double cost = v->cost[a];
  for (int e = 0; e < v->n_edges; e++) {
    const Vertex *neighbour = &r->vertices[other_end(v->edges[e], vertex)];
    double least = INFINITY;
    for (int b = 0; b < neighbour->n; b++)
      least = fmin(least, neighbour->cost[b] + *cost_at(r, v->edges[e], vertex, a, b));
    cost += least;
  }
  return cost;
}

static int best_locally(const Reduction *r, int vertex) {
  int best = 0;
  double least = INFINITY;
  for (int a = 0; a < r->vertices[vertex].n; a++) {
    double cost = local_cost(r, vertex, a);
    if (cost < least) best = a;
    least = fmin(least, cost);
  }
  return best;
}

static void reduce_many(Reduction *r, int vertex) {
  const Vertex *v = &r->vertices[vertex];
  int best = r->forced[vertex] < 0 ? best_locally(r, vertex) : r->forced[vertex];
  r->chosen[vertex] = best;
  for (int e = 0; e < v->n_edges; e++) {
    Vertex *neighbour = &r->vertices[other_end(v->edges[e], vertex)];
    for (int b = 0; b < neighbour->n; b++) neighbour->cost[b] += *cost_at(r, v->edges[e], vertex, best, b);
  }
  take(r, vertex);
}

/* The first of fewest neighbours; if they are three or more, the first of most. */
static int next_vertex(const Reduction *r) {
  int fewest = -1, most = -1;
  for (int v = 0; v < r->problem->n_variables; v++) {
    if (r->vertices[v].gone) continue;
    if (fewest < 0 || r->vertices[v].degree < r->vertices[fewest].degree) fewest = v;
    if (most < 0 || r->vertices[v].degree > r->vertices[most].degree) most = v;
  }
  return fewest >= 0 && r->vertices[fewest].degree > 2 ? most : fewest;
}

static void reduce(Reduction *r, int vertex) {
  static void (*const reduces[])(Reduction *, int) = {
      [RULE_R0] = take, [RULE_RI] = reduce_one, [RULE_RII] = reduce_two, [RULE_RN] = reduce_many};
  int degree = r->vertices[vertex].degree;
  ChoiceRule rule = degree > 2 ? RULE_RN : (ChoiceRule)degree;
  keep_edges(r, vertex);
  reduces[rule](r, vertex);
  r->by_rule[rule]++;
}

/* ---- choosing ---- */

/* The best alternative beside what the vertex's neighbours have chosen. */
static int best_beside(const Reduction *r, int vertex) {
  const Vertex *v = &r->vertices[vertex];
  int best = 0;
  double least = INFINITY;
  for (int a = 0; a < v->n; a++) {
    double cost = v->cost[a];
    for (int e = 0; e < v->n_edges; e++)
      cost += *cost_at(r, v->edges[e], vertex, a, r->chosen[other_end(v->edges[e], vertex)]);
    if (cost < least) best = a;
    least = fmin(least, cost);
  }
  return best;
}

/* Assigns the vertices in reverse, by the costs and edges that each had when it was reduced. */
static void read_off(Reduction *r) {
  for (int t = r->n_taken - 1; t >= 0; t--)
    if (r->chosen[r->taken[t]] < 0) r->chosen[r->taken[t]] = best_beside(r, r->taken[t]);
}

static Reduction reduction_of(const ChoiceProblem *problem, Arena *arena, const int *forced) {
  Reduction r = {.problem = problem, .arena = arena, .forced = forced};
  int n = problem->n_variables;
  r.vertices = ARENA_ARRAY(r.arena, Vertex, n);
  r.taken = ARENA_ARRAY(r.arena, int, n);
  r.chosen = ARENA_ARRAY(r.arena, int, n);
  for (int v = 0; v < n; v++) {
    const ChoiceVariable *variable = &problem->variables[v];
    r.chosen[v] = -1;
    r.vertices[v].n = variable->n;
    r.vertices[v].cost = arena_copy(r.arena, variable->cost, (size_t)variable->n * sizeof *variable->cost);
  }
  for (int p = 0; p < problem->n_pairs; p++)
    add_edge(&r, problem->pairs[p].u, problem->pairs[p].v, problem->pairs[p].cost);
  return r;
}

/* ---- trials ---- */

/* An assignment, and the choices of RN in it, -1 elsewhere. */
typedef struct Trial {
  int *chosen, *by_heuristic, by_rule[CHOICE_RULES];
  double total;
} Trial;

static Trial trial_of(const ChoiceProblem *problem, const int *forced) {
  Arena *arena = arena_new();
  Reduction r = reduction_of(problem, arena, forced);
  size_t bytes = (size_t)problem->n_variables * sizeof *r.chosen;
  Trial trial;
  for (int v; (v = next_vertex(&r)) >= 0;) reduce(&r, v);
  trial.by_heuristic = arena_copy(problem->arena, r.chosen, bytes);
  read_off(&r);
  trial.chosen = arena_copy(problem->arena, r.chosen, bytes);
  trial.total = choices_total(problem, r.chosen);
  memcpy(trial.by_rule, r.by_rule, sizeof trial.by_rule);
  arena_free(arena);
  return trial;
}

/* Tries the alternatives of one heuristic choice. True if one is better: it is in *best then. */
static bool improve_one(const ChoiceProblem *problem, Trial *best, int variable, int *trials) {
  int *forced = ARENA_ARRAY(problem->arena, int, problem->n_variables);
  for (int v = 0; v < problem->n_variables; v++) forced[v] = best->by_heuristic[v];
  for (int a = 0; a < problem->variables[variable].n && *trials > 0; a++) {
    if (a == best->by_heuristic[variable]) continue;
    --*trials;
    forced[variable] = a;
    Trial trial = trial_of(problem, forced);
    if (!(trial.total < best->total)) continue;
    *best = trial;
    return true;
  }
  return false;
}

/* Round the heuristic choices until none of them can be bettered alone. */
static void improve(const ChoiceProblem *problem, Trial *best) {
  int n = problem->n_variables, trials = n ? (int)fmin(MAX_TRIALS, MAX_STEPS / ((double)n * n)) : 0;
  for (int v = 0, unchanged = 0; unchanged < n && trials > 0; v++) {
    int variable = v % n;
    bool better = best->by_heuristic[variable] >= 0 && improve_one(problem, best, variable, &trials);
    unchanged = better ? 0 : unchanged + 1;
  }
}

ChoiceSolution choices_pbqp(const ChoiceProblem *problem) {
  int *forced = ARENA_ARRAY(problem->arena, int, problem->n_variables);
  for (int v = 0; v < problem->n_variables; v++) forced[v] = -1;
  Trial best = trial_of(problem, forced);
  ChoiceSolution solution = {.exact = best.by_rule[RULE_RN] == 0};
  memcpy(solution.by_rule, best.by_rule, sizeof solution.by_rule);
  improve(problem, &best);
  solution.chosen = best.chosen;
  solution.total = best.total;
  return solution;
}
