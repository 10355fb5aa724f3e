/* SPDX-License-Identifier: MIT */
#include "support/clang_program.h"

#include <stdlib.h>

const char clang_missing[] = "not found; install it (Debian: apt-get install clang-19 lld-19) or set RNNCC_CLANG";

static const char *given(void) {
  const char *name = getenv("RNNCC_CLANG");
  return name && *name ? name : NULL;
}

const char *clang_program(void) { return given() ? given() : "clang-19"; }

bool clang_confined(Sandbox sandbox) {
  if (sandbox != SANDBOX_AUTO) return sandbox == SANDBOX_ALWAYS;
  return !given() && sandbox_possible();
}
