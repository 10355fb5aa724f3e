/* SPDX-License-Identifier: MIT */
/* To be preloaded: allocation number $FAIL_ALLOCATION of the program itself, from 1 on, fails. Allocations of libraries
 * are not counted, because some libraries end the process. */
#include <stdatomic.h>
#include <stdlib.h>

#include "called_by.h"

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);

static atomic_long asked;

static int fails(const void *caller) {
  const char *wanted = getenv("FAIL_ALLOCATION");
  if (!wanted || !called_by_program(caller)) return 0;
  return atomic_fetch_add(&asked, 1) + 1 == strtol(wanted, NULL, 10);
}

void *malloc(size_t bytes) { return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}
void *realloc(void *memory, size_t bytes) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, bytes);
}
