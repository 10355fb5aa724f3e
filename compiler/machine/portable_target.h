/* SPDX-License-Identifier: MIT */
/* Targets that are no row of targets.def: plain C, by clang, for any Linux whose numbers are little-endian. */
#ifndef RNNCC_PORTABLE_TARGET_H
#define RNNCC_PORTABLE_TARGET_H

#include <stdbool.h>

#include "machine/targets.h"

/* Reads like a triple of Linux: "powerpc64le-linux-gnu". */
bool is_linux_triple(const char *name);

/* needs: is_linux_triple(). Asks clang what it knows of the triple. NULL, and what was expected, if it is none that
 * modules can be built for. Ends with EXIT_ENVIRONMENT if there is no clang. */
const Target *portable_target(Arena *arena, const char *triple, const char **expected);

#endif
