/* SPDX-License-Identifier: MIT */
/*
 * The runtime of shared objects for the machine that rnncc was built on, compiled then: of a small network's module it
 * is most of what there is to compile. It lies in lib/rnncc, or in the build, as one file: the digest of what it was
 * made from (command, sources), that of the object, the object. So an object that other sources would make, or that is
 * damaged, is left where it is. Of clang the command has the number in its name alone. There are two: modules that
 * train, or have several networks, have others, compiled for them.
 */
#ifndef RNNCC_BUILT_RUNTIME_H
#define RNNCC_BUILT_RUNTIME_H

#include "link/toolchain.h"
#include "support/files.h"

/* The object of the runtime whose one source is `text`; size 0: there is none, or $RNNCC_CLANG is to compile all. */
FileBytes built_runtime(Arena *arena, const Build *build, const char *text);

/* Compiles those that modules need most, and writes them into `folder`. */
void make_built_runtimes(Arena *arena, const char *folder);

#endif
