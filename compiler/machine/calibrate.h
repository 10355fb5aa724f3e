/* SPDX-License-Identifier: MIT */
/* `rnncc targets --calibrate`: this machine's speeds, measured for each target that it runs. */
#ifndef RNNCC_CALIBRATE_H
#define RNNCC_CALIBRATE_H

#include "support/arena.h"

/* Measures for about `seconds`, prints what it found, and writes it to `output`, or if that is NULL to
 * machine_file_default(). fatal_at() if that cannot be written. */
void calibrate(Arena *arena, const char *output, double seconds);

/* A barrier of two threads, and what each of them multiplied just before. */
typedef struct Meeting {
  double ns, gflops; /* ns 0: they did not meet */
} Meeting;

/* The shorter one, of those whose threads had a core each. A virtual machine's CPUs may share one for a while: then
 * they meet in a fifth of the time, and multiply half as much. */
Meeting better_meeting(Meeting a, Meeting b);

#endif
