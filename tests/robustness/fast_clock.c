/* SPDX-License-Identifier: MIT */
/* To be preloaded: a clock that counts a microsecond as a tenth of a second. */
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FASTER = 100000, BILLION = 1000000000 };

int clock_gettime(clockid_t clock, struct timespec *time) {
  static int64_t begin;
  long result = syscall(SYS_clock_gettime, clock, time);
  int64_t now = (int64_t)time->tv_sec * BILLION + time->tv_nsec;
  if (!begin) begin = now;
  now = (now - begin) * FASTER;
  *time = (struct timespec){now / BILLION, now % BILLION};
  return (int)result;
}
