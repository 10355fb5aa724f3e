/* SPDX-License-Identifier: MIT */
#include "fuzz_model.h"

#include <setjmp.h>
#include <stdlib.h>

#include "support/diagnostics.h"

_Noreturn void __wrap_bug_at(const char *file, int line, const char *format, ...);

static jmp_buf stopped;

/* The last clean-up of stop(), which would otherwise exit. */
static void return_to_fuzzer(void *unused) {
  (void)unused;
  longjmp(stopped, 1);
}

/* In place of bug_at(): the fuzzer's finding. */
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
    stop(EXIT_OK); /* takes the clean-up off the list again */
  }
  arena_free(arena);
}
