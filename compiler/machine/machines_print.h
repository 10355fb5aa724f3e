/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_MACHINES_PRINT_H
#define RNNCC_MACHINES_PRINT_H

#include "machine/machine_file.h"

/* One machine with the speeds of each target, to stdout. */
void machines_print(const MachineFile *file);
/* This machine, as --target=native takes it, and where each number comes from. */
void machine_here_print(Arena *arena);

#endif
