/* SPDX-License-Identifier: MIT */
#include "fuzz_model.h"

#include <setjmp.h>
#include <stdlib.h>

#include "support/diagnostics.h"

_Noreturn void __wrap_bug_at(const char *file, int line, const char *format, ...);

static jmp_buf stopped;

/* The last clean-up of stop(). Returns to the fuzzer; else stop() would exit. */
static void return_to_fuzzer(void *unused) {
  (void)unused;
  longjmp(stopped, 1);
}

/* Replaces bug_at(): a bug is a finding of the fuzzer. */
_Noreturn void __wrap_bug_at(const char *file, int line, const char *format, ...) {
  (void)file, (void)line, (void)format;
  abort();
}

void read_or_refuse(void (*read)(Arena *, FileBytes), FileBytes bytes) {
  Arena *arena = arena_new();
  forget_errors();
  if (setjmp(stopped) == 0) {
    at_stop(return_to_fuzzer, NULL);
    read(arena, bytes);
    stop(EXIT_OK); /* removes the clean-up from the list */
  }
  arena_free(arena);
}
