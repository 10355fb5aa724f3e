/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_DATA_DIRECTORY_H
#define RNNCC_DATA_DIRECTORY_H

#include "support/arena.h"

/* The folder that holds templates/ and runtime/: $RNNCC_DATA; else ../share/rnncc from the program, where it is
 * installed; else the source folder it was built from. */
const char *data_directory(Arena *arena);

/* The path of a file in it, such as "templates/gemm_packed.c". Ends with EXIT_ENVIRONMENT if there is none. */
const char *data_file(Arena *arena, const char *name);

/* A folder, from that of the program; NULL if the program's own path is not to be had. */
const char *beside_program(Arena *arena, const char *folder);

#endif
