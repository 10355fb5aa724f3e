/* SPDX-License-Identifier: MIT */
#include "read_or_refuse.h"

#include <setjmp.h>

#include "support/diagnostics.h"

static jmp_buf stopped;

/* The last clean-up of stop(). Returns to the caller; else stop() would exit. */
static void return_to_caller(void *unused) {
  (void)unused;
  longjmp(stopped, 1);
}

bool read_or_refuse(void (*read)(Arena *, FileBytes), FileBytes bytes) {
  static bool done;
  Arena *arena = arena_new();
  done = false;
  forget_errors();
  if (setjmp(stopped) == 0) {
    at_stop(return_to_caller, NULL);
    read(arena, bytes);
    done = true;
    stop(EXIT_OK); /* removes the clean-up from the list */
  }
  arena_free(arena);
  return done;
}
