/* SPDX-License-Identifier: MIT */
#include "load/load.h"

#include "load/model.h"
#include "support/files.h"

Graph *load_model(Arena *arena, const char *path) {
  if (file_has_suffix(path, ".json")) return load_json_model(arena, path);
  fatal_at(LOCATION_FILE(path), EXIT_UNSUPPORTED, "models are read from .json files");
}
