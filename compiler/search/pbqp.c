/* SPDX-License-Identifier: MIT */
/*
 * The reductions for partitioned boolean quadratic problems. A variable of no neighbour (R0) takes its cheapest
 * alternative; one of one neighbour (RI) is folded into the neighbour's costs, one of two (RII) into the pair of them.
 * Where all have three or more, that of most neighbours takes the alternative that is cheapest beside what each
 * neighbour would choose for it (RN). What R0, RI and RII take out is chosen at the end, in the opposite order. After
 * RN, sweeps change single variables as long as that is cheaper.
 *
 * Scholz and Eckstein, Register Allocation for Irregular Architectures (LCTES 2002); Hames and Scholz, Nearly Optimal
 * Register Allocation with PBQP (JMLC 2006).
 */
#include <math.h>

#include "search/choices.h"

enum { MOST_SWEEPS = 100 };

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
} Reduction;

static int other_end(const Edge *edge, int vertex) { return edge->u == vertex ? edge->v : edge->u; }

/* Of the edge at `vertex`, whose alternative is `a`, the other end's being `b`. */
static double *cost_at(const Reduction *r, const Edge *edge, int vertex, int a, int b) {
  int columns = r->vertices[edge->v].n;
  return &edge->cost[edge->u == vertex ? a * columns + b : b * columns + a];
}

/* ---- edges ---- */

static void attach(Reduction *r, int vertex, Edge *edge) {
  Vertex *v = &r->vertices[vertex];
  if (v->n_edges == v->capacity) {
    v->capacity = v->capacity ? 2 * v->capacity : 4;
    Edge **larger = ARENA_ARRAY(r->arena, Edge *, v->capacity);
    for (int e = 0; e < v->n_edges; e++) larger[e] = v->edges[e];
    v->edges = larger;
  }
  v->edges[v->n_edges++] = edge;
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

/* Of an alternative beside the best that each neighbour could choose for it. */
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

static void reduce_many(Reduction *r, int vertex) {
  const Vertex *v = &r->vertices[vertex];
  int best = 0;
  double least = INFINITY;
  for (int a = 0; a < v->n; a++) {
    double cost = local_cost(r, vertex, a);
    if (cost < least) best = a;
    least = fmin(least, cost);
  }
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

static ChoiceRule reduce(Reduction *r, int vertex) {
  static void (*const reduces[])(Reduction *, int) = {
      [RULE_R0] = take, [RULE_RI] = reduce_one, [RULE_RII] = reduce_two, [RULE_RN] = reduce_many};
  int degree = r->vertices[vertex].degree;
  ChoiceRule rule = degree > 2 ? RULE_RN : (ChoiceRule)degree;
  keep_edges(r, vertex);
  reduces[rule](r, vertex);
  return rule;
}

/* ---- choosing ---- */

/* Of an alternative beside what the vertex's neighbours have chosen. */
static double cost_beside(const Reduction *r, int vertex, int a) {
  const Vertex *v = &r->vertices[vertex];
  double cost = v->cost[a];
  for (int e = 0; e < v->n_edges; e++)
    cost += *cost_at(r, v->edges[e], vertex, a, r->chosen[other_end(v->edges[e], vertex)]);
  return cost;
}

/* The best, and `otherwise` unless it is better than that. */
static int best_beside(const Reduction *r, int vertex, int otherwise) {
  int best = otherwise;
  double least = cost_beside(r, vertex, otherwise);
  for (int a = 0; a < r->vertices[vertex].n; a++) {
    double cost = cost_beside(r, vertex, a);
    if (cost < least) best = a;
    least = fmin(least, cost);
  }
  return best;
}

/* By the costs and the edges that each vertex had when it was taken. */
static void read_off(Reduction *r) {
  for (int t = r->n_taken - 1; t >= 0; t--)
    if (r->chosen[r->taken[t]] < 0) r->chosen[r->taken[t]] = best_beside(r, r->taken[t], 0);
}

static Reduction reduction_of(const ChoiceProblem *problem) {
  Reduction r = {.problem = problem, .arena = problem->arena};
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

/* One variable at a time takes what is best beside all others as they stand. */
static void improve(const ChoiceProblem *problem, int *chosen) {
  Reduction r = reduction_of(problem);
  int changed = 1;
  r.chosen = chosen;
  for (int sweep = 0; sweep < MOST_SWEEPS && changed; sweep++) {
    changed = 0;
    for (int v = 0; v < problem->n_variables; v++) {
      int best = best_beside(&r, v, chosen[v]);
      changed += best != chosen[v];
      chosen[v] = best;
    }
  }
}

ChoiceSolution choices_pbqp(const ChoiceProblem *problem) {
  ChoiceSolution solution = {0};
  Reduction r = reduction_of(problem);
  for (int v; (v = next_vertex(&r)) >= 0;) solution.by_rule[reduce(&r, v)]++;
  read_off(&r);
  solution.exact = solution.by_rule[RULE_RN] == 0;
  if (!solution.exact) improve(problem, r.chosen);
  solution.chosen = r.chosen;
  solution.total = choices_total(problem, r.chosen);
  return solution;
}
