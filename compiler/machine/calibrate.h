/* SPDX-License-Identifier: MIT */
/* `rnncc targets --calibrate`: this machine's speeds, measured for each target that it runs. */
#ifndef RNNCC_CALIBRATE_H
#define RNNCC_CALIBRATE_H

#include "support/arena.h"

/* Measures for about `seconds`, prints what it found, and writes it to `output`, or if that is NULL to
 * machine_file_default(). fatal_at() if that cannot be written. */
void calibrate(Arena *arena, const char *output, double seconds);

#endif
