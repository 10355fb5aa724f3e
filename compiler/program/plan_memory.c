/* SPDX-License-Identifier: MIT */
/*
 * Offsets by liveness. Values that are live together share no byte, except where a kernel writes its result over an
 * input that is not read any more: then both are one span, live from the first step to the last. Some spans are where
 * gradients will be.
 */
#include "program/plan_memory.h"

#include "passes.h"
#include "program/gradient_room.h"
#include "program/liveness.h"
#include "program/overlap.h"
#include "support/diagnostics.h"

enum { ALIGNMENT = 64 };

static const int64_t MAX_ARENA = INT64_C(1) << 46;

static int64_t padded_bytes(const Graph *graph, const Value *value) {
  int64_t bytes = value_max_bytes(value);
  if (bytes > MAX_ARENA)
    fatal_at(value->where.file ? value->where : LOCATION_FILE(graph->file), EXIT_LIMIT,
             "tensor `%s` may take more than 64 TiB; lower a dimension's max", value->name ? value->name : "?");
  return bytes ? (bytes + ALIGNMENT - 1) & ~(int64_t)(ALIGNMENT - 1) : ALIGNMENT;
}

/* ---- the caller's buffers ---- */

static void place_inputs(Graph *graph) {
  for (int i = 0; i < graph_first_parameter(graph); i++) {
    graph->inputs[i]->storage = STORAGE_INPUT;
    graph->inputs[i]->slot = i;
  }
}

/* One block of parameters, statistics last, and one of their gradients and next values with the same places. */
static void place_parameters(Program *program) {
  Graph *graph = program->graph;
  for (int i = 0; i < graph->n_parameters; i++) {
    Value *parameter = graph->inputs[graph_first_parameter(graph) + i];
    Value *gradient = value_root(graph->outputs[graph_first_gradient(graph) + i]);
    if (value_max_bytes(gradient) != value_max_bytes(parameter)) bug("a gradient of another size than its weight");
    parameter->storage = STORAGE_PARAMETER;
    gradient->storage = STORAGE_GRADIENT;
    parameter->offset = gradient->offset = program->parameter_bytes;
    program->parameter_bytes += padded_bytes(graph, parameter);
    if (i < graph->n_parameters - graph->n_statistics) program->trained_bytes = program->parameter_bytes;
  }
}

/* An output, or an input's gradient, is written to the caller's buffer if it shares no bytes and no kernel can fault;
 * else it stays in the arena, and the runtime copies it. So does an output if gradients may need it, when the caller
 * has its buffer again. */
static void place_outputs(Program *program, Liveness *live) {
  Graph *graph = program->graph;
  for (int i = 0; i < graph_first_gradient(graph); i++) {
    bool own = i < graph_own_outputs(graph);
    Value *root = value_root(graph->outputs[i]);
    if ((root->is_input && !is_state_value(graph, root)) || root->data) bug("output %d is an input or a constant", i);
    bool shared = root->storage != STORAGE_NONE || is_state_value(graph, root);
    if (shared || program->may_fault || (own && graph->n_parameters)) {
      live_at(live, root, own ? live->results : live->end);
      continue;
    }
    root->storage = STORAGE_OUTPUT;
    root->slot = i;
  }
}

/* ---- values written over others ---- */

/* Does the value fill its root, in the arena? */
static bool is_whole(Value *value) {
  const Value *root = value_root(value);
  return !value->data && !root->is_input && root->storage == STORAGE_NONE &&
         value_max_bytes(value) == value_max_bytes(root);
}

/* What the node's calls may write over an input; NULL: nothing. */
static Value *placed_over(const Node *node) {
  if (node->in_place) return node->in_place;
  return node->n_outputs == 1 && is_whole(node->outputs[0]) ? value_root(node->outputs[0]) : NULL;
}

/* An input that is read here for the last time and that `output` can be written over, which this call writes first;
 * NULL: none. */
static Value *overwritten(const Program *program, const Liveness *live, const Item *item, const Block *block,
                          const Value *output) {
  const Node *node = item->node;
  if (live->first[output->id] != item->step || is_state_value(program->graph, output)) return NULL;
  if (home_of(program, output) != block) return NULL;
  for (int i = 0; i < node->n_inputs; i++) {
    if (!node->inputs[i] || !is_whole(node->inputs[i])) continue;
    Value *input = value_root(node->inputs[i]);
    if (home_of(program, input) != block) continue;
    bool ends = live->last[input->id] == item->step && live->first[input->id] < item->step;
    if (ends && value_max_bytes(input) == value_max_bytes(output) && !is_state_value(program->graph, input) &&
        may_overwrite(node, output, input))
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

typedef struct Search {
  const Program *program;
  const Liveness *live;
  MemoryPlan *plan;
} Search;

static void find_overwritten(Item *item, Block *block, void *context) {
  Search *search = context;
  const Value *output = item->call && item->node ? placed_over(item->node) : NULL;
  const Value *input = output ? overwritten(search->program, search->live, item, block, output) : NULL;
  if (input) interval_of(search->plan, output)->over = input;
}

/* ---- offsets ---- */

/* One span for each interval that is not written over another; in the order of steps, so that an interval comes after
 * the one it is written over. */
static void make_spans(Arena *arena, MemoryPlan *plan, int end) {
  int *next = ARENA_ARRAY(arena, int, plan->n_intervals), *heads = ARENA_ARRAY(arena, int, end + 1);
  for (int i = 0; i <= end; i++) heads[i] = -1;
  for (int i = plan->n_intervals - 1; i >= 0; i--) {
    next[i] = heads[plan->intervals[i].first];
    heads[plan->intervals[i].first] = i;
  }
  plan->spans = ARENA_ARRAY(arena, Span, plan->n_intervals);
  for (int step = 0; step <= end; step++)
    for (int i = heads[step]; i >= 0; i = next[i]) {
      Interval *interval = &plan->intervals[i];
      interval->span = interval->over ? interval_of(plan, interval->over)->span : plan->n_spans++;
      Span *span = &plan->spans[interval->span];
      if (!interval->over) *span = (Span){.bytes = interval->bytes, .first = interval->first};
      span->last = interval->last;
    }
}

static void assign_offsets(Program *program, const Liveness *live, MemoryPlan *plan) {
  Arena *arena = program->graph->arena;
  make_spans(arena, plan, live->end);
  use_gradient_room(program, live, plan);
  plan->arena_bytes = fit_spans(arena, plan->spans, plan->n_spans);
  plan->lower_bound = largest_live_set(arena, plan->spans, plan->n_spans);
  for (int i = 0; i < plan->n_intervals; i++) {
    plan->intervals[i].value->offset = plan->spans[plan->intervals[i].span].offset;
    plan->intervals[i].value->storage = STORAGE_ARENA;
  }
}

/* ---- the pass ---- */

/* needs: lower. keeps: the items. Sets storage, slot and offset of every value that an item touches, the arena's bytes,
 * and the plan. */
void plan_memory(Program *program) {
  Graph *graph = program->graph;
  MemoryPlan *plan = ARENA_NEW(graph->arena, MemoryPlan);
  Liveness live = find_liveness(program);
  plan->end = live.end;
  place_inputs(graph);
  place_parameters(program);
  place_outputs(program, &live);
  plan->intervals = ARENA_ARRAY(graph->arena, Interval, program->n_values);
  for (int i = 0; i < program->n_values; i++) {
    Value *value = program->values[i];
    if (live.first[i] < 0 || value->storage != STORAGE_NONE || value->data) continue;
    plan->intervals[plan->n_intervals++] =
        (Interval){.value = value, .bytes = padded_bytes(graph, value), .first = live.first[i], .last = live.last[i]};
  }
  each_item(program, find_overwritten, &(Search){program, &live, plan});
  assign_offsets(program, &live, plan);
  if (plan->arena_bytes > MAX_ARENA)
    fatal_at(LOCATION_FILE(graph->file), EXIT_LIMIT, "one run needs more than 64 TiB; lower a dimension's max");
  program->arena_bytes = plan->arena_bytes;
  program->plan = plan;
}
