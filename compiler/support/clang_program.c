/* SPDX-License-Identifier: MIT */
#include "support/clang_program.h"

#include <stdlib.h>
#include <string.h>

#include "support/diagnostics.h"
#include "support/process.h"

const char clang_missing[] = "not found; install it (Debian: apt-get install " CLANG_PACKAGES ") or set RNNCC_CLANG";

static const char *given(void) {
  const char *name = getenv("RNNCC_CLANG");
  return name && *name ? name : NULL;
}

bool clang_given(void) { return given(); }

const char *clang_program(void) { return given() ? given() : RNNCC_CLANG_NAME; }

bool clang_confined(Sandbox sandbox) {
  if (sandbox != SANDBOX_AUTO) return sandbox == SANDBOX_ALWAYS;
  return !given() && sandbox_possible();
}

const char *clang_macros(Arena *arena, const char *target) {
  const double seconds = 60;
  const char *clang = clang_program();
  const char *argv[] = {clang, "-E", "-dM", "-x", "c", "/dev/null", NULL, NULL};
  if (target) argv[6] = arena_format(arena, "--target=%s", target);
  Process process = {.argv = argv, .folder = "."};
  if (process_run_all(arena, &process, 1, 1, seconds)) return process.output;
  if (process.outcome == PROCESS_NOT_FOUND) fatal_at(LOCATION_FILE(clang), EXIT_ENVIRONMENT, "%s", clang_missing);
  if (process.outcome == PROCESS_NOT_STARTED)
    fatal_at(LOCATION_FILE(clang), EXIT_ENVIRONMENT, "cannot be started: %s", process.output);
  return NULL;
}

void clang_check_version(Arena *arena, int oldest) {
  static const char major[] = "#define __clang_major__ ";
  if (oldest < RNNCC_OLDEST_LLVM) oldest = RNNCC_OLDEST_LLVM;
  const char *macros = clang_macros(arena, NULL), *line = macros ? strstr(macros, major) : NULL;
  long found = line ? strtol(line + strlen(major), NULL, 10) : 0;
  if (!macros || found >= oldest) return;
  const char *what = line ? arena_format(arena, "clang %ld", found) : "another compiler";
  fatal_at(LOCATION_FILE(clang_program()), EXIT_ENVIRONMENT,
           "expected clang %d or newer, found %s; install one (Debian: apt-get install clang-19 lld-19) or set "
           "RNNCC_CLANG",
           oldest, what);
}
