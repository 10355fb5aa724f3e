/* SPDX-License-Identifier: MIT */
#include "support/data_directory.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/diagnostics.h"

const char *beside_program(Arena *arena, const char *folder) {
  char program[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length <= 0) return NULL;
  program[length] = 0;
  char *slash = strrchr(program, '/');
  return slash ? arena_format(arena, "%.*s/%s", (int)(slash - program), program, folder) : NULL;
}

const char *data_directory(Arena *arena) {
  const char *given = getenv("RNNCC_DATA");
  if (given && *given) return given;
  const char *installed = beside_program(arena, "../share/rnncc");
  bool is_build = access(RNNCC_SOURCE_DATA, R_OK) == 0; /* else an install, perhaps a broken one */
  return installed && (access(installed, R_OK) == 0 || !is_build) ? installed : RNNCC_SOURCE_DATA;
}

const char *data_file(Arena *arena, const char *name) {
  const char *path = arena_format(arena, "%s/%s", data_directory(arena), name);
  if (access(path, R_OK) != 0)
    fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT,
             "cannot read this file of rnncc's own: %s; install rnncc again, whole, or set RNNCC_DATA to the folder "
             "that has %s",
             strerror(errno), name);
  return path;
}
