/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as an ONNX file: it is read or refused, then with all that shape inference refuses. A graph that was read
 * goes through the passes that depend on its contents: shapes are inferred, constants folded.
 */
#include "../support/read_or_refuse.h"
#include "../support/simplify.h"
#include "load/onnx/onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Dims that the corpus names. */
static ModelSettings bounds(Arena *arena) {
  ModelSettings settings = settings_new(arena, 4);
  settings_add_dim(&settings, arena, "T=1..5..9");
  settings_add_dim(&settings, arena, "B=1..3");
  return settings;
}

static void read_model(Arena *arena, FileBytes bytes) {
  ModelSettings settings = bounds(arena);
  Graph *graph = read_onnx_model(arena, "model.onnx", bytes, &settings);
  sort_nodes(graph);
  if (error_count()) infer_shapes(graph);
  graph_renumber(graph);
  verify(graph);
  infer_shapes(graph);
  decompose(graph);
  simplify(graph);
  verify(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  read_or_refuse(read_model, (FileBytes){.data = data, .size = size});
  return 0;
}
