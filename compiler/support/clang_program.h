/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_CLANG_PROGRAM_H
#define RNNCC_CLANG_PROGRAM_H

/* $RNNCC_CLANG, for machines that call it otherwise, or clang-19. */
const char *clang_program(void);

/* What to do if there is none. */
extern const char clang_missing[];

#endif
