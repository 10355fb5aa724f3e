/* SPDX-License-Identifier: MIT */
/* From the generated unit to a shared object: the unit's folder, clang for each source, lld for the whole. */
#ifndef RNNCC_TOOLCHAIN_H
#define RNNCC_TOOLCHAIN_H

#include "emit/unit.h"

/* Fills `folder` (made if need be) with the unit, its weights, and the runtime as one source. They include files of the
 * data folder. */
void write_unit(const Program *program, const Unit *unit, const char *folder);

/* Copies these files as well, and writes a Makefile: the folder builds without rnncc. */
void write_sources(Graph *graph, const char *folder);

/* Only the generated unit is built for the target's vectors: the runtime is what finds out whether the CPU has them. */
typedef enum SourceKind { SOURCE_KERNELS, SOURCE_RUNTIME } SourceKind;

/* The arguments that clang gets; NULL-terminated. */
const char *const *clang_args(Arena *arena, const Target *target, SourceKind kind);

const char *const *link_args(Arena *arena, const Target *target);

/* The runtime's sources as one, in a folder that is there: so they build in a third of the time. */
void write_runtime(Arena *arena, const char *folder);

/* Compiles and links what write_unit wrote; `output` is replaced by rename when all went well. `runtime`: from
 * build_runtime() for the same target, NULL to compile it as well. Each program may take `seconds`. Ends with
 * EXIT_ENVIRONMENT where the toolchain is missing, fails or hangs; where clang complains of the unit, check_unit() says
 * of which nodes. */
void build_module(const Program *program, const Unit *unit, const char *folder, const char *runtime, const char *output,
                  double seconds);

/* Compiles the runtime, which is the same for all modules of a target, in `folder`: the object's path. */
const char *build_runtime(Arena *arena, const Target *target, const char *folder, double seconds);

#endif
