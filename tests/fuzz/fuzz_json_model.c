/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a model and as a safetensors file: they are read or refused, without undefined behaviour, leak, or
 * internal error. For a safetensors file the input begins after the length: the header is its first line.
 */
#include <string.h>

#include "../support/read_or_refuse.h"
#include "load/model.h"
#include "load/safetensors.h"
#include "passes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_model_text(Arena *arena, FileBytes bytes) {
  Graph *graph = read_json_model(arena, "model.json", bytes, NULL);
  sort_nodes(graph);
  if (error_count()) infer_shapes(graph);
}

static void read_weights_text(Arena *arena, FileBytes bytes) {
  const uint8_t *line_end = memchr(bytes.data, '\n', bytes.size);
  uint64_t header = line_end ? (uint64_t)(line_end - bytes.data) : bytes.size;
  uint8_t *file = arena_alloc(arena, bytes.size + sizeof header);
  memcpy(file, &header, sizeof header);
  if (bytes.size > 0) memcpy(file + sizeof header, bytes.data, bytes.size);
  int count;
  safetensors_read(arena, "w.safetensors", (FileBytes){.data = file, .size = bytes.size + sizeof header}, &count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FileBytes bytes = {.data = data, .size = size};
  read_or_refuse(read_model_text, bytes);
  read_or_refuse(read_weights_text, bytes);
  return 0;
}
