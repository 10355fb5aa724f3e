/* SPDX-License-Identifier: MIT */
/*
 * Liveness in calls of the schedule, then offsets: the largest first, each at the lowest place that is free while it is
 * live. Values that are live together share no byte.
 */
#include "plan/plan_memory.h"

#include <stdlib.h>

#include "support/diagnostics.h"

enum { ALIGNMENT = 64 };

static const int64_t LARGEST_ARENA = INT64_C(1) << 46;

/* ---- liveness ---- */

typedef struct Liveness {
  int last_call;     /* one past the calls: the end of the run */
  int *first, *last; /* by value id; first = -1: never touched */
} Liveness;

static void touch(Liveness *live, Value *value, int call) {
  int id = value_root(value)->id;
  if (live->first[id] < 0 || call < live->first[id]) live->first[id] = call;
  if (call > live->last[id]) live->last[id] = call;
}

/* What the calls of a wavefront touch they touch again and again until the last of them is done. */
static void touch_accesses(Liveness *live, const Emitter *emitter, int call) {
  int first, last;
  calls_beside(emitter, call, &first, &last);
  for (int a = 0; a < emitter->calls[call]->n_accesses; a++) {
    touch(live, emitter->calls[call]->accesses[a].value, first);
    touch(live, emitter->calls[call]->accesses[a].value, last);
  }
}

static Liveness find_liveness(Emitter *emitter) {
  Graph *graph = emitter->graph;
  Liveness live = {.last_call = emitter->n_calls};
  live.first = ARENA_ARRAY(graph->arena, int, graph->n_values);
  live.last = ARENA_ARRAY(graph->arena, int, graph->n_values);
  for (int i = 0; i < graph->n_values; i++) live.first[i] = live.last[i] = -1;
  for (int i = 0; i < emitter->n_calls; i++) touch_accesses(&live, emitter, i);
  for (int i = 0; i < graph->n_states; i++) {
    touch(&live, graph->states[i].input, 0);
    touch(&live, graph->states[i].output, live.last_call);
  }
  return live;
}

/* ---- the caller's buffers ---- */

static bool is_state_value(const Graph *graph, const Value *root) {
  for (int i = 0; i < graph->n_states; i++)
    if (value_root(graph->states[i].input) == root || value_root(graph->states[i].output) == root) return true;
  return false;
}

static void place_inputs(Graph *graph) {
  for (int i = 0; i < graph->n_inputs; i++) {
    graph->inputs[i]->storage = STORAGE_INPUT;
    graph->inputs[i]->slot = i;
  }
}

/* An output is written in place where its bytes belong to it alone and nothing can fail after they are written; else it
 * stays in the arena to the end, and the runtime copies it out. */
static void place_outputs(Emitter *emitter, Liveness *live) {
  Graph *graph = emitter->graph;
  for (int i = 0; i < graph->n_outputs; i++) {
    Value *root = value_root(graph->outputs[i]);
    if ((root->is_input && !is_state_value(graph, root)) || root->data) bug("output %d is an input or a constant", i);
    if (root->storage != STORAGE_NONE || emitter->may_fault || is_state_value(graph, root)) {
      touch(live, root, live->last_call);
      continue;
    }
    root->storage = STORAGE_OUTPUT;
    root->slot = i;
  }
}

/* ---- offsets ---- */

static int by_size(const void *left, const void *right) {
  const Interval *a = *(Interval *const *)left, *b = *(Interval *const *)right;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return a->value->id - b->value->id;
}

static int by_offset(const void *left, const void *right) {
  const Interval *a = *(Interval *const *)left, *b = *(Interval *const *)right;
  if (a->value->offset != b->value->offset) return a->value->offset < b->value->offset ? -1 : 1;
  return a->value->id - b->value->id;
}

static bool together(const Interval *a, const Interval *b) { return a->first <= b->last && b->first <= a->last; }

/* The lowest offset where `interval` fits between those placed before that live at the same time. */
static int64_t lowest_fit(Interval *const *placed, int count, const Interval *interval, Interval **beside) {
  int n = 0;
  for (int i = 0; i < count; i++)
    if (together(placed[i], interval)) beside[n++] = placed[i];
  qsort(beside, (size_t)n, sizeof *beside, by_offset);
  int64_t offset = 0;
  for (int i = 0; i < n; i++) {
    if (beside[i]->value->offset - offset >= interval->bytes) break;
    int64_t end = beside[i]->value->offset + beside[i]->bytes;
    if (end > offset) offset = end;
  }
  return offset;
}

static void assign_offsets(Arena *arena, MemoryPlan *plan) {
  Interval **order = ARENA_ARRAY(arena, Interval *, plan->n_intervals);
  Interval **beside = ARENA_ARRAY(arena, Interval *, plan->n_intervals);
  for (int i = 0; i < plan->n_intervals; i++) order[i] = &plan->intervals[i];
  qsort(order, (size_t)plan->n_intervals, sizeof *order, by_size);
  for (int i = 0; i < plan->n_intervals; i++) {
    int64_t offset = lowest_fit(order, i, order[i], beside);
    order[i]->value->offset = offset;
    order[i]->value->storage = STORAGE_ARENA;
    if (offset + order[i]->bytes > plan->arena_bytes) plan->arena_bytes = offset + order[i]->bytes;
  }
}

/* The largest sum of bytes live at one call. */
static int64_t largest_live_set(const MemoryPlan *plan, int n_calls) {
  int64_t largest = 0;
  for (int call = 0; call <= n_calls; call++) {
    int64_t sum = 0;
    for (int i = 0; i < plan->n_intervals; i++)
      if (plan->intervals[i].first <= call && call <= plan->intervals[i].last) sum += plan->intervals[i].bytes;
    if (sum > largest) largest = sum;
  }
  return largest;
}

/* ---- the pass ---- */

static int64_t padded_bytes(const Graph *graph, const Value *value) {
  int64_t bytes = value_max_bytes(value);
  if (bytes > LARGEST_ARENA)
    fatal_at(value->where.file ? value->where : LOCATION_FILE(graph->file), EXIT_LIMIT,
             "tensor `%s` may take more than 64 TiB; lower a dimension's max", value->name ? value->name : "?");
  return bytes ? (bytes + ALIGNMENT - 1) & ~(int64_t)(ALIGNMENT - 1) : ALIGNMENT;
}

MemoryPlan *plan_memory(Emitter *emitter) {
  Graph *graph = emitter->graph;
  MemoryPlan *plan = ARENA_NEW(graph->arena, MemoryPlan);
  Liveness live = find_liveness(emitter);
  place_inputs(graph);
  place_outputs(emitter, &live);
  plan->intervals = ARENA_ARRAY(graph->arena, Interval, graph->n_values);
  for (int i = 0; i < graph->n_values; i++) {
    Value *value = graph->values[i];
    if (live.first[i] < 0 || value->storage != STORAGE_NONE || value->data) continue;
    Interval interval = {value, padded_bytes(graph, value), live.first[i], live.last[i]};
    plan->intervals[plan->n_intervals++] = interval;
  }
  assign_offsets(graph->arena, plan);
  if (plan->arena_bytes > LARGEST_ARENA)
    fatal_at(LOCATION_FILE(graph->file), EXIT_LIMIT, "one run needs more than 64 TiB; lower a dimension's max");
  plan->lower_bound = largest_live_set(plan, emitter->n_calls);
  graph->arena_bytes = plan->arena_bytes;
  return plan;
}
