/* SPDX-License-Identifier: MIT */
/* libclang's index, for all who parse C. */
#ifndef RNNCC_TEMPLATE_LIBCLANG_H
#define RNNCC_TEMPLATE_LIBCLANG_H

#include <clang-c/Index.h>

#include "support/arena.h"

/* New; the caller disposes of it. What units of it share, they keep in memory. */
CXIndex libclang_index(void);

/* Such as "Debian clang version 19.1.7 (3)". */
const char *libclang_version(Arena *arena);

/* Ends with EXIT_ENVIRONMENT if the diagnostic is that a file changed while it was read: someone installs another
 * rnncc, perhaps. Any other is ours. */
void libclang_check_files(Arena *arena, CXDiagnostic diagnostic);

#endif
