/* SPDX-License-Identifier: MIT */
#include "passes.h"
#include "recurrent/choose.h"

/* needs: infer_shapes; graph->target and graph->machine. keeps: everything. Sets the variant of each recurrent node:
 * the one whose predicted time is least. */
void plan_recurrent(Graph *graph) {
  const MmDag *dag = mm_dag(graph);
  for (int i = 0; i < dag->n_layers; i++) {
    LayerCase layer = layer_case(&dag->layers[i], graph->target);
    Candidates candidates = recurrent_candidates(graph->arena, graph->machine, &layer);
    dag->layers[i].node->variant = &candidates.list[candidates.chosen].variant;
  }
}
