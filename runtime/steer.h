/* SPDX-License-Identifier: MIT */
/* Where a sleeping worker wakes up. */
#ifndef RNNCC_STEER_H
#define RNNCC_STEER_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

/* What a thread's mask was before it was narrowed. */
typedef struct Steering {
  pthread_t thread;
  cpu_set_t mask;
  bool narrowed;
} Steering;

/* Call steer_away() before waking `thread`, which sleeps, and steer_end() right after. */
Steering steer_away(pthread_t thread);
void steer_end(const Steering *steering);

#endif
