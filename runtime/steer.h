/* SPDX-License-Identifier: MIT */
/* On which CPU a worker starts, and on which a sleeping one wakes up. */
#ifndef RNNCC_STEER_H
#define RNNCC_STEER_H

#include <pthread.h>
#include <stdbool.h>

#include "names.h"
#include "topology.h"

/* A thread's affinity mask, and what it was narrowed to, without the CPU of the thread that narrowed it. */
typedef struct Steering {
  CpuMask mask, away;
  bool narrowed;
} Steering;

/* Call before waking `thread`, which sleeps; or right after it was made. */
RUNTIME_LOCAL Steering steer_away(pthread_t thread);

/* Call right after that. False if it is left with the narrower mask. */
RUNTIME_LOCAL bool steer_end(const Steering *steering, pthread_t thread);

#endif
