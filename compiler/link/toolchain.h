/* SPDX-License-Identifier: MIT */
/* From the generated unit to a shared object: the unit's folder, clang for each source, lld for the whole. */
#ifndef RNNCC_TOOLCHAIN_H
#define RNNCC_TOOLCHAIN_H

#include "emit/unit.h"

/* Fills `folder` (made if need be) with the unit, weights, the runtime's sources, the headers of the templates and a
 * Makefile: it builds without rnncc. */
void write_unit(Graph *graph, const Unit *unit, const char *folder);

/* Only the generated unit is built for the target's vectors: the runtime is what finds out whether the CPU has them. */
typedef enum SourceKind { SOURCE_KERNELS, SOURCE_RUNTIME } SourceKind;

/* The arguments that clang gets; NULL-terminated. */
const char *const *clang_args(Arena *arena, const Target *target, SourceKind kind);

const char *const *link_args(Arena *arena, const Target *target);

/* Compiles and links what write_unit wrote; `output` is replaced by rename when all went well. Each program may take
 * `seconds`. Ends with EXIT_ENVIRONMENT where the toolchain is missing, fails or hangs. */
void build_module(Graph *graph, const char *folder, const char *output, double seconds);

#endif
