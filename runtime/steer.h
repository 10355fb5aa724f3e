/* SPDX-License-Identifier: MIT */
/* On which CPU a worker starts, and on which a sleeping one wakes up. */
#ifndef RNNCC_STEER_H
#define RNNCC_STEER_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "names.h"

/* A thread's affinity mask, and what it was narrowed to, without the CPU of the thread that narrowed it. */
typedef struct Steering {
  cpu_set_t mask, away;
  bool narrowed;
} Steering;

/* Call before waking `thread`, which sleeps; or before making a thread with these attributes. */
RUNTIME_LOCAL Steering steer_away(pthread_t thread);
RUNTIME_LOCAL Steering steer_new(pthread_attr_t *attributes);

/* Takes steer_new() back, before a thread is made. */
RUNTIME_LOCAL void steer_give_up(Steering *steering, pthread_attr_t *attributes);

/* Call right after the thread was woken or made. False if it is left with the narrower mask. */
RUNTIME_LOCAL bool steer_end(const Steering *steering, pthread_t thread);

#endif
