/* SPDX-License-Identifier: MIT */
/* To be preloaded: libclang finds the file whose name ends with $GROWING_FILE a byte longer when it looks the file up
 * than when it reads it, as one that another program writes. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/stat.h>

#include "called_by.h"

static const char *const libclang[] = {"libclang", "libLLVM", NULL};

static int grows(int file) {
  char link[64], path[4096] = "";
  const char *wanted = getenv("GROWING_FILE");
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  if (!wanted || readlink(link, path, sizeof path - 1) < 0) return 0;
  size_t length = strlen(path), own = strlen(wanted);
  return length >= own && !strcmp(path + length - own, wanted);
}

static int lookups; /* it looks the file up, and then asks for its length again */

int fstat64(int file, struct stat64 *status) {
  int (*next)(int, struct stat64 *) = (int (*)(int, struct stat64 *))dlsym(RTLD_NEXT, "fstat64");
  int result = next(file, status);
  if (called_by_library(__builtin_return_address(0), libclang) && grows(file)) status->st_size += lookups++ % 2 == 0;
  return result;
}

int fstat(int file, struct stat *status) { return fstat64(file, (struct stat64 *)status); }
