/* SPDX-License-Identifier: MIT */
/* The clang to call. The build says which: that of the libclang that rnncc loads (compiler/meson.build). */
#ifndef RNNCC_CLANG_PROGRAM_H
#define RNNCC_CLANG_PROGRAM_H

#include "support/arena.h"
#include "support/sandbox.h"

#define CLANG_TEXT_OF(number) #number
#define CLANG_TEXT(number) CLANG_TEXT_OF(number)

/* Debian's packages of a clang that is known to do. */
#define CLANG_PACKAGES "clang-" CLANG_TEXT(RNNCC_LLVM) " lld-" CLANG_TEXT(RNNCC_LLVM)

/* $RNNCC_CLANG, for machines that call it otherwise, or RNNCC_CLANG_NAME. */
const char *clang_program(void);

/* Is it the one of $RNNCC_CLANG? */
bool clang_given(void);

/* Is it to be confined? */
bool clang_confined(Sandbox sandbox);

/* What to do if there is none. */
extern const char clang_missing[];

/* The macros that clang predefines, in lines of #define; `target`: a triple, or NULL. NULL if it fails; ends with
 * EXIT_ENVIRONMENT if there is none. */
const char *clang_macros(Arena *arena, const char *target);

/* Ends with EXIT_ENVIRONMENT if the program is no clang, or one before that version, 0 standing for the oldest that
 * serves any target. For where it has failed. */
void clang_check_version(Arena *arena, int oldest);

#endif
