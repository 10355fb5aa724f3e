/* SPDX-License-Identifier: MIT */
/* Which CPUs the calling thread may use, and how near they are to each other: by its affinity mask and by sysfs. What
 * sysfs does not tell is taken as if all CPUs were alike. */
#ifndef RNNCC_TOPOLOGY_H
#define RNNCC_TOPOLOGY_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#include "names.h"

enum { MAX_CPUS = 8192 }; /* the maximum that Linux can be built for today */

typedef union CpuMask {
  cpu_set_t set;
  unsigned char bytes[MAX_CPUS / 8];
} CpuMask;

/* The calling thread's mask; returns how many CPUs it has, 0 if that cannot be read. */
RUNTIME_LOCAL int cpu_mask_read(CpuMask *mask);

typedef struct CpuPlace {
  int cpu;
  int sibling; /* CPUs of the mask on the same core that come before this one */
  int node;    /* of NUMA */
  int cache;   /* the first CPU that shares the L3 */
} CpuPlace;

/* `root` is prefixed to /sys: "" except in tests. */

/* How many cores the mask has CPUs of. */
RUNTIME_LOCAL int topology_cores(const char *root, const CpuMask *mask);

/* The CPUs of the mask, in the order in which workers should be on them: one of each core before the second of any, and
 * then those that share a node or a cache together. places: of the mask's size. Returns how many they are. */
RUNTIME_LOCAL int topology_order(const char *root, const CpuMask *mask, CpuPlace *places);

/* The start of a file of /proc or /sys, as a string; false if there is none. */
RUNTIME_LOCAL bool system_file_read(const char *path, char *text, size_t size);

/* The decimal number that *at begins with, after spaces, and *at moved behind it; 0, and *at as it is, if there is
 * none. Too many digits are read as some large number. */
RUNTIME_LOCAL long long system_number_at(const char **at);

#endif
