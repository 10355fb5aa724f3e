/* SPDX-License-Identifier: MIT */
#include "support/clock.h"

#include <time.h>

double seconds_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
