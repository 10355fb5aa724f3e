/* SPDX-License-Identifier: MIT */
/* From the generated unit to a module: the unit's folder, clang for each source, lld for the whole. */
#ifndef RNNCC_TOOLCHAIN_H
#define RNNCC_TOOLCHAIN_H

#include "emit/unit.h"
#include "link/source_folder.h"
#include "support/sandbox.h"

/* What is to be built. */
typedef struct Build {
  const Target *target; /* one of its targets, whose architecture all have */
  const char *name;     /* of a static library, with which its globals begin; NULL: a shared object */
  bool edge;            /* the runtime is that of devices: runtime/edge */
  double seconds;       /* that each program may take */
  Sandbox sandbox;      /* of these programs */
} Build;

/* Fills `folder` (made if need be) with the units, their weights, and the runtime as one source. They include files of
 * the data folder. */
void write_units(const Units *units, const char *folder);

/* The same with these files as well, a Makefile and a CMakeLists.txt: the folder builds without rnncc. `name`: of the
 * static library. Ends with EXIT_INVALID where one would replace another output, or a file that rnncc did not write. */
void write_sources(const Units *units, const char *folder, const char *name);
void add_build_files(SourceFolder *folder, const Units *units, const Build *build);

/* The arguments of a compiler, clang or gcc, and of its linking; NULL-terminated. Only a generated unit is built for
 * the vectors of a target: the runtime, where `vectors` is NULL, is what finds out whether the CPU has them. */
const char *const *source_args(Arena *arena, const Build *build, const Target *vectors);
const char *const *link_args(Arena *arena, const Build *build);

/* What clang needs besides, to compile and to link; NULL-terminated. Ends with EXIT_ENVIRONMENT where the target's libc
 * is missing. */
const char *const *clang_flags(Arena *arena, const Build *build);
const char *const *clang_link_flags(Arena *arena, const Build *build);

/* All that clang gets to compile a source. */
const char *const *clang_args(Arena *arena, const Build *build, const Target *vectors);

/* The runtime's sources as one: so they build in a third of the time. can_change: of a module whose weights can be set.
 * It chooses among the modules of the units; NULL: of one unit. */
const char *runtime_text(Arena *arena, bool edge, bool can_change, const Units *units);
/* The one that these units need. */
const char *units_runtime_text(const Units *units);

/* Compiles and links what write_units wrote; `output` is replaced by rename when all went well. `runtime`: from
 * build_runtime() for the same Build, NULL to compile it as well. Ends with EXIT_ENVIRONMENT where the toolchain is
 * missing, fails or hangs; where clang complains of the unit, check_unit() says of which nodes. */
void build_module(const Units *units, const char *folder, const Build *build, const char *runtime, const char *output);

/* The runtime of `text` in `folder`, which is the same for all shared objects of one target: the object's path.
 * compile_runtime() takes none that was built before (built_runtime.h). */
const char *build_runtime(Arena *arena, const Build *build, const char *text, const char *folder);
const char *compile_runtime(Arena *arena, const Build *build, const char *text, const char *folder);

#endif
