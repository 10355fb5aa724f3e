/* SPDX-License-Identifier: MIT */
/* Whether a thread of this process sleeps, and whether it was woken meanwhile, by Linux's counts: independent of load.
 */
#ifndef TESTS_ASLEEP_H
#define TESTS_ASLEEP_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

/* How often the thread has yielded or lost a CPU; -1 if it runs or waits for a CPU. */
static inline long switches_asleep(pid_t thread) {
  char path[64], line[256], state = 0;
  long wanted = 0, forced = 0;
  snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)thread);
  FILE *file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file)) {
    sscanf(line, "State: %c", &state);
    sscanf(line, "voluntary_ctxt_switches: %ld", &wanted);
    sscanf(line, "nonvoluntary_ctxt_switches: %ld", &forced);
  }
  if (file) fclose(file);
  return state == 'S' ? wanted + forced : -1;
}

/* False if it does not fall asleep within many seconds. */
static inline bool falls_asleep(pid_t thread) {
  enum { PAUSES = 20000 };
  for (int i = 0; i < PAUSES; i++) {
    if (switches_asleep(thread) >= 0) return true;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  return false;
}

#endif
