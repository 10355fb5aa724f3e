/* SPDX-License-Identifier: MIT */
#include "load/load.h"

#include "passes.h"

Graph *model_complete(Graph *graph, const ModelSettings *settings) {
  sort_nodes(graph);
  if (error_count()) infer_shapes(graph); /* what is wrong with the other nodes is told, too; it does not return */
  settings_finish(settings, graph);
  stop_on_errors();
  graph_renumber(graph);
  return graph;
}
