/* SPDX-License-Identifier: MIT */
#include "load/load.h"

#include "load/model.h"
#include "load/onnx/onnx.h"

static Graph *read_by_suffix(Arena *arena, const char *path, const ModelSettings *settings) {
  if (file_has_suffix(path, ".json")) return load_json_model(arena, path, settings);
  if (file_has_suffix(path, ".onnx")) return load_onnx_model(arena, path, settings);
  fatal_at(LOCATION_FILE(path), EXIT_UNSUPPORTED, "models are read from .onnx and .json files");
}

Graph *load_model(Arena *arena, const char *path, const ModelSettings *settings) {
  Graph *graph = read_by_suffix(arena, path, settings);
  settings_finish(settings, graph);
  sort_nodes(graph);
  stop_on_errors();
  graph_renumber(graph);
  return graph;
}
