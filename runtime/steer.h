/* SPDX-License-Identifier: MIT */
/* Where a worker begins, and where a sleeping one wakes up. */
#ifndef RNNCC_STEER_H
#define RNNCC_STEER_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

/* A thread's affinity mask, to be restored. */
typedef struct Steering {
  cpu_set_t mask;
  bool narrowed;
} Steering;

/* Before waking `thread`, which sleeps; and before making a thread with these attributes. */
Steering steer_away(pthread_t thread);
Steering steer_new(pthread_attr_t *attributes);

/* Right after it is awake, or made. */
void steer_end(const Steering *steering, pthread_t thread);

#endif
