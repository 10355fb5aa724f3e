/* SPDX-License-Identifier: MIT */
/* To be preloaded: allocation number $FAIL_CALL of the program, from 1 on, fails; those of the libraries below
 * count, too. Others do not: LLVM's end the process. $FAILED_CALL then says whose it was. */
#include <stdatomic.h>
#include <stdlib.h>

#include "called_by.h"

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);

static const char *const libraries[] = {"libc.so", "libcjson", "libprotobuf-c", NULL};
static atomic_int program_runs; /* libraries are initialised before */
static atomic_long asked;

static int fails(const void *caller) {
  const char *wanted = getenv("FAIL_CALL");
  if (!wanted) return 0;
  int by_program = called_by_program(caller);
  if (by_program) program_runs = 1;
  if (!by_program && (!program_runs || !called_by_library(caller, libraries))) return 0;
  if (atomic_fetch_add(&asked, 1) + 1 != strtol(wanted, NULL, 10)) return 0;
  tell_failed(by_program ? "allocation" : "allocation_of_a_library");
  errno = ENOMEM;
  return 1;
}

void *malloc(size_t bytes) { return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}
void *realloc(void *memory, size_t bytes) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, bytes);
}
