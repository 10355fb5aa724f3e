/* SPDX-License-Identifier: MIT */
/* To be preloaded into `rnncc quantize`, which runs modules: call number $FAIL_CALL fails, from 1 on, of those by which
 * the program loads a module, and a module takes memory. Its name is added to the file $FAILED_CALL. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "called_by.h"

extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

static const char *const modules[] = {"/switched.so", "/final.so", NULL};
static atomic_int calls;

static int fails(const char *name) {
  const char *wanted = getenv("FAIL_CALL");
  if (!wanted || atomic_fetch_add(&calls, 1) + 1 != atoi(wanted)) return 0;
  tell_failed(name);
  errno = ENOMEM;
  return 1;
}

/* The program loads libclang, too, which has two names to try. */
static int loads_module(const char *path, const void *caller) {
  return called_by_program(caller) && path && !strstr(path, "libclang") && fails("dlopen");
}

void *dlopen(const char *path, int mode) {
  void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
  return loads_module(path, __builtin_return_address(0)) ? NULL : next(path, mode);
}

void *calloc(size_t count, size_t bytes) {
  return called_by_library(__builtin_return_address(0), modules) && fails("calloc") ? NULL
                                                                                    : __libc_calloc(count, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  return called_by_library(__builtin_return_address(0), modules) && fails("aligned_alloc")
             ? NULL
             : __libc_memalign(alignment, bytes);
}
