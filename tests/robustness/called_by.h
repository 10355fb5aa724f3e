/* SPDX-License-Identifier: MIT */
/* For what is preloaded into rnncc: calls of the program itself are told apart from those of libraries. */
#ifndef RNNCC_CALLED_BY_H
#define RNNCC_CALLED_BY_H

#include <dlfcn.h>
#include <string.h>

/* `caller`: __builtin_return_address(0) of the function in a libc function's place. */
static inline int called_by_program(const void *caller) {
  static const char *const program = "/rnncc";
  Dl_info info;
  if (!dladdr(caller, &info) || !info.dli_fname) return 0;
  size_t length = strlen(info.dli_fname);
  return length >= strlen(program) && strcmp(info.dli_fname + length - strlen(program), program) == 0;
}

#endif
