/* SPDX-License-Identifier: MIT */
#include "passes.h"

#include "kernels/recurrent/choose.h"
#include "kernels/recurrent/recorded.h"
#include "kernels/recurrent/wavefront.h"

static Schedule *plan_of(Arena *arena, const RecurrentVariant *variant) {
  Schedule *schedule = ARENA_NEW(arena, Schedule);
  *schedule = (Schedule){.kind = &recurrent_kind, .knobs = variant->knobs};
  return schedule;
}

static Schedule *planned(Graph *graph, const MmDag *dag, const MmLayer *layer) {
  RecurrentVariant recorded;
  if (recorded_variant(graph, layer, &recorded)) return plan_of(graph->arena, &recorded);
  Candidates candidates = layer_candidates(graph, dag, layer);
  return plan_of(graph->arena, &candidates.list[candidates.chosen].variant);
}

static int planned_chunk(Graph *graph, const MmDag *dag, const Stack *stack) {
  RecurrentVariant recorded;
  if (recorded_stack(graph, dag, stack, &recorded)) return recorded.chunk;
  double layer_by_layer;
  const LayerCase *cases = stack_cases(graph, dag, stack, &layer_by_layer);
  StackCandidates all = stack_candidates(graph->config->machine, cases, stack->n_layers, layer_by_layer);
  return all.list[all.chosen].chunk;
}

/* Sets the chunk of all layers of a stack; a layer's own chunk would mean a wavefront. */
static void set_chunk(Graph *graph, const Stack *stack, int chunk) {
  for (int i = 0; i < stack->n_layers; i++) {
    RecurrentVariant variant = {.knobs = stack->layers[i]->schedule->knobs};
    if (chunk) variant = (RecurrentVariant){.input = INPUT_AHEAD, .workers = 1, .batch_parts = 1};
    variant.chunk = chunk;
    stack->layers[i]->schedule = plan_of(graph->arena, &variant);
  }
}

/* needs: infer_shapes, find_stacks; graph->config->target, graph->config->machine and graph->config->records. keeps:
 * everything. Plans the schedule of each recurrent node: the one of a record, else the one of the least predicted
 * time. */
void plan_recurrent(Graph *graph) {
  const MmDag *dag = mm_dag(graph);
  for (int i = 0; i < dag->n_layers; i++) dag->layers[i].node->schedule = planned(graph, dag, &dag->layers[i]);
  for (int i = 0; i < graph->n_stacks; i++)
    set_chunk(graph, &graph->stacks[i], planned_chunk(graph, dag, &graph->stacks[i]));
}
