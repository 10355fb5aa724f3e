/* SPDX-License-Identifier: MIT */
#include "passes.h"
#include "recurrent/choose.h"
#include "recurrent/recorded.h"

static const RecurrentVariant *planned_variant(Graph *graph, const MmLayer *layer) {
  RecurrentVariant *recorded = ARENA_NEW(graph->arena, RecurrentVariant);
  if (recorded_variant(graph, layer, recorded)) return recorded;
  LayerCase numbers = layer_case(layer, graph->target);
  Candidates candidates = recurrent_candidates(graph->arena, graph->machine, &numbers);
  return &candidates.list[candidates.chosen].variant;
}

/* needs: infer_shapes; graph->target, graph->machine and graph->records. keeps: everything. Sets the variant of each
 * recurrent node: the one that was measured to be best, else the one whose predicted time is least. */
void plan_recurrent(Graph *graph) {
  const MmDag *dag = mm_dag(graph);
  for (int i = 0; i < dag->n_layers; i++) dag->layers[i].node->variant = planned_variant(graph, &dag->layers[i]);
}
