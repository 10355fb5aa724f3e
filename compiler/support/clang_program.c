/* SPDX-License-Identifier: MIT */
#include "support/clang_program.h"

#include <stdlib.h>

const char clang_missing[] = "not found; install it (Debian: apt-get install clang-19 lld-19) or set RNNCC_CLANG";

const char *clang_program(void) {
  const char *given = getenv("RNNCC_CLANG");
  return given && *given ? given : "clang-19";
}
