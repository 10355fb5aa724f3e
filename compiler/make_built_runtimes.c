/* SPDX-License-Identifier: MIT */
/* make_built_runtimes FOLDER: part of the build. */
#include "link/built_runtime.h"

int main(int argc, char **argv) {
  Arena *arena = arena_new();
  if (argc != 2) fatal_at(LOCATION_FILE(argv[0]), EXIT_INVALID, "expected a folder");
  make_built_runtimes(arena, argv[1]);
  arena_free(arena);
  stop(EXIT_OK);
}
