/* SPDX-License-Identifier: MIT */
/*
 * The machine that a module is planned for, in the numbers that schedules are chosen by. Caches and cores are this
 * machine's for --target=native, and speeds those of its kind of CPU where a table has it; the rest is what the target
 * is typically like. Nothing is measured here, so that a plan does not depend on what else runs while it is made; what
 * was measured once, `rnncc targets --calibrate` leaves in a file (machine_file.h).
 */
#ifndef RNNCC_MACHINE_H
#define RNNCC_MACHINE_H

#include "machine/targets.h"
#include "support/arena.h"

typedef struct Machine {
  int cores;                                   /* most threads that the module is planned for */
  int64_t l1_bytes, l2_bytes, l3_bytes;        /* of a core, of a core, of all cores */
  double gflops;                               /* f32 of one core, a fused multiply-add being two */
  double l1_gbps, l2_gbps, l3_gbps, dram_gbps; /* read by one core while all read */
  double ghz;
  double barrier_ns; /* two cores meet, and the first line of what the other wrote arrives */
} Machine;

/* native: caches and cores are to be those found here. threads: 0, or how many to plan for. */
Machine machine_of(const Target *target, bool native, int threads);

/* Identifies the CPU model: name, vendor, family, model and stepping. Printable, without quotes and backslashes. */
const char *machine_cpu_name(Arena *arena);

#endif
