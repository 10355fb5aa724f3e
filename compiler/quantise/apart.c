/* SPDX-License-Identifier: MIT */
#include "quantise/apart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "support/diagnostics.h"
#include "support/interrupt.h"
#include "support/process.h"

/* A network that hangs is to end some day. */
static const double MOST_SECONDS = 24 * 3600;

void *shared_memory(size_t bytes) {
  void *memory = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) out_of_memory();
  return memory;
}

typedef struct Body {
  void (*run)(void *);
  void *argument;
  const char *folder;
} Body;

/* Its temporary files are in the folder, and removed with it. */
static void run_body(void *argument) {
  const Body *body = argument;
  setenv("TMPDIR", body->folder, 1);
  body->run(body->argument);
}

void run_apart(Arena *arena, const char *model, const char *folder, void (*run)(void *), void *argument) {
  Body body = {run, argument, folder};
  Process process = {.body = run_body, .argument = &body, .folder = "."};
  bool good = process_run_all(arena, &process, 1, 1, MOST_SECONDS);
  interrupt_check();
  fputs(process.output ? process.output : "", stderr); /* its messages have their places */
  if (good) return;
  if (process.outcome == PROCESS_TIMEOUT)
    fatal_at(LOCATION_FILE(model), EXIT_LIMIT, "the network does not end on the samples");
  if (process.status > EXIT_ENVIRONMENT)
    fatal_at(LOCATION_FILE(model), EXIT_ENVIRONMENT, "the network crashed on the samples (exit status %d)",
             process.status);
  stop(process.status > 0 ? (ExitCode)process.status : EXIT_ENVIRONMENT);
}
