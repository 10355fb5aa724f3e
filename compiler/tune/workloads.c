/* SPDX-License-Identifier: MIT */
#include "tune/workloads.h"

#include <stdlib.h>
#include <string.h>

#include "ir/bodies.h"
#include "ir/family.h"
#include "kernels/conv/recorded.h"
#include "layout/layout.h"
#include "support/list.h"
#include "tune/trial_case.h"

/* Wide blocks are tried where the predicted speed-up is at least PROMISE, with WIDE_TRIALS trials. */
static const double PROMISE = 1.01;
enum { WIDE_TRIALS = 3 };

typedef struct Search {
  Graph *graph;
  int capacity;
  Workloads found;
} Search;

static Workload *find(Workloads *all, const char *workload) {
  for (int i = 0; i < all->count; i++)
    if (!strcmp(all->list[i].key.workload, workload)) return &all->list[i];
  return NULL;
}

static void add(Search *search, const Workload *workload) {
  Workloads *found = &search->found;
  *LIST_ADD(search->graph->arena, found->list, found->count, search->capacity) = *workload;
}

static Workload workload_of(Graph *graph, const Node *node, NodeLayout layout, RecordKey key) {
  Convolution conv = convolution_of(graph, node, layout);
  return (Workload){.key = key,
                    .node = node,
                    .layout = layout,
                    .occurrences = 1,
                    .macs = convolution_macs(&conv),
                    .candidates = convolution_candidates(graph, node, layout)};
}

/* With a single candidate there is nothing to tune. */
static void consider(Search *search, Graph *graph, const Node *node) {
  if (node->op->family != &family_conv || !can_be_tried(node)) return;
  RecordKey key = convolution_key(graph, node, node->layout);
  Workload *known = find(&search->found, key.workload);
  if (known) {
    known->occurrences++;
    return;
  }
  Workload workload = workload_of(graph, node, node->layout, key);
  if (workload.candidates.count > 1) add(search, &workload);
}

/* Wide blocks that promise nothing are not measured. */
static void consider_layout(Search *search, Graph *graph, const Node *node, NodeLayout layout, double usual) {
  bool wide = layout.reads == LAYOUT_WIDE || layout.writes == LAYOUT_WIDE;
  RecordKey key = convolution_key(graph, node, layout);
  if (find(&search->found, key.workload)) return;
  if (wide && convolution_first(graph, node, layout).seconds * PROMISE >= usual) return;
  Workload workload = workload_of(graph, node, layout, key);
  workload.other_blocks = true;
  if (wide) workload.most_trials = WIDE_TRIALS;
  if (workload.candidates.count > 1) add(search, &workload);
}

/* The node in other blocks than the model's: in blocks of a vector, with which wide ones are compared, and in wide ones
 * that should be faster. An image of few channels keeps its narrow blocks. */
static void consider_blocks(Search *search, Graph *graph, const Node *node) {
  if (node->op->family != &family_conv || !is_blocked(node) || !can_be_tried(node)) return;
  LayoutSet possible = possible_layouts(graph, node);
  if (!(possible & LAYOUT_SET_WIDE)) return;
  Layout usual = node->layout.reads == LAYOUT_NARROW ? LAYOUT_NARROW : LAYOUT_BLOCKED;
  const NodeLayout layouts[] = {
      {usual, LAYOUT_BLOCKED}, {LAYOUT_WIDE, LAYOUT_BLOCKED}, {usual, LAYOUT_WIDE}, {LAYOUT_WIDE, LAYOUT_WIDE}};
  double seconds = convolution_first(graph, node, layouts[0]).seconds;
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
    if (possible & LAYOUT_BIT(layouts[i].reads, layouts[i].writes))
      consider_layout(search, graph, node, layouts[i], seconds);
}

/* Also in bodies. Each counts once, because it is not known how often a body runs. */
static void consider_all(Search *search, Graph *graph, void (*consider_node)(Search *, Graph *, const Node *)) {
  for (int i = 0; i < graph->n_nodes; i++) {
    Attribute *bodies[MAX_BODIES];
    int count = graph->nodes[i]->control ? node_bodies(graph->nodes[i], bodies) : 0;
    consider_node(search, graph, graph->nodes[i]);
    for (int b = 0; b < count; b++) consider_all(search, bodies[b]->graph, consider_node);
  }
}

/* The predicted seconds of all its convolutions in one run. */
static double workload_seconds(const Workload *w) { return w->candidates.list[0].seconds * w->occurrences; }

static int by_text(const Workload *a, const Workload *b) { return strcmp(a->key.workload, b->key.workload); }

static int by_work(const void *a, const void *b) {
  const Workload *x = a, *y = b;
  double p = x->macs * x->occurrences, q = y->macs * y->occurrences;
  return p != q ? (p > q ? -1 : 1) : by_text(x, y);
}

static int by_seconds(const void *a, const void *b) {
  const Workload *x = a, *y = b;
  double p = workload_seconds(x), q = workload_seconds(y);
  return p != q ? (p > q ? -1 : 1) : by_text(x, y);
}

/* Shares out the workloads in an order that does not depend on speeds. */
static void keep_shard(Workloads *all, int shard, int shards) {
  int kept = 0;
  qsort(all->list, (size_t)all->count, sizeof *all->list, by_work);
  for (int i = shard - 1; i < all->count; i += shards) all->list[kept++] = all->list[i];
  all->count = kept;
}

Workloads find_workloads(Graph *graph, int shard, int shards) {
  Search search = {.graph = graph};
  consider_all(&search, graph, consider);
  if (graph->config->layout_search != LAYOUT_SEARCH_NONE) consider_all(&search, graph, consider_blocks);
  if (search.found.count == 0) return search.found;
  keep_shard(&search.found, shard, shards);
  qsort(search.found.list, (size_t)search.found.count, sizeof *search.found.list, by_seconds);
  return search.found;
}
