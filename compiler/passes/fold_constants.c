/* SPDX-License-Identifier: MIT */
#include "passes.h"
#include "shapes/fold_node.h"

/* needs: infer_shapes. keeps: types and shapes. Ends the compilation where a kernel refuses its constants. */
void fold_constants(Graph *graph) {
  int kept = 0;
  for (int n = 0; n < graph->n_nodes; n++)
    if (!fold_node(graph, graph->nodes[n])) graph->nodes[kept++] = graph->nodes[n];
  graph->n_nodes = kept;
  stop_on_errors();
  graph_renumber(graph);
}
