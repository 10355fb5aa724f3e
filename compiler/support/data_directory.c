/* SPDX-License-Identifier: MIT */
#include "support/data_directory.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* NULL if the program's own path is not to be had. */
static const char *beside_program(Arena *arena) {
  char program[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length <= 0) return NULL;
  program[length] = 0;
  char *slash = strrchr(program, '/');
  return slash ? arena_format(arena, "%.*s/../share/rnncc", (int)(slash - program), program) : NULL;
}

const char *data_directory(Arena *arena) {
  const char *given = getenv("RNNCC_DATA");
  if (given && *given) return given;
  const char *installed = beside_program(arena);
  return installed && access(installed, R_OK) == 0 ? installed : RNNCC_SOURCE_DATA;
}
