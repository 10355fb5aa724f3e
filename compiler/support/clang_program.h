/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_CLANG_PROGRAM_H
#define RNNCC_CLANG_PROGRAM_H

#include "support/sandbox.h"

/* $RNNCC_CLANG, for machines that call it otherwise, or clang-19. */
const char *clang_program(void);

/* Is it to be confined? */
bool clang_confined(Sandbox sandbox);

/* What to do if there is none. */
extern const char clang_missing[];

#endif
