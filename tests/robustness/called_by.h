/* SPDX-License-Identifier: MIT */
/* For libraries that are preloaded into rnncc: distinguishes calls of the program itself from those of libraries. */
#ifndef RNNCC_CALLED_BY_H
#define RNNCC_CALLED_BY_H

#include <dlfcn.h>
#include <string.h>

/* `caller`: __builtin_return_address(0) of the function that replaces a libc function. */
static inline int called_by_program(const void *caller) {
  static const char *const program = "/rnncc";
  Dl_info info;
  if (!dladdr(caller, &info) || !info.dli_fname) return 0;
  size_t length = strlen(info.dli_fname);
  return length >= strlen(program) && strcmp(info.dli_fname + length - strlen(program), program) == 0;
}

#endif
