/* SPDX-License-Identifier: MIT */
/* How many threads this process may keep busy. */
#ifndef RNNCC_CPU_LIMIT_H
#define RNNCC_CPU_LIMIT_H

#include "names.h"

/* One for each core that the calling thread's affinity mask has a CPU of, and no more than the cgroup's CPU quota; at
 * least 1. */
RUNTIME_LOCAL int cpu_limit_threads(void);

/* The same, but one for each CPU of the mask: with more threads, some wait for a CPU. */
RUNTIME_LOCAL int cpu_limit_cpus(void);

/* The CPUs' worth of time that the process's cgroups allow, or 0 if they set no limit. `root` is prefixed to /proc and
 * /sys: "" except in tests. */
RUNTIME_LOCAL int cpu_limit_cgroup(const char *root);

#endif
