/* SPDX-License-Identifier: MIT */
/*
 * The measurements of `rnncc targets --calibrate`, as a JSON file: the CPU, its caches, and the speeds of struct
 * Machine for each target that runs there.
 *
 * The file in the user's cache folder is used for --target=native if its CPU, caches and number of cores are this
 * machine's; else it is ignored with a warning, because home folders are shared. A file of --machine=FILE is used on
 * any machine.
 */
#ifndef RNNCC_MACHINE_FILE_H
#define RNNCC_MACHINE_FILE_H

#include "machine/machine.h"
#include "support/arena.h"

typedef struct MachineFile {
  const char *cpu; /* machine_cpu_name() */
  int count;
  const Target *const *targets;
  const Machine *machines; /* one for each; cores and caches are the same in all */
} MachineFile;

/* --machine: "native", "typical" or a file; NULL: native for --target=native. */
Machine machine_choose(Arena *arena, const char *given, const Target *target, bool native, int threads);

/* Sets the machine that this is, and returns the path of the user's file if its speeds are from there; NULL if not. */
const char *machine_here(Arena *arena, const Target *target, Machine *machine);

/* Does some machine have that? Else a file with it is refused. speed: a key of the file, such as "ghz". */
bool machine_may_have(const char *speed, double value);

void machine_file_write(Arena *arena, const char *path, const MachineFile *file);

/* $XDG_CACHE_HOME/rnncc/machine.json, in ~/.cache if that is not set; NULL if there is no home either. */
const char *machine_file_default(Arena *arena);

#endif
