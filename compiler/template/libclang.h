/* SPDX-License-Identifier: MIT */
/*
 * libclang, for all who parse C. It is loaded by the first who asks for an index or a version: it and LLVM would be
 * most of the time of each start, and much of what rnncc does parses nothing.
 */
#ifndef RNNCC_TEMPLATE_LIBCLANG_H
#define RNNCC_TEMPLATE_LIBCLANG_H

#include <clang-c/Index.h>

#include "support/arena.h"

/* clang.visitChildren() is clang_visitChildren(). */
typedef struct Libclang {
#define FUNCTION(name) __typeof__(clang_##name) *name;
#include "template/libclang.def"
} Libclang;
extern Libclang clang; /* NULLs until it is loaded */

/* New; the caller disposes of it. What units of it share, they keep in memory. Ends with EXIT_ENVIRONMENT where
 * libclang cannot be loaded. */
CXIndex libclang_index(void);

/* Such as "Debian clang version 19.1.7 (3)". Ends as libclang_index() does. */
const char *libclang_version(Arena *arena);

const char *copy_cx_string(Arena *arena, CXString string); /* disposes of `string` */

/* Ends with EXIT_ENVIRONMENT if the diagnostic is that a file changed while it was read: someone installs another
 * rnncc, perhaps. Any other is ours. */
void libclang_check_files(Arena *arena, CXDiagnostic diagnostic);

#endif
