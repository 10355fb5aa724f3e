/* SPDX-License-Identifier: MIT */
/*
 * Liveness in calls of the schedule, then offsets. Values that are live together share no byte, but for one that a
 * kernel writes over another, which nobody reads any more: they are one span of memory, live from the first to the
 * last.
 */
#include "program/plan_memory.h"

#include "ir/family.h"
#include "support/diagnostics.h"

enum { ALIGNMENT = 64 };

static const int64_t MAX_ARENA = INT64_C(1) << 46;

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

/* What comes from outside a region is needed from its begin to its end: there may be another iteration. */
static void touch_region(const Program *program, int call, const Value *root, int *first, int *last) {
  const Region *home = home_of(program, root);
  for (const Region *region = program->calls[call]->region; region && region != home; region = region->outer) {
    *first = region->first;
    *last = region->last;
  }
}

/* What the calls of a wavefront touch they touch again and again until the last of them is done; a loop looks at its
 * limit before each iteration. */
static void touch_accesses(Liveness *live, const Program *program, int call) {
  for (int a = 0; a < program->calls[call]->n_accesses; a++) {
    Value *value = program->calls[call]->accesses[a].value;
    int first, last;
    calls_beside(program, call, &first, &last);
    touch_region(program, call, value_root(value), &first, &last);
    if (program->calls[call]->opens && last < program->calls[call]->opens->last)
      last = program->calls[call]->opens->last;
    touch(live, value, first);
    touch(live, value, last);
  }
}

static Liveness find_liveness(Program *program) {
  Graph *graph = program->graph;
  Liveness live = {.last_call = program->n_calls};
  live.first = ARENA_ARRAY(graph->arena, int, program->n_values);
  live.last = ARENA_ARRAY(graph->arena, int, program->n_values);
  for (int i = 0; i < program->n_values; i++) live.first[i] = live.last[i] = -1;
  for (int i = 0; i < program->n_calls; i++) touch_accesses(&live, program, i);
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
static void place_outputs(Program *program, Liveness *live) {
  Graph *graph = program->graph;
  for (int i = 0; i < graph->n_outputs; i++) {
    Value *root = value_root(graph->outputs[i]);
    if ((root->is_input && !is_state_value(graph, root)) || root->data) bug("output %d is an input or a constant", i);
    if (root->storage != STORAGE_NONE || program->may_fault || is_state_value(graph, root)) {
      touch(live, root, live->last_call);
      continue;
    }
    root->storage = STORAGE_OUTPUT;
    root->slot = i;
  }
}

/* ---- values written over others ---- */

/* A value of the arena that fills the memory of its root. */
static bool is_whole(Value *value) {
  const Value *root = value_root(value);
  return !value->data && !root->is_input && root->storage == STORAGE_NONE &&
         value_max_bytes(value) == value_max_bytes(root);
}

/* Can the node's kernel write its output over input `i`, however often that comes among its inputs? */
static bool may_overwrite(const Node *node, int i) {
  const Value *root = value_root(node->inputs[i]);
  for (int k = 0; k < node->n_inputs; k++)
    if (node->inputs[k] && value_root(node->inputs[k]) == root && !node->op->family->overwrites(node, k)) return false;
  return true;
}

/* The value that the call's output can be written over: one that is read here for the last time. NULL if there is none.
 */
static Value *overwritten(const Program *program, const Liveness *live, int call) {
  const Node *node = program->calls[call]->node;
  const Region *here = program->calls[call]->region;
  if (program->calls[call]->line) return NULL;
  bool able = node && node->op->family && node->op->family->overwrites && !program->calls[call]->wavefront;
  if (!able || node->n_outputs != 1 || !is_whole(node->outputs[0])) return NULL;
  const Value *output = value_root(node->outputs[0]);
  if (live->first[output->id] != call || is_state_value(program->graph, output)) return NULL;
  if (home_of(program, output) != here) return NULL;
  for (int i = 0; i < node->n_inputs; i++) {
    if (!node->inputs[i] || !is_whole(node->inputs[i])) continue;
    Value *input = value_root(node->inputs[i]);
    if (home_of(program, input) != here) continue;
    bool ends = live->last[input->id] == call && live->first[input->id] < call;
    if (ends && value_max_bytes(input) == value_max_bytes(output) && !is_state_value(program->graph, input) &&
        may_overwrite(node, i))
      return input;
  }
  return NULL;
}

static Interval *interval_of(MemoryPlan *plan, const Value *value) {
  int low = 0, high = plan->n_intervals - 1;
  while (low < high) {
    int middle = (low + high) / 2;
    if (plan->intervals[middle].value->id < value->id)
      low = middle + 1;
    else
      high = middle;
  }
  return &plan->intervals[low];
}

static void find_overwritten(Program *program, const Liveness *live, MemoryPlan *plan) {
  for (int call = 0; call < program->n_calls; call++) {
    const Value *input = overwritten(program, live, call);
    if (input) interval_of(plan, value_root(program->calls[call]->node->outputs[0]))->over = input;
  }
}

/* ---- offsets ---- */

/* A span for each interval that is written over none; in the order of the calls, so that one comes after the one it is
 * written over. */
static void make_spans(Program *program, MemoryPlan *plan) {
  Arena *arena = program->graph->arena;
  int *next = ARENA_ARRAY(arena, int, plan->n_intervals), *heads = ARENA_ARRAY(arena, int, program->n_calls + 1);
  for (int i = 0; i <= program->n_calls; i++) heads[i] = -1;
  for (int i = plan->n_intervals - 1; i >= 0; i--) {
    next[i] = heads[plan->intervals[i].first];
    heads[plan->intervals[i].first] = i;
  }
  plan->spans = ARENA_ARRAY(arena, Span, plan->n_intervals);
  for (int call = 0; call <= program->n_calls; call++)
    for (int i = heads[call]; i >= 0; i = next[i]) {
      Interval *interval = &plan->intervals[i];
      interval->span = interval->over ? interval_of(plan, interval->over)->span : plan->n_spans++;
      Span *span = &plan->spans[interval->span];
      if (!interval->over) *span = (Span){.bytes = interval->bytes, .first = interval->first};
      span->last = interval->last;
    }
}

static void assign_offsets(Program *program, MemoryPlan *plan) {
  make_spans(program, plan);
  plan->arena_bytes = fit_spans(program->graph->arena, plan->spans, plan->n_spans);
  plan->lower_bound = largest_live_set(program->graph->arena, plan->spans, plan->n_spans);
  for (int i = 0; i < plan->n_intervals; i++) {
    plan->intervals[i].value->offset = plan->spans[plan->intervals[i].span].offset;
    plan->intervals[i].value->storage = STORAGE_ARENA;
  }
}

/* ---- the pass ---- */

static int64_t padded_bytes(const Graph *graph, const Value *value) {
  int64_t bytes = value_max_bytes(value);
  if (bytes > MAX_ARENA)
    fatal_at(value->where.file ? value->where : LOCATION_FILE(graph->file), EXIT_LIMIT,
             "tensor `%s` may take more than 64 TiB; lower a dimension's max", value->name ? value->name : "?");
  return bytes ? (bytes + ALIGNMENT - 1) & ~(int64_t)(ALIGNMENT - 1) : ALIGNMENT;
}

MemoryPlan *plan_memory(Program *program) {
  Graph *graph = program->graph;
  MemoryPlan *plan = ARENA_NEW(graph->arena, MemoryPlan);
  Liveness live = find_liveness(program);
  place_inputs(graph);
  place_outputs(program, &live);
  plan->intervals = ARENA_ARRAY(graph->arena, Interval, program->n_values);
  for (int i = 0; i < program->n_values; i++) {
    Value *value = program->values[i];
    if (live.first[i] < 0 || value->storage != STORAGE_NONE || value->data) continue;
    plan->intervals[plan->n_intervals++] =
        (Interval){.value = value, .bytes = padded_bytes(graph, value), .first = live.first[i], .last = live.last[i]};
  }
  find_overwritten(program, &live, plan);
  assign_offsets(program, plan);
  if (plan->arena_bytes > MAX_ARENA)
    fatal_at(LOCATION_FILE(graph->file), EXIT_LIMIT, "one run needs more than 64 TiB; lower a dimension's max");
  graph->arena_bytes = plan->arena_bytes;
  return plan;
}
