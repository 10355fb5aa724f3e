/* SPDX-License-Identifier: MIT */
/* How many threads this process may keep busy, and on which CPUs. */
#ifndef RNNCC_CPU_LIMIT_H
#define RNNCC_CPU_LIMIT_H

#include <sched.h>
#include <stdbool.h>

#include "names.h"

/* The smaller of the CPUs in the calling thread's affinity mask and the cgroup's CPU quota, at least 1. */
RUNTIME_LOCAL int cpu_limit_threads(void);

/* The CPUs' worth of time that the process's cgroups allow, or 0 if they set no limit. `root` is prefixed to /proc and
 * /sys: "" except in tests. */
RUNTIME_LOCAL int cpu_limit_cgroup(const char *root);

/* *one := the n-th CPU (from 0, modulo their number) of the calling thread's mask; false if it is not known. */
RUNTIME_LOCAL bool cpu_limit_nth(int n, cpu_set_t *one);

#endif
